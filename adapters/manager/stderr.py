"""What the controller prints to standard error, beside its log: errors, and what it waits for."""

from __future__ import annotations

import sys

from kerf.projections.prose.printable import printable


def print_error(text: str) -> None:
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()
