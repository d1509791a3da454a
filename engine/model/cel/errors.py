"""The error of an expression that cannot be used."""

from __future__ import annotations

from kerf.engine.errors import InputError


class CelError(InputError):
    """A CEL expression that kerf cannot read, or that has no value (KERF353). A device selector fails the claims that
    ask for it, and nothing else."""

    code = "KERF353"
