"""The same planning question, with everything in it listed in another order."""

from __future__ import annotations

import random
from typing import TypeVar

from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.scheduling.problem.problem import Problem

T = TypeVar("T")


def shuffled(given: Problem, dice: random.Random) -> Problem:
    def mixed(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(dice.sample(items, len(items)))

    return replace(
        given,
        pods=mixed(given.pods),
        pools=mixed(given.pools),
        nodes=mixed(given.nodes),
        bound=mixed(given.bound),
        daemons=mixed(given.daemons),
        catalogues={digest: Catalogue(mixed(catalogue.types)) for digest, catalogue in given.catalogues.items()},
    )
