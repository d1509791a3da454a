"""The one way in which commands print plain text and JSON: nothing in it can steer a terminal.

Apart from `printable`, it imports nothing that a help page would wait for.
"""

from __future__ import annotations

import sys

from kerf.adapters.cli.render.progress import clear_progress
from kerf.projections.prose.printable import printable, printable_json


def print_text(text: str) -> None:
    clear_progress()
    sys.stdout.write(printable(text) + "\n")


def print_json(text: str) -> None:
    """Print a JSON document that is encoded already."""
    clear_progress()
    sys.stdout.write(printable_json(text) + "\n")


def print_error(text: str) -> None:
    """Print to standard error: errors, notes, what is being waited for."""
    clear_progress()
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()
