"""Reads feature gates as the controller gets them: `Name=true,Name=false` (L-288, L-315)."""

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
"""Maps each gate to the setting that it switches."""
RESERVED_CAPACITY = "ReservedCapacity"
OTHERS = ("Drift", RESERVED_CAPACITY)
"""Gates that switch no setting of the engine: Drift is always on, and without ReservedCapacity the AWS provider offers
none."""
_VALUES = dict.fromkeys(("1", "t", "true"), True) | dict.fromkeys(("0", "f", "false"), False)


class FeatureGatesError(InputError):
    """The feature gates cannot be read. kerf does not start with them."""

    code = "KERF339"


def with_gates(settings: Settings, text: str) -> Settings:
    """Returns the settings with these gates applied. Gates that are not named keep their setting; unknown names do
    nothing.

    `unknown_gates` returns the unknown ones. Raises FeatureGatesError (KERF339) for a part that is not `Name=bool`.
    """
    stated = stated_gates(text, "feature-gates", "NodeOverlay")
    return replace(settings, **{FIELDS[name]: on for name, on in stated.items() if name in FIELDS})


def stated_gates(text: str, where: str, example: str) -> dict[str, bool]:
    """Returns what a text says of each gate that it names. Raises FeatureGatesError (KERF339), which names `where` the
    text stands, and an `example` of a gate."""
    stated = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = part.partition("=")
        on = _VALUES.get(value.strip().lower())
        if not equals or not name.strip() or on is None:
            hint = f'Write "{name.strip() or example}=true"'
            raise FeatureGatesError(f"{part!r} switches nothing on or off", where=where, hint=hint)
        stated[name.strip()] = on
    return stated


def unknown_gates(text: str) -> tuple[Reason, ...]:
    """Returns a note for each unknown gate, with the name that may be meant. Else its author would wait in vain for its
    effect.
    """
    names = (part.partition("=")[0].strip() for part in text.split(",") if part.strip())
    return tuple(_unknown(name) for name in names if name not in FIELDS and name not in OTHERS)


def _unknown(name: str) -> Reason:
    known = {gate.lower(): gate for gate in (*FIELDS, *OTHERS)}
    near = did_you_mean(name.lower(), known)
    return (
        Reason("mistyped-gate", {"gate": name, "near": known[near[0]]})
        if near
        else Reason("unknown-gate", {"gate": name})
    )
