"""What the controller prints to standard error, beside its log: errors, and what it waits for."""

from __future__ import annotations

import os
import sys

from kerf.engine.passwords import without_secrets
from kerf.projections.prose.printable import printable


def print_error(text: str) -> None:
    sys.stderr.write(printable(without_secrets(text, os.environ)) + "\n")
    sys.stderr.flush()
