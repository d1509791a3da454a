"""`kerf demo`: the EKS workshop's story, and a spot interruption, told while they happen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

RECORD = Path("demo.kerf")


def demo(
    *,
    real_time: Annotated[bool, Parameter(negative="")] = False,
    record: Annotated[Path, Parameter(help="Where the record is written.")] = RECORD,
) -> int:
    """Show what kerf does: five pods get the right node, an empty node goes, a spot interruption is survived.

    The whole controller runs, with its AWS adapter over boto3, against a mock of
    AWS in this process and a simulated cluster. It is the EKS workshop's story.
    What happened is kept as a record, and every decision in it is made again and
    compared at the end.

    Exit codes: 0 all went as it should, 1 a part did not (the last line says
    which), 2 usage.

    For example:

        kerf demo
        kerf demo --real-time --record my.kerf

    Parameters
    ----------
    real_time
        Let a virtual second take a second: nine minutes in all.
    """
    from kerf.adapters.cli.demo.show import show

    return show(record, real_time=real_time)
