"""Worlds with a static NodePool."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.record.observations import (
    Observation,
)
from tests.support.world import World, pool


def static(replicas: int | None, **changes: object) -> NodePool:
    return pool(replicas=replicas, **changes)  # type: ignore[arg-type]


def launch_all(made: World, first: int = 1) -> None:
    for number, (ref, order) in enumerate(made.launches(), first):
        made.answer_launch(ref, order, instance=f"i-{number}")


def by_instance(made: World) -> dict[str, str]:
    """Instance → state of its claim."""
    return {claim.instance: claim.state for claim in made.runtime.state.facts.claims.values()}


def working(made: World, count: int) -> None:
    """Nodes n1, n2, … of instances i-1, i-2, … in service."""
    launch_all(made)
    claims = sorted(made.runtime.state.facts.claims.values(), key=lambda claim: claim.instance)
    for number, claim in enumerate(claims[:count], 1):
        made.node(f"n{number}", claim.provider_id)
        made.node(f"n{number}", claim.provider_id, registered="true")
        made.node(f"n{number}", claim.provider_id, registered="true", initialized="true")


def put(made: World, name: str, node: str, **changes: object) -> None:
    made.pending(name, memory=1)
    made.pods[name] = replace(made.pods[name], **changes)
    made.bind(name, node)
    bound = replace(made.pods[name], **changes)
    made.see(Observation(bound))
