"""Errors of files that cannot be imported (KERF36x)."""

from __future__ import annotations

from kerf.engine.errors import InputError


class Unrecognised(InputError):
    """The file is in none of the formats that kerf imports."""

    code = "KERF360"


class Unreadable(InputError):
    """The format is known, and this file, or this form of it, cannot be read."""

    code = "KERF361"


class TooLarge(InputError):
    """The file, or what it unpacks to, is larger than kerf reads."""

    code = "KERF362"


class NothingTold(InputError):
    """The format is known, and nothing in the file tells of nodes, pods or workloads."""

    code = "KERF363"
