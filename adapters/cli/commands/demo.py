"""`kerf demo`: the EKS workshop's story, and a spot interruption, told while they happen.

Only what it takes to say hello is imported here: the mock of AWS takes seconds, and a person should see why.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.demo.errors import DemoFailed, DemoUnavailable
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.simulate.composition import DEMO
from kerf.adapters.cli.simulate.new_record import new_record

RECORD = Path("demo.kerf")
FAILED = 1
"""The exit code when a part of the demonstration did not go as it should."""
UNFOLD, LONGEST_PAUSE = 0.012, 0.12
"""On a terminal: wall seconds a virtual second, and the longest pause, so that the story can be followed."""


def demo(
    *,
    real_time: Annotated[bool, Parameter(negative="")] = False,
    record: Annotated[Path, Parameter(help="Where the record is written.")] = RECORD,
) -> int:
    """Show what kerf does: five pods get the right node, an empty node goes, a spot interruption is survived.

    The whole controller runs, with its AWS adapter over boto3, against a mock of AWS in this process and a simulated
    cluster. It is the EKS workshop's story. What happened is kept as a record, and every decision in it is made again
    and compared at the end.

    Exit codes: 0 all went as it should, 1 a part did not (the last line says which), 2 usage.

    Examples: `kerf demo`, `kerf demo --real-time --record my.kerf`

    Parameters
    ----------
    real_time
        Let a virtual second take a second: nine minutes in all.
    """
    out = Printer()
    out.line(f"kerf demo: the record of it goes to {record}", "title")
    if find_spec("moto") is None:
        raise DemoUnavailable("the mock of AWS is not installed", hint="pip install 'kerf-autoscaler[demo]'")
    began = time.monotonic()
    with new_record(record, DEMO, say=out.line) as new:
        out.line("Loading boto3 and a mock of AWS (moto): this takes some seconds …", "debug")
        from kerf.adapters.cli.demo.story import START, Script
        from kerf.adapters.cli.demo.world import world

        pace, sleep = _pace(real_time, out)
        with world(START, pace=pace, sleep=sleep) as simulation:
            out.line(f"… {time.monotonic() - began:.1f} s. From here on time is virtual.", "debug")
            try:
                Script(out, simulation, new.store, record, identity=secrets.token_hex(8)).play()
            except DemoFailed as error:
                out.line(str(error), "error")
                return FAILED
    out.line(f"{time.monotonic() - began:.1f} s in all", "debug")
    return 0


def _pace(real_time: bool, out: Printer) -> tuple[float, Callable[[float], None]]:
    """Wall seconds a virtual second, and how they are slept."""
    if real_time:
        return 1.0, time.sleep
    if out.terminal:
        return UNFOLD, lambda seconds: time.sleep(min(seconds, LONGEST_PAUSE))
    return 0.0, time.sleep
