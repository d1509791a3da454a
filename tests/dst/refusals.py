"""Draws zones that refuse launches for hours, into the calm, and a workload that needs them: its pods are spread over
all zones. They sell again early enough for everything to come to rest."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.dst import beginning
from tests.dst.beginning import NAMESPACE, Document
from tests.support.simulation.run import ZONES

SHARE = 0.06
"""Of the scenarios: they take longer. The others are what they would be without this module."""
SPREAD = "spread"
"""The workload."""


@dataclass
class Refusals:
    """`actions` are those of a Timeline."""

    documents: list[Document] = field(default_factory=list)
    actions: list[Document] = field(default_factory=list)


def draw(seed: int, restored: list[int], storm: int, until: int, end: int) -> Refusals:
    """What a seed has of them. Times are in seconds since the start: `storm` and `until` are when the storm ends and
    the zones sell again, `end` when all work does. At each time of `restored` the Timeline gives all capacity back."""
    dice, drawn = random.Random(f"refusals {seed}"), Refusals()
    if dice.random() >= SHARE:
        return drawn
    drawn.documents.append(beginning.spread_over_zones(SPREAD, dice.randint(3, 6)))
    kinds: list[Document] = [{}, {}, {"capacityType": "spot"}]
    pieces = [{"zone": zone, **dice.choice(kinds)} for zone in dice.sample(ZONES, dice.choice([1, 1, 2]))]
    begin = dice.randrange(60, storm)
    for second in (begin, *(each for each in restored if begin <= each < until)):
        drawn.actions += [{"at": f"{second}s", "action": "capacity", **piece} for piece in pieces]
    sizes = [
        (begin + 60, dice.randint(6, 12)),
        (storm + 1200, dice.randint(6, 12)),
        (storm + 3600, dice.randint(6, 12)),
    ]
    for second, replicas in (*sizes, (end, 0)):
        of = {"namespace": NAMESPACE, "name": SPREAD, "kind": "Deployment"}
        drawn.actions.append({"at": f"{second}s", "action": "scale", **of, "replicas": replicas})
    drawn.actions.append({"at": f"{until}s", "action": "restore-capacity"})
    return drawn
