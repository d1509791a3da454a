"""What the KWOK provider can refuse."""

from __future__ import annotations

from kerf.engine.errors import InputError


class CatalogueRefused(InputError):
    """A file of instance types that cannot be read (L-466, L-471)."""

    code = "KERF352"
