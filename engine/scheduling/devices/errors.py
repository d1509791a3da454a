"""The error of a device selector that cannot be used."""

from __future__ import annotations

from kerf.engine.errors import InputError


class SelectorError(InputError):
    """A CEL expression that kerf cannot read, or that has no value for a device (KERF353). It fails the claims that
    ask for it, and nothing else."""

    code = "KERF353"
