"""`kerf status`: what waits and why, what the nodes do, what is under way, and whether that is all right."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import AsOf, Json, Record


def status(
    record: Record,
    /,
    *,
    at: AsOf | None = None,
    all: Annotated[bool, Parameter(negative="", help="Every node: without it, the 20 emptiest.")] = False,
    watch: Annotated[
        bool, Parameter(negative="", help="Go on while a controller writes the record, until Ctrl-C.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what an on-call person asks first: what waits and why, what the nodes do, what is under way.

    The verdict is fine, busy, degraded or failing, with its grounds. Without --at
    it is that of now, if the record was written within the last day, else that of
    its end.

    For example:

        kerf status record.kerf
        kerf status record.kerf --at 10:00
        kerf status record.kerf --watch
        kerf status incident.kerfb --at -15m --json

    Parameters
    ----------
    json
        Print JSON (docs/status.md); with --watch one line for each change.
    """
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.moment.status_view import StatusView
    from kerf.engine.errors import InputError

    if watch and at is not None:
        raise InputError("--watch shows what is now, and --at what was", hint="Give one of them", code="KERF200")
    with opened(record) as store:
        view = StatusView(store, all_nodes=all, json=json)
        if watch:
            view.follow()
        else:
            view.show(at)
