"""Feature gates as they are given to the controller: `Name=true,Name=false` (L-288, L-315)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.errors import InputError
from kerf.engine.model.did_you_mean import did_you_mean
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings

FIELDS = {
    "CapacityBuffer": "capacity_buffers",
    "NodeOverlay": "node_overlays",
    "NodeRepair": "node_repair",
    "SpotToSpotConsolidation": "spot_to_spot",
    "StaticCapacity": "static_capacity",
}
"""Gate → the setting that it is."""
OTHERS = ("Drift", "ReservedCapacity")
"""Gates of the reference that change nothing here: what they open is always on."""
_VALUES = dict.fromkeys(("1", "t", "true"), True) | dict.fromkeys(("0", "f", "false"), False)


class FeatureGatesError(InputError):
    """Feature gates that cannot be read: kerf does not start with them."""

    code = "KERF339"


def with_gates(settings: Settings, text: str) -> Settings:
    """The settings with these gates; gates that are not named stay as they are, names that nobody knows do nothing
    (`unknown_gates` says which these are). Raises FeatureGatesError (KERF339) for what is no `Name=bool`."""
    changed: dict[str, bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        on = _VALUES.get(value.strip().lower())
        if not equals or not name.strip() or on is None:
            hint = f'Write "{name.strip() or "NodeOverlay"}=true"'
            raise FeatureGatesError(f"{part!r} switches nothing on or off", where="feature-gates", hint=hint)
        if name.strip() in FIELDS:
            changed[FIELDS[name.strip()]] = on
    return replace(settings, **changed)


def unknown_gates(text: str) -> tuple[Reason, ...]:
    """What should be said of gates that nobody knows, with the name that may be meant: whoever mistypes one waits for
    what never happens."""
    names = (part.partition("=")[0].strip() for part in text.split(",") if part.strip())
    return tuple(_unknown(name) for name in names if name not in FIELDS and name not in OTHERS)


def _unknown(name: str) -> Reason:
    known = {each.lower(): each for each in (*FIELDS, *OTHERS)}
    near = did_you_mean(name.lower(), known)
    return (
        Reason("mistyped-gate", {"gate": name, "near": known[near[0]]})
        if near
        else Reason("unknown-gate", {"gate": name})
    )
