"""Where the pods of drifted nodes go, as kube-scheduler would place them.

kube-scheduler does not know the plan. Where a plan fits exactly, it may leave a pod without a node. Such a pod then
waits until a further node is launched. A drifted node has to go whatever it costs (D-65). So where a pod may be left
over, the node gets a replacement that holds all of its pods.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.disruption.rebinding import MAX_CHECKS, Rebinding
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.scheduling.plan import OpenedClaim


class DriftDestinations:
    """Destinations of one pass. Its drifted nodes go at the same time, so kube-scheduler's model is asked about all of
    them together."""

    def __init__(self, cluster: Cluster, *, ask_scheduler: bool) -> None:
        """`cluster` is as it is before any of the nodes goes.

        With `ask_scheduler`, the model of kube-scheduler is asked about each node that goes and those before it. That
        takes longer with every node, so it is asked `MAX_CHECKS` times; further nodes each get a replacement of their
        own.
        """
        self._rebinding = Rebinding(cluster)
        self._checks = MAX_CHECKS if ask_scheduler else 0
        self._ask_scheduler = ask_scheduler
        self._names: list[str] = []
        self._claims: list[OpenedClaim] = []
        self._pods_move = False

    def find(self, cluster: Cluster, candidate: Candidate) -> SimulationOutcome:
        """Destinations for the pods of the next node that goes. In `cluster` the nodes before it are under way."""
        outcome = Simulator(cluster, prepared=False).without([candidate.name], consolidating=False)
        if (
            self._ask_scheduler
            and candidate.pods
            and outcome.failure is None
            and self._may_leave_over(candidate, outcome)
        ):
            only_new_nodes = Simulator(_without_free_capacity(cluster, candidate.name), prepared=False)
            replaced = only_new_nodes.without([candidate.name], consolidating=False)
            if replaced.failure is None and not (self._checks and self._may_leave_over(candidate, replaced)):
                outcome = replaced
        if outcome.failure is None:
            self._names.append(candidate.name)
            self._claims += outcome.claims
            self._pods_move |= bool(candidate.pods)
        return outcome

    def may_leave_pods_over(self) -> bool:
        """Whether kube-scheduler may leave pods of the nodes that go without a node."""
        return self._pods_move and bool(self._rebinding.unbound(self._names, self._claims))

    def _may_leave_over(self, candidate: Candidate, outcome: SimulationOutcome) -> bool:
        if not self._checks:
            return True
        self._checks -= 1
        return bool(self._rebinding.unbound([*self._names, candidate.name], [*self._claims, *outcome.claims]))


def _without_free_capacity(cluster: Cluster, name: str) -> Cluster:
    """The cluster in which only this node's pods move, and only onto new nodes."""
    nodes = tuple(node if node.name == name else _full(node) for node in cluster.nodes)
    return replace(cluster, nodes=nodes, pending=())


def _full(node: ClusterNode) -> ClusterNode:
    return replace(node, place=replace(node.place, available={}), pods=() if node.marked else node.pods)
