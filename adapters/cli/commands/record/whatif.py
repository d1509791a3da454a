"""`kerf whatif`: the next decision after a moment, with something changed."""

from __future__ import annotations

from pathlib import Path

from kerf.adapters.cli.parameters import (
    AddedPods,
    Applied,
    AsOf,
    ChangedSettings,
    Deleted,
    Json,
    Markdown,
    NoCapacity,
    Prices,
    Record,
    Removed,
    SetFields,
)


def whatif(
    record: Record,
    /,
    *,
    at: AsOf | None = None,
    set: SetFields = (),
    apply: Applied = (),
    delete: Deleted = (),
    remove: Removed = (),
    add_pods: AddedPods = (),
    price: Prices = (),
    no_capacity: NoCapacity = (),
    setting: ChangedSettings = (),
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
    delete
        KIND/NAME: delete this object, as kubectl delete does: pod/default/web-1, nodepool/batch, pdb/default/web.
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
    from kerf.adapters.cli.render.output import Printer, emit_json, one_form
    from kerf.adapters.cli.render.what_if.whatif import whatif_text
    from kerf.projections.json_times import with_times
    from kerf.replay.time_travel.moments import is_position
    from kerf.replay.what_if.whatif import export_moment, what_if

    one_form(json=json, markdown=markdown)
    changes = changes_of(set, apply, delete, remove, add_pods, price, no_capacity, setting, needed=export is None)
    with opened(record) as store:
        when = usual_moment(store) if at is None else at
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
