"""The demonstration from its first line to its last: the record, the world, the story."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from kerf.adapters.cli.demo.errors import DemoFailed, DemoUnavailable
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.cli.simulate.runtime import DEMO_HOLDER
from kerf.engine.errors import extra_hint

FAILED = 1
"""The exit code when a part of the demonstration did not go as it should."""
SECONDS_PER_VIRTUAL_SECOND, LONGEST_PAUSE = 0.012, 0.12
"""On a terminal, in wall seconds, so that the story can be followed."""


def show(record: Path, *, real_time: bool) -> int:
    """Play the demonstration and give the exit code. Raises DemoUnavailable without moto, and StoreError.

    Only what it takes to say hello is imported above: the mock of AWS takes seconds, and a person should see why.
    """
    out = Printer()
    out.line(f"kerf demo: the record of it goes to {record}", "title")
    if find_spec("moto") is None:
        raise DemoUnavailable("the mock of AWS is not installed", hint=extra_hint("demo"))
    began = time.monotonic()
    with new_record(record, DEMO_HOLDER, say=out.line) as new:
        out.line("Loading boto3 and a mock of AWS (moto): this takes some seconds …", "debug")
        from kerf.adapters.cli.demo.story import START, DemoScript
        from kerf.adapters.cli.demo.world import world

        pace, sleep = _pace(real_time, out)
        with world(START, pace=pace, sleep=sleep) as simulation:
            out.line(f"… {time.monotonic() - began:.1f} s. From here on time is virtual.", "debug")
            try:
                DemoScript(out, simulation, new.store, record, identity=secrets.token_hex(8)).play()
            except DemoFailed as error:
                out.line(str(error), "error")
                return FAILED
    out.line(f"{time.monotonic() - began:.1f} s in all", "debug")
    out.line()
    from kerf.adapters.cli.render.simulation.live_story import kerf_command

    out.line("See it in a browser:", "title")
    out.line(f"  {kerf_command()} ui {quote(str(record))} --open")
    return 0


def _pace(real_time: bool, out: Printer) -> tuple[float, Callable[[float], None]]:
    """How many wall seconds a virtual second takes, and the function that sleeps them."""
    if real_time:
        return 1.0, time.sleep
    if out.terminal:
        return SECONDS_PER_VIRTUAL_SECOND, lambda seconds: time.sleep(min(seconds, LONGEST_PAUSE))
    return 0.0, time.sleep
