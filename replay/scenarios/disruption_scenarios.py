"""Read cluster scenarios (docs/plan.md, section 3), and say what each disruption method decides.

`kerf disrupt` and the conformance test use this. A scenario that cannot be read gives a result with `result.error` and
does not stop the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.karpenter_methods import Proposal, emptiness, multi_node, single_node
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.moves.validation import DELAY, still_empty, still_valid
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.errors import KerfError
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject, condition_is_true
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Resources, is_provisionable, is_terminal
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.checks import check_scenario
from kerf.replay.scenarios.disruption_results import failed, method_of, moves_of
from kerf.replay.scenarios.errors import ScenarioError
from kerf.replay.scenarios.forms import HINT
from kerf.replay.scenarios.nodes import StateNode
from kerf.replay.scenarios.plan_scenarios import ScenarioReading

GATE = "SpotToSpotConsolidation"


def disrupt_scenario(scenario: Mapping[str, Any], catalogues: Catalogues | Mapping[str, Any]) -> dict[str, Any]:
    """Decide one scenario: `{name, family, result}`, with kerf's own set of moves under `result.kerf`."""
    known = catalogues if isinstance(catalogues, Catalogues) else Catalogues(catalogues)
    identity = {"name": str(scenario.get("name", "")), "family": str(scenario.get("family", ""))}
    if "error" in scenario and "nodes" not in scenario:
        return failed(identity, str(scenario["error"]))
    try:
        check_scenario(scenario)
        cluster = cluster_of(scenario, known)
    except KerfError as error:
        return failed(identity, str(error))
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        return failed(identity, str(ScenarioError(f"not a scenario: {error}", where=identity["name"], hint=HINT)))
    return {**identity, "result": result_of(cluster)}


def result_of(cluster: Cluster) -> dict[str, Any]:
    """Say what each method decides by itself, which method comes first, and what kerf's moves are."""
    simulator = Simulator(cluster)
    later = Simulator(replace(cluster, now=cluster.now + DELAY))
    proposals = {
        "emptiness": _empty(cluster, later),
        "multiNode": _multi(cluster, simulator, later),
        "singleNode": single_node(cluster, simulator, lambda command: still_valid(command, later) is None),
    }
    first = next((name for name, proposal in proposals.items() if proposal.command is not None), "none")
    results: dict[str, Any] = {name: method_of(proposal, cluster) for name, proposal in proposals.items()}
    moves = choose_commands(cluster)
    return {**results, "first": first, "kerf": moves_of(moves, cluster)}


def _empty(cluster: Cluster, later: Simulator) -> Proposal:
    proposal = emptiness(cluster)
    if proposal.command is None:
        return proposal
    kept = still_empty(proposal.command, later.cluster)
    return replace(proposal, command=None if isinstance(kept, Reason) else kept)


def _multi(cluster: Cluster, simulator: Simulator, later: Simulator) -> Proposal:
    proposal = multi_node(cluster, simulator)
    if proposal.command is not None and still_valid(proposal.command, later) is not None:
        return replace(proposal, command=None)
    return proposal


def cluster_of(scenario: Mapping[str, Any], catalogues: Catalogues) -> Cluster:
    """Read the cluster of a scenario, with all defaults applied (docs/plan.md, section 1.1). Raises `KerfError`."""
    return _ClusterReading(scenario, catalogues).cluster()


class _ClusterReading(ScenarioReading):
    """Reads one scenario into a Cluster."""

    def cluster(self) -> Cluster:
        pods = [self._pod(pod, bound=False) for pod in self._list("pods")]
        states = self._nodes(pods)
        budgets = tuple(
            self._object(pdb, "policy/v1", "PodDisruptionBudget", PodDisruptionBudget) for pdb in self._list("pdbs")
        )
        gates = (self.scenario.get("options") or {}).get("featureGates") or {}
        entries = self._list("nodes")
        base = self._without_doubted(self.problem())
        waiting = [pod for pod in pods if is_provisionable(pod) and not is_terminal(pod)]
        spread = self.features.spread
        return Cluster(
            now=self.now,
            nodes=tuple(
                replace(self._cluster_node(node, entry), pods=tuple(spread(list(node.pods))))
                for node, entry in zip(states, entries, strict=True)
            ),
            base=base,
            pending=tuple(spread([*waiting, *self.features.virtual_pods()])),
            pod_disruption_budgets=budgets,
            spot_to_spot=bool(gates.get(GATE, False)),
        )

    def _without_doubted(self, problem: Problem) -> Problem:
        """The question without the offerings that are in doubt: nothing is replaced by them (A-290)."""
        pools = (
            replace(given, unavailable=self.catalogues.in_doubt(self._source(given.pool.name)))
            for given in problem.pools
        )
        return replace(problem, pools=tuple(pools))

    def _cluster_node(self, state: StateNode, entry: Mapping[str, Any]) -> ClusterNode:
        node, claim = state.node, state.claim
        node_of_cluster = ClusterNode(
            place=state.input(self.shapes),
            pods=state.pods,
            managed=claim is not None,
            has_node=node is not None,
            annotations={} if node is None else node.annotations,
            capacity=_capacity(state),
            tracked=state.tracked,
            marked=state.going,
            nominated=bool(entry.get("nominated")),
            ready=node is not None and node.ready,
        )
        return node_of_cluster if claim is None else _claimed(node_of_cluster, claim)


def _capacity(state: StateNode) -> Resources:
    return state.amounts(allocatable=False)


def _claimed(node: ClusterNode, claim: NodeClaimObject) -> ClusterNode:
    since = {condition.type: condition.since for condition in claim.conditions if condition.status == "True"}
    return replace(
        node,
        created=claim.created,
        expire_after=claim.expire_after,
        grace_period=claim.termination_grace_period,
        terminating=condition_is_true(claim, "InstanceTerminating"),
        consolidatable=condition_is_true(claim, "Consolidatable"),
        drifted_since=since.get("Drifted", 0),
        initialized_since=since.get("Initialized", 0),
        last_pod_event=claim.last_pod_event,
    )
