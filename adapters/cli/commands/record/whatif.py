"""`kerf whatif`: the next decision after a moment, with something changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import AsOf, Json, Record

_MANY = Parameter(negative="", consume_multiple=False, allow_leading_hyphen=True, show_default=False)
_Texts = Annotated[tuple[str, ...], _MANY]
_Files = Annotated[tuple[Path, ...], _MANY]


def whatif(
    record: Record,
    /,
    *,
    at: AsOf = "end",
    set: _Texts = (),
    apply: _Files = (),
    delete: _Texts = (),
    remove: _Texts = (),
    add_pods: _Files = (),
    price: _Texts = (),
    no_capacity: _Texts = (),
    setting: _Texts = (),
    export: Path | None = None,
    json: Json = False,
) -> None:
    """Make the next decision after a moment again, with something changed.

    The same engine decides over the recorded state with the change in it. The
    decision is printed as a plan beside the one without the change: "+" is there
    only with the change, "-" only without it, "~" is another. Exact is this one
    decision: what the cluster would have done afterwards is not in the record.
    A position that holds a decision makes that decision again.

    For example:

        kerf whatif record.kerf --at 10:05 --set nodepool/default.spec.limits.cpu=4
        kerf whatif record.kerf --at -15m --remove node/ip-10-0-1-2
        kerf whatif record.kerf --at 1234 --no-capacity m5.large/spot
        kerf whatif record.kerf --at 1234 --price c5.large=+20%
        kerf whatif record.kerf --apply nodepool.yaml --add-pods deployment.yaml
        kerf whatif record.kerf --at 10:05 --export moment.json

    Parameters
    ----------
    set
        nodepool/NAME.FIELD=VALUE: a field of a NodePool; items of lists by number or key, as in requirements[KEY].
    apply
        Apply these manifests, as kubectl apply does.
    delete
        KIND/NAME: delete this object, as kubectl delete does: pod/default/web-1, nodepool/batch, pdb/default/web.
    remove
        node/NAME: take this node away; its pods need another place.
    add_pods
        The pods of these manifests wait for a node: Pods, or the replicas of Deployments, StatefulSets and Jobs.
    price
        OFFERING=USD, or OFFERING=+20%: m5.large=0.08, m5.large/spot/us-west-2a=0.03.
    no_capacity
        OFFERING that cannot be had: m5.large, spot/us-west-2a.
    setting
        NAME=VALUE: a setting of the controller, or a feature gate: batch_idle=5s, SpotToSpotConsolidation=true.
    export
        Decide nothing: write the moment, with the changes, to this file as a scenario for kerf plan and kerf disrupt.
    json
        Print JSON.
    """
    from kerf.adapters.cli.exported_scenario import write_scenario
    from kerf.adapters.cli.input.changes import changes_of
    from kerf.adapters.cli.records import asked_time, located, opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.whatif import whatif_text
    from kerf.projections.json_times import with_times
    from kerf.replay.what_if.whatif import export_moment, what_if

    changes = changes_of(set, apply, delete, remove, add_pods, price, no_capacity, setting, needed=export is None)
    with opened(record) as store:
        position, now = located(store, at).position, asked_time(store, at)
        if export is not None:
            write_scenario(export_moment(store, position, changes, now), export)
            return
        answer = what_if(store, position, changes, now)
    if json:
        emit_json(with_times(answer))
    else:
        whatif_text(Printer(), answer)
