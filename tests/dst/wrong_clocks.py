"""Draws clocks that are wrong: steps both ways, drift, a machine that sleeps, replicas that disagree, a record that is
ahead. All are right again when the calm begins."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

MINUTE = 60_000
SHARE = 0.35
"""Of the scenarios. The others are what they would be without this module."""


@dataclass
class WrongClocks:
    """`actions` are those of a Timeline; `host_clocks` as in FaultPlan. `ahead`: by how much (ms) an older kerf, which
    believed its clock, has put the record ahead when a process dies."""

    actions: list[dict[str, Any]] = field(default_factory=list)
    host_clocks: tuple[int, ...] = ()
    ahead: int = 0
    traits: Counter[str] = field(default_factory=Counter)


def draw(seed: int, storm: int) -> WrongClocks:
    """The wrong clocks of a seed, in a storm of so many seconds."""
    dice, drawn = random.Random(f"clock-{seed}"), WrongClocks()
    if dice.random() >= SHARE:
        return drawn
    for _ in range(dice.randint(1, 3)):
        _one(drawn, dice, storm - 1)
    drawn.actions.append({"at": f"{storm}s", "action": "clock-step"})
    if dice.random() < 0.5:
        drawn.traits["clock: replicas disagree"] += 1
        wrong = dice.choice([-1, 1]) * dice.choice([5_000, 10 * MINUTE, 24 * 60 * MINUTE])
        drawn.host_clocks = dice.choice([(0, wrong), (wrong, 0), (wrong, -wrong)])
    if dice.random() < 0.4:
        drawn.ahead = dice.choice([5_000, 2 * MINUTE, 24 * 60 * MINUTE])
    return drawn


def _one(drawn: WrongClocks, dice: random.Random, last: int) -> None:
    """A clock goes wrong, and may be set right again."""
    second = dice.randint(120, last)
    kind = dice.choice(["forward", "back", "drift", "suspend"])
    drawn.traits[f"clock: {kind}"] += 1
    by = dice.choice(["3s", "10m", "24h", "744h"])
    action = {
        "forward": {"action": "clock-step", "by": by},
        "back": {"action": "clock-step", "by": f"-{by}"},
        "drift": {"action": "clock-drift", "by": dice.choice(["20s", "-5m"]), "for": "10m"},
        "suspend": {"action": "suspend", "for": dice.choice(["5s", "90s", "8m"])},
    }[kind]
    drawn.actions.append({"at": f"{second}s", **action})
    if dice.random() < 0.6:
        drawn.actions.append({"at": f"{min(last, second + dice.choice([30, 300, 900]))}s", "action": "clock-step"})
