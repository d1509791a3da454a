"""Places for the pods of drifted nodes, as the cluster's scheduler would find them.

A plan that fits exactly may leave a pod over that waits for a node then. A drifted node has to go whatever it costs
(D-65), so where that may happen it gets a replacement that holds all its pods.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption.binding import CHECKS, Binding
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.disruption.simulation import Outcome, Simulator
from kerf.engine.scheduling.plan import OpenedClaim


class DriftPlaces:
    """Of one pass: its drifted nodes go at once, so the scheduler is asked of all of them together."""

    def __init__(self, cluster: Cluster, *, asking: bool) -> None:
        """`cluster`: before any of them goes. `asking`: of each node that goes, and of those before it; a few times,
        for what is asked grows with them, and after that each gets a replacement of its own."""
        self._binding = Binding(cluster)
        self._checks = CHECKS if asking else 0
        self._asking = asking
        self._names: list[str] = []
        self._claims: list[OpenedClaim] = []
        self._moving = False

    def found(self, cluster: Cluster, candidate: Candidate) -> Outcome:
        """What becomes of the pods of the next node that goes. `cluster`: with those before it under way."""
        outcome = Simulator(cluster, prepared=False).without([candidate.name], consolidating=False)
        if outcome.failure is None and self._asking and candidate.pods and self._may_leave_over(candidate, outcome):
            own = Simulator(_without_room(cluster, candidate.name), prepared=False)
            by_itself = own.without([candidate.name], consolidating=False)
            if by_itself.failure is None and not (self._checks and self._may_leave_over(candidate, by_itself)):
                outcome = by_itself
        if outcome.failure is None:
            self._names.append(candidate.name)
            self._claims += outcome.claims
            self._moving |= bool(candidate.pods)
        return outcome

    def left_over(self) -> bool:
        """Whether the scheduler may leave over pods of the nodes that go."""
        return self._moving and bool(self._binding.left_over(self._names, self._claims))

    def _may_leave_over(self, candidate: Candidate, outcome: Outcome) -> bool:
        if not self._checks:
            return True
        self._checks -= 1
        return bool(self._binding.left_over([*self._names, candidate.name], [*self._claims, *outcome.claims]))


def _without_room(cluster: Cluster, name: str) -> Cluster:
    """Only the pods of this node move, and only new nodes are places for them."""
    nodes = tuple(each if each.name == name else _full(each) for each in cluster.nodes)
    return replace(cluster, nodes=nodes, pending=())


def _full(node: ClusterNode) -> ClusterNode:
    return replace(node, place=replace(node.place, available={}), pods=() if node.marked else node.pods)
