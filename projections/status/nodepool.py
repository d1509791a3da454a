"""Compute the status of a NodePool from its nodes and its NodeClass (D-128, L-182, L-252…L-255).

That is the annotations of its hash, its conditions and its resources. Whoever writes it compares it with what is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_hash import hash_annotations
from kerf.engine.model.karpenter.nodepool_health import REGISTRATION_FAILED, UNHEALTHY, PoolHealth
from kerf.engine.model.karpenter.nodepool_validation import violations
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.scheduling.launchable.withheld import not_given
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.problem.from_state import capacity_of
from kerf.engine.scheduling.reasons import sentence
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import State
from kerf.projections.status.nodeclaim import launch_failure
from kerf.projections.status.nodeclass import class_conditions

COUNTED = ("cpu", "memory", "pods", "ephemeral-storage", "nodes")
"""Resources that are always shown, if only as zero (L-255)."""
DEPENDENTS = ("ValidationSucceeded", "NodeClassReady")
"""The conditions that Ready follows from (L-65)."""
REQUIREMENTS_MET, LABEL_NOT_GIVEN = "RequirementsMet", "LabelNotGiven"
"""kerf's own condition, and its reason."""
UNSETTLED = ("", "Unknown", "AwaitingReconciliation", "ReconcilingDependents")
"""Reasons of a NodeClass that say that nobody knows yet whether it is ready (L-68)."""


class NodePoolStatus(Struct, frozen=True, kw_only=True):
    """What stands on a NodePool object.

    `annotations` belong to its metadata, the rest to its status. A condition's `since` moves only when its status does
    (L-66). `node_class_generation` is status.nodeClassObservedGeneration, 0 without a NodeClass. `generation` is the
    object's own that this is about (L-67).
    """

    name: str
    annotations: dict[str, str]
    conditions: tuple[Condition, ...]
    resources: Resources
    nodes: int
    node_class_generation: int
    generation: int = 0

    def condition(self, kind: str) -> Condition:
        return next(condition for condition in self.conditions if condition.type == kind)

    @property
    def ready(self) -> bool:
        return self.condition("Ready").status == "True"


def nodepool_status(state: State, name: str, before: Sequence[Condition] = ()) -> NodePoolStatus:
    """Return the status of a NodePool; `before` are the conditions that its object carries now. Raises KeyError for an
    unknown one."""
    pool, node_class, resources = state.facts.pools[name], _node_class(state, name), _resources(state, name)
    return NodePoolStatus(
        name=name,
        annotations=hash_annotations(pool),
        conditions=tuple(
            _since(nodepool_condition, before, state.facts.at)
            for nodepool_condition in nodepool_conditions(state, name)
        ),
        resources=resources,
        nodes=resources["nodes"],
        node_class_generation=node_class.generation if node_class is not None else 0,
        generation=pool.generation,
    )


def nodepool_conditions(state: State, name: str) -> tuple[Condition, ...]:
    """Return the conditions alone, without the times that the state does not have."""
    pool, health = state.facts.pools[name], state.facts.health.get(name, PoolHealth())
    dependents = (_validation(pool), _class_ready(pool, _node_class(state, name), state.indexes.blobs))
    return (*dependents, _registration(health), *_requirements_met(health), _ready(dependents))


def _node_class(state: State, pool: str) -> NodeClassSeen | None:
    ref = state.facts.pools[pool].node_class
    return state.facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")


def _validation(pool: NodePool) -> Condition:
    """The condition ValidationSucceeded of a NodePool (L-252)."""
    faults = violations(pool)
    if faults:
        return Condition("ValidationSucceeded", "False", "NodePoolValidationFailed", "; ".join(faults))
    return Condition("ValidationSucceeded", "True", "ValidationSucceeded")


def _class_ready(pool: NodePool, seen: NodeClassSeen | None, blobs: Blobs) -> Condition:
    """The condition NodeClassReady: a NodeClass that nobody has judged yet is not ready. Of one that is not, it says
    what the NodeClass itself says (L-253)."""
    kind, name = "NodeClassReady", pool.node_class.name
    if seen is None:
        return Condition(kind, "False", "NodeClassNotFound", f"NodeClass {name} is not there")
    if seen.reason == "Deleting":
        return Condition(kind, "False", "NodeClassTerminating", f"NodeClass {name} is being deleted")
    if seen.ready:
        return Condition(kind, "True", kind)
    if seen.reason in UNSETTLED:
        return Condition(kind, "False", "NodeClassReadinessUnknown", f"NodeClass {name} is not judged yet")
    said = next((each.message for each in class_conditions(seen, blobs) if each.type == "Ready"), "")
    return Condition(kind, "False", seen.reason, f"NodeClass {name} is not ready{': ' if said else ''}{said}")


def _registration(health: PoolHealth) -> Condition:
    """The condition NodeRegistrationHealthy: it is shown, and nothing follows from it. It tells of launches what the
    condition Launched of their NodeClaims tells (L-82, L-184)."""
    why = health.reason, health.message
    if health.status == UNHEALTHY and health.reason != REGISTRATION_FAILED:
        why = launch_failure(*why)
    return Condition("NodeRegistrationHealthy", health.status, *why, health.since)


def _requirements_met(health: PoolHealth) -> tuple[Condition, ...]:
    """The condition RequirementsMet, shown while nothing is launched for something that launches did not give. Ready
    does not follow from it: the NodePool serves pods that ask for less."""
    if not health.withheld:
        return ()
    why = not_given(Requirements.of_specs(health.withheld))
    return (Condition(REQUIREMENTS_MET, "False", LABEL_NOT_GIVEN, sentence(why)),)


def _ready(dependents: Sequence[Condition]) -> Condition:
    """The condition Ready, which follows from the others (L-68)."""
    bad = [dependent for dependent in dependents if dependent.status != "True"]
    if not bad:
        return Condition("Ready", "True", "Ready")
    return Condition("Ready", "False", "UnhealthyDependents", ", ".join(f"{e.type}={e.status}" for e in bad))


def _since(new: Condition, before: Sequence[Condition], now: int) -> Condition:
    known = next(
        (condition for condition in before if condition.type == new.type and condition.status == new.status), None
    )
    return replace(new, since=known.since if known is not None else new.since or now)


def _resources(state: State, pool: str) -> Resources:
    """Sum the resources of the nodes that are not on their way out (L-255, L-266, L-276)."""
    claims = (claim for claim in state.facts.claims.values() if claim.node_pool == pool and claim.state in STEADY)
    resources = total({**capacity_of(claim, state), "nodes": 1} for claim in claims)
    return {name: resources.get(name, 0) for name in sorted({*COUNTED, *resources})}
