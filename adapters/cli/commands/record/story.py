"""`kerf story`: what happened to anything that has a name."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.completion import candidates
from kerf.adapters.cli.parameters import Json, Record, Until

_Name = Annotated[str, Parameter(completer=candidates.subjects)]
_Rest = Annotated[str, Parameter(completer=candidates.named)]


def story(record: Record, name: _Name, rest: _Rest = "", /, *, at: Until = "end", json: Json = False) -> None:
    """Tell the story of anything that has a name: what happened to it, why, and what came of it.

    For example:

        kerf story record.kerf default/web-1
        kerf story record.kerf default-x7k2m
        kerf story record.kerf nodepool/default
        kerf story record.kerf ec2nodeclass/default
        kerf story record.kerf ip-10-0-1-2 --json

    Parameters
    ----------
    name
        A pod, workload, node, NodeClaim, NodePool, NodeClass, PodDisruptionBudget or instance, bare or after its kind.
    rest
        The name, where its kind stands before it: node ip-10-0-1-2.
    json
        Print JSON.
    """
    from kerf.adapters.cli.named_record import named_record
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.record import story_text
    from kerf.projections.json_times import with_times
    from kerf.replay.history.story import story as story_of
    from kerf.replay.subject_names import with_kind

    with opened(record) as store:
        until = located(store, at).position
        events = story_of(store, with_kind(name, rest, "story"), until, named_record(store, until))
        started = next(entry.at for entry in store.scan())
    if json:
        emit_json(with_times(events))
    else:
        story_text(Printer(), events, started)
