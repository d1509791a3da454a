"""`kerf whatif`: the next decision after a moment, with something changed."""

from __future__ import annotations

from pathlib import Path

from kerf.adapters.cli.parameters import (
    AsOf,
    ChangedFields,
    ChangedNodes,
    ChangedObjects,
    ChangeFiles,
    Changes,
    Json,
    Markdown,
    Record,
)


def whatif(
    record: Record,
    /,
    *,
    at: AsOf = "",
    set: ChangedFields = (),
    apply: ChangeFiles = (),
    delete: ChangedObjects = (),
    remove: ChangedNodes = (),
    add_pods: ChangeFiles = (),
    price: Changes = (),
    no_capacity: Changes = (),
    setting: Changes = (),
    export: Path | None = None,
    markdown: Markdown = False,
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
    markdown
        Print Markdown, for a comment on a pull request.
    json
        Print JSON.
    """
    from kerf.adapters.cli.exported_scenario import write_scenario
    from kerf.adapters.cli.input.changes import changes_of
    from kerf.adapters.cli.records import asked_time, located, opened, usual_moment
    from kerf.adapters.cli.render.lines import print_error, print_text
    from kerf.adapters.cli.render.markdown.whatif import whatif_markdown
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.what_if.whatif import whatif_text
    from kerf.projections.json_times import with_times
    from kerf.replay.time_travel.moments import is_position
    from kerf.replay.what_if.whatif import export_moment, what_if

    changes = changes_of(set, apply, delete, remove, add_pods, price, no_capacity, setting, needed=export is None)
    with opened(record) as store:
        when = at or usual_moment(store)
        position, now = located(store, when).position, asked_time(store, when)
        if export is not None:
            write_scenario(export_moment(store, position, changes, now), export)
            return
        answer = what_if(store, position, changes, now)
    if is_position(when) and answer.position > position:
        print_error(f"Note: position {position} is within a turn: the change is made at its end, {answer.position}")
    if json:
        emit_json(with_times(answer))
    elif markdown:
        print_text(whatif_markdown(answer))
    else:
        whatif_text(Printer(), answer)
