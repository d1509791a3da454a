"""Looks at the clocks while the controller runs, and tells how they are: in `/readyz` and in metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.session import Session
from kerf.projections.metrics.families import GAUGE, Family

EVERY = 2.0  # seconds between two looks: as often as the Lease is renewed
MAX_SILENCE = 30_000  # ms without a Date header, while the clocks agree


async def watch_clocks(session: Session, clocks: ProcessClocks, wake: Callable[[], None]) -> None:
    """Look for ever. Asks the API server for its time where nothing else does (in observe mode there is no Lease), and
    while the clocks differ. Wakes the controller when they begin or cease to differ."""
    doubted = clocks.in_doubt
    while True:
        await asyncio.sleep(EVERY)
        clocks.look()
        if clocks.in_doubt or clocks.silent_for() > MAX_SILENCE:
            with suppress(ClusterError, Unreachable):  # then nothing is known of its time
                await session.request("GET", "/version", limited=False, timeout=EVERY)
        if clocks.in_doubt != doubted:
            doubted = clocks.in_doubt
            wake()


def clock_notes(clocks: ProcessClocks) -> list[str]:
    """What is wrong with the clocks, a line each; nothing while they agree."""
    said = []
    if clocks.in_doubt:
        said.append("the clocks differ: nothing expires, is consolidated or repaired until they agree")
    if clocks.in_doubt and clocks.jump:
        said.append(f"the wall clock has moved by {_seconds(clocks.jump)} against the monotonic clock")
    if clocks.skew:
        said.append(f"the wall clock is {_seconds(clocks.skew)} from the API server's")
    return said


def clock_families(clocks: ProcessClocks) -> list[Family]:
    doubt = Family("kerf_clocks_differ", GAUGE, "Whether the clocks of the process and of the API server differ.")
    doubt.set(float(clocks.in_doubt))
    jump = Family("kerf_clock_jump_seconds", GAUGE, "Wall clock against monotonic clock, since they last agreed.")
    jump.set(clocks.jump / 1000)
    skew = Family("kerf_clock_skew_seconds", GAUGE, "How far the wall clock is ahead of the API server's.")
    if clocks.skew is not None:
        skew.set(clocks.skew / 1000)
    return [doubt, jump, skew]


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:+g} s"
