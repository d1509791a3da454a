"""Worlds with volumes."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.record.decisions import Decision, Intent, ProvisionResult
from kerf.engine.record.observations import Observation
from tests.support.world import World


def zone(name: str) -> NodeTerm:
    return NodeTerm((Expression("topology.ebs.csi.aws.com/zone", "In", (name,)),))


def see(world: World, *objects: Struct) -> list[Intent]:
    return world.see(*(Observation(manifest) for manifest in objects))


def result(world: World) -> ProvisionResult:
    """That of the latest pass."""
    made = [e.payload for e in world.store.entries if isinstance(e.payload, Decision)]
    return next(d.result for d in reversed(made) if isinstance(d.result, ProvisionResult))
