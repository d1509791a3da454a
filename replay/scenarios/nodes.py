"""Turn the Nodes and NodeClaims of a scenario into nodes of the planner's problem (S-50, S-68…S-74)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject, condition_is_true
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    DAEMONSET,
    Pod,
    PodShape,
    Resources,
    Taint,
    assumed,
    is_terminal,
    owned_by,
    scored,
)
from kerf.engine.model.labels import INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED
from kerf.engine.nodeclaim.ephemeral_taints import counting_taints
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.problem.problem import NodeInput


class StateNode(Struct, frozen=True):
    """One entry of `nodes`: a Node, a NodeClaim, or both, with the pods bound to it. Karpenter calls this a
    StateNode."""

    node: Node | None
    claim: NodeClaimObject | None
    pods: tuple[Pod, ...]
    marked: bool = False

    @property
    def managed(self) -> bool:
        return self.claim is not None or bool(self.node and self.node.labels.get(NODEPOOL))

    @property
    def registered(self) -> bool:
        if not self.managed:
            return True
        return self.node is not None and self.node.labels.get(REGISTERED) == "true"

    @property
    def initialized(self) -> bool:
        if not self.managed:
            return True
        return self.node is not None and self.node.labels.get(INITIALIZED) == "true"

    @property
    def tracked(self) -> bool:
        """Whether Karpenter's cluster state would know this node at all (S-71)."""
        if self.node is None:
            return self.claim is not None and bool(self.claim.provider_id)
        if not self.node.labels.get(NODEPOOL):
            return True
        has_type = INSTANCE_TYPE in self.node.labels or self.node.labels.get(INITIALIZED) == "true"
        return bool(self.node.provider_id) and has_type

    @property
    def going(self) -> bool:
        """Whether the node is marked for deletion (S-50)."""
        if self.marked:
            return True
        if self.claim is not None:
            return bool(self.claim.deleting) or condition_is_true(self.claim, "InstanceTerminating")
        return bool(self.node and self.node.deleting)

    @property
    def name(self) -> str:
        """The Node's name once it is registered, the claim's before (S-71)."""
        if self.node is not None and (self.registered or self.claim is None):
            return self.node.name
        return self.claim.name if self.claim is not None else ""

    @property
    def labels(self) -> dict[str, str]:
        if self.node is not None and (self.registered or self.claim is None):
            return self.node.labels
        return self.claim.labels if self.claim is not None else {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that scheduling looks at: startup and ephemeral ones do not count before initialization (S-72)."""
        if self.node is not None and (self.registered or self.claim is None):
            own = self.node.taints
        else:
            own = self.claim.taints if self.claim is not None else ()
        if self.initialized:
            return own
        return counting_taints(own, self.claim.startup_taints if self.claim is not None else ())

    def amounts(self, allocatable: bool) -> Resources:
        """The node's resources. Until it is initialized, what the Node does not report yet comes from the NodeClaim
        (S-73)."""
        node = {} if self.node is None else self.node.allocatable if allocatable else self.node.capacity
        if self.initialized or self.claim is None:
            return node
        promised = self.claim.allocatable if allocatable else self.claim.capacity
        return {**promised, **{name: amount for name, amount in node.items() if amount}}

    def input(self, shapes: Mapping[str, PodShape]) -> NodeInput:
        """Make the planner's node. Requests for a resource that the node does not have take nothing away (S-74)."""
        alive = [pod for pod in self.pods if not is_terminal(pod)]
        daemons = [pod for pod in alive if owned_by(pod, DAEMONSET)]
        room, used = self.amounts(allocatable=True), requests_of(alive, shapes)
        return NodeInput(
            name=self.name,
            claim=self.claim.name if self.claim is not None else "",
            labels=self.labels,
            taints=self.taints,
            available={name: amount - used.get(name, 0) for name, amount in room.items()},
            initialized=self.initialized,
            bound_daemons=requests_of(daemons, shapes),
            assumed=total(assumed(shapes[pod.shape].requests) for pod in alive if not owned_by(pod, DAEMONSET)),
            total=scored(room),
            host_ports=tuple(port for pod in alive for port in shapes[pod.shape].host_ports),
        )


def requests_of(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> Resources:
    return total({**shapes[pod.shape].requests, "pods": 1} for pod in pods)


def usage(nodes: Iterable[StateNode], pool: str) -> Resources:
    """Sum the capacity of the NodePool's active nodes (S-68)."""
    own = [node for node in nodes if not node.going and node.labels.get(NODEPOOL) == pool]
    return total({**node.amounts(allocatable=False), "nodes": 1} for node in own)
