"""The errors of the KWOK provider."""

from __future__ import annotations

from kerf.engine.errors import InputError


class CatalogueRefused(InputError):
    """A file of instance types cannot be read (L-466, L-471)."""

    code = "KERF352"
