"""`kerf story`: what happened to one pod, node or NodeClaim."""

from __future__ import annotations

from kerf.adapters.cli.parameters import Json, When


def story(record: str, name: str, rest: str = "", /, *, at: When = "end", json: Json = False) -> None:
    """Tell the story of one pod, node or NodeClaim: what happened to it, why, and what came of it.

    For example:

        kerf story record.kerf default/web-1
        kerf story record.kerf default-x7k2m
        kerf story record.kerf ip-10-0-1-2 --json

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    name
        A pod's namespace/name, or the name of a node, NodeClaim or instance; "node/NAME" where that is not clear.
    rest
        The name, where its kind stands before it: node ip-10-0-1-2.
    at
        Up to a position or time (see kerf at).
    json
        Print JSON.
    """
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.record import story_text
    from kerf.replay.history.story import story as story_of

    with opened(record) as store:
        events = story_of(store, f"{name}/{rest}" if rest else name, None if at == "end" else located(store, at))
        started = next(entry.at for entry in store.scan())
    if json:
        emit_json(events)
    else:
        story_text(Printer(), events, started)
