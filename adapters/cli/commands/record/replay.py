"""`kerf replay`: the recorded workload in the model, under another configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import (
    AddedPods,
    Applied,
    ChangedSettings,
    Deleted,
    Jobs,
    Json,
    Markdown,
    NoCapacity,
    Prices,
    Record,
    Removed,
    SetFields,
    Until,
    when,
)


def replay(
    record: Record,
    /,
    *,
    from_: Annotated[str, Parameter(name="--from"), when("Begin there")] = "start",
    until: Until = "end",
    set: SetFields = (),
    apply: Applied = (),
    delete: Deleted = (),
    remove: Removed = (),
    add_pods: AddedPods = (),
    price: Prices = (),
    no_capacity: NoCapacity = (),
    setting: ChangedSettings = (),
    keep: Annotated[Path | None, Parameter(name="--record")] = None,
    anyway: Annotated[bool, Parameter(negative="")] = False,
    jobs: Jobs = 0,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Run the recorded workload again in a model, under another configuration.

    Pods come and go as they did, instances are interrupted, offerings lack
    capacity and prices change, in the simulation that kerf simulate runs in. It
    runs once without the changes and once with them. What the changed run costs,
    evicts and launches stands beside the unchanged one. How far that is from what
    was recorded is the model's error: over 10 % the comparison is refused. Without
    a change, this is all that is told. The changes are those of kerf whatif.

    For example:

        kerf replay record.kerf --set nodepool/default.spec.limits.cpu=100
        kerf replay record.kerf --from -1d --price spot=+20% --no-capacity m5.large
        kerf replay record.kerf --apply nodepool.yaml --record changed.kerf
        kerf replay record.kerf --from 08:00 --until 18:00

    Parameters
    ----------
    delete
        KIND/NAME: delete this object, as kubectl delete does: nodepool/batch, pdb/default/web.
    keep
        Keep the record of the changed run in this file, for every other command to look into.
    anyway
        Show the comparison although the model is too far from what was recorded, and say so.
    markdown
        Print Markdown, for a comment on a pull request.
    json
        Print JSON.
    """
    from kerf.adapters.cli.input.changes import changes_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.markdown.replay import replay_markdown
    from kerf.adapters.cli.render.output import Printer, emit_json, one_form
    from kerf.adapters.cli.replaying.question import replayed, window_of
    from kerf.adapters.cli.replaying.text import replay_text
    from kerf.adapters.cli.workers import workers_on
    from kerf.projections.json_times import with_times
    from kerf.replay.modelled.comparison import refuse_what_does_not_hold

    one_form(json=json, markdown=markdown)
    changes = changes_of(set, apply, delete, remove, add_pods, price, no_capacity, setting, needed=False)
    with opened(record, decides=True) as store, workers_on(record, jobs) as workers:
        answer = replayed(store, window_of(store, from_, until), changes, keep, workers)
    if changes and not anyway:
        refuse_what_does_not_hold(answer)
    if json:
        emit_json(with_times(answer))
    elif markdown:
        print_text(replay_markdown(answer))
    else:
        replay_text(Printer(), answer)
