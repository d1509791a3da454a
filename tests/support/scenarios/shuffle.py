"""The same planning question, with everything in it listed in another order."""

from __future__ import annotations

import random
from typing import TypeVar

from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.scheduling.problem.problem import Problem

T = TypeVar("T")


def shuffled(given: Problem, dice: random.Random) -> Problem:
    """Digests of shapes are others, too, and so in another order."""

    def mixed(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(dice.sample(items, len(items)))

    digests = dict(zip(sorted(given.shapes), mixed(tuple(map(str, range(len(given.shapes))))), strict=True))
    return replace(
        given,
        pods=mixed(tuple(replace(pod, shape=digests[pod.shape]) for pod in given.pods)),
        pools=mixed(given.pools),
        nodes=mixed(given.nodes),
        bound=mixed(tuple(replace(pod, shape=digests[pod.shape]) for pod in given.bound)),
        daemons=mixed(tuple(digests[digest] for digest in given.daemons)),
        shapes={digests[digest]: shape for digest, shape in given.shapes.items()},
        catalogues={digest: Catalogue(mixed(catalogue.types)) for digest, catalogue in given.catalogues.items()},
    )
