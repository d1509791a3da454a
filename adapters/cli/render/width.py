"""How wide what is printed for people may be. Apart from the system, it imports nothing that a help page would wait
for."""

from __future__ import annotations

import os
import sys

USUAL, LEAST = 80, 40
"""Columns where nobody says how many there are, and below which nothing is made to fit."""
_DIGITS = 5
"""No line has more columns than these digits can say."""


def asked_width() -> int:
    """The columns that COLUMNS asks for, also in a pipe; 0 without it."""
    asked = os.environ.get("COLUMNS", "")
    number = int(asked[:_DIGITS]) if asked.isascii() and asked.isdigit() else 0
    return max(LEAST, number) if number else 0


def terminal_width() -> int:
    """The columns of the terminal, `USUAL` without one."""
    try:
        return max(LEAST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):  # no terminal, or a stream without a file
        return USUAL


def text_width() -> int:
    """The columns of running text: as COLUMNS asks, else those of the terminal, and `USUAL` at most: longer lines read
    badly."""
    return asked_width() or min(USUAL, terminal_width())
