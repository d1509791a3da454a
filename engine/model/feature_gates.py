"""Feature gates as they are given to the controller: `Name=true,Name=false` (L-288, L-315)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings

FIELDS = {
    "CapacityBuffer": "capacity_buffers",
    "NodeOverlay": "node_overlays",
    "NodeRepair": "node_repair",
    "SpotToSpotConsolidation": "spot_to_spot",
    "StaticCapacity": "static_capacity",
}
"""Gate → the setting that it is. ReservedCapacity is always on."""
_VALUES = dict.fromkeys(("1", "t", "true"), True) | dict.fromkeys(("0", "f", "false"), False)


class FeatureGatesError(InputError):
    """Feature gates that cannot be read: kerf does not start with them."""

    code = "KERF339"


def with_gates(settings: Settings, text: str) -> Settings:
    """The settings with these gates; gates that are not named stay as they are, names that nobody knows do nothing.
    Raises FeatureGatesError (KERF339) for what is no `Name=bool`."""
    changed: dict[str, bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        on = _VALUES.get(value.strip().lower())
        if not equals or not name.strip() or on is None:
            raise FeatureGatesError(f"{part!r} is no gate", where="feature-gates", hint='Write "NodeOverlay=true"')
        if name.strip() in FIELDS:
            changed[FIELDS[name.strip()]] = on
    return replace(settings, **changed)
