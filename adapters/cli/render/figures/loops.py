"""Loops as text: what goes round in circles, and where to look."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from kerf.adapters.cli.render.lines import print_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, dollars, some
from kerf.engine.passwords import without_password
from kerf.projections.figures.loops import (
    CHAIN,
    DRIFTS_AT_ONCE,
    EVICTED_AGAIN,
    EXPIRES_SOON,
    LAUNCHED_AGAIN,
    UNUSED,
    Loop,
)
from kerf.projections.prose.amounts import count, duration, moment

NO_LOOPS = "No node goes round in circles."


def show_loops(loops: Iterable[Loop], record: str) -> None:
    """Say what goes round in circles, the worst first, and where to look."""
    found = list(loops)
    if not found:
        print_text(NO_LOOPS)
        return
    printer = Printer()
    printer.line(f"{count(len(found), 'loop')}, the worst first", "title")
    for rank, loop in enumerate(found, start=1):
        printer.line(f"{rank}. {loop_words(loop)}", "warning")
        printer.line(f"   from {moment(loop.since)} to {moment(loop.until)}: {loop_costs(loop)}")
        printer.line(f"   look at: kerf story {quote(without_password(record))} {loop.claims[-1]}")


def loop_words(loop: Loop) -> str:
    """Say what goes round in circles."""
    why = f" ({', '.join(loop.reasons)})" if loop.reasons else ""
    differs, lasted = some(loop.differs, 1), duration(loop.lasted)
    if loop.kind == CHAIN:
        same = f", {loop.same_type} of them by the same type and zone" if loop.same_type else ""
        return (
            f"{loop.about}: one node was replaced {loop.nodes} times in a row{why}{same}: {' → '.join(loop.claims)}"
            + (f"; {differs}" if differs else "")
        )
    if loop.kind == UNUSED:
        return f"NodePool {loop.about}: {count(loop.nodes, 'node')} came for pods and went without one{why}"
    if loop.kind == DRIFTS_AT_ONCE:
        nodes = f"{count(loop.nodes, 'node')} had drifted within ten minutes of their start{why}"
        return f"NodePool {loop.about}: {nodes}: {differs}"
    if loop.kind == EVICTED_AGAIN:
        pods, nodes = count(loop.evicted, "pod"), some(loop.claims, MAX_NAMES_SHOWN)
        left = "that had come for evicted ones had to leave in their turn within half an hour"
        return f"{loop.about}: {pods} {left}{why}: from {nodes}"
    if loop.kind == LAUNCHED_AGAIN:
        nodes = f"{count(loop.nodes, 'node')} came for its pods and went with them {lasted} later"
        return f"{loop.about}: {nodes}, only to be launched again, in {loop.rounds} rounds{why}"
    if loop.kind == EXPIRES_SOON:
        nodes = f"{count(loop.nodes, 'node')} expired {lasted} after they were asked for"
        return f"NodePool {loop.about}: {nodes}, in {loop.rounds} rounds: its expireAfter is that short"
    return f"{loop.about}: {count(loop.nodes, 'launch')} failed{why}"


def loop_costs(loop: Loop) -> str:
    """Say what a loop cost."""
    cost = f"these nodes cost {dollars(loop.cost)}" if loop.cost else "no node came of it"
    return f"{cost}, {count(loop.evicted, 'pod')} evicted" if loop.evicted else cost
