"""Sets of nodes that are chosen as a whole, on random clusters: held to rules that are worked out here anew."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.disruption.budgets import allowed_disruptions
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import approves, pool_totals
from kerf.engine.disruption.consolidation.joint_search import JointRemoval, find_joint_removal
from kerf.engine.disruption.consolidation.sequential_search import ChosenCommands
from kerf.engine.disruption.eligibility import Candidate, consolidation, find_candidates, judge_node
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodepools import Budget
from tests.support.strategies.clusters import SEEDS, bill, made
from tests.support.strategies.examples import examples


def opened(seed: int) -> Cluster:
    """A random cluster whose budgets let all nodes go."""
    start = made(seed)
    pools = [replace(pool, pool=replace(pool.pool, budgets=(Budget("100%"),))) for pool in start.pools]
    return replace(start, base=replace(start.base, pools=tuple(pools)))


def closed(seed: int) -> Cluster:
    """A random cluster whose budgets let one node of each NodePool go at a time."""
    start = made(seed)
    pools = [replace(pool, pool=replace(pool.pool, budgets=(Budget("1"),))) for pool in start.pools]
    return replace(start, live=True, base=replace(start.base, pools=tuple(pools)))


def going(moves: ChosenCommands) -> list[Candidate]:
    return [candidate for command in moves.commands for candidate in command.candidates]


@settings(max_examples=examples(80), deadline=None)
@given(seed=SEEDS)
def test_only_candidates_go_and_the_budgets_would_let_all_of_them(seed: int) -> None:
    """Only candidates go and the budgets would let all of them (D-30, D-51, D-81)."""
    start = opened(seed)
    found = find_joint_removal(start).commands
    if found is None:
        return
    gone = going(found)
    assert len({candidate.name for candidate in gone}) == len(gone)
    assert all(
        isinstance(judge_node(candidate.node, start), Candidate) and candidate.node.consolidatable for candidate in gone
    )
    spent = Counter(candidate.pool.name for candidate in gone)
    for reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED):
        assert all(spent[name] <= left for name, left in allowed_disruptions(start, reason).items())
    totals = pool_totals(start, find_candidates(start, consolidation).eligible)
    assert all(approves(command, totals) for command in found.commands if command.reason != DisruptionReason.EMPTY)
    assert {candidate.name for candidate in gone} | set(found.kept) == {node.name for node in start.nodes}


@settings(max_examples=examples(80), deadline=None)
@given(seed=SEEDS, rounds=st.integers(2, 9))
def test_d51_in_rounds_more_nodes_go_than_at_once_and_no_more_than_the_rounds_let(seed: int, rounds: int) -> None:
    start = closed(seed)
    found = find_joint_removal(start, rounds=rounds)
    assert find_joint_removal(start) == JointRemoval() or not found.in_rounds
    if found.commands is None or not found.in_rounds:
        return
    gone = going(found.commands)
    assert found.waves == ()
    busy = Counter(candidate.pool.name for candidate in gone if candidate.pods)
    assert sum(busy.values()) > len(busy)
    spent = Counter(candidate.pool.name for candidate in gone)
    used = Counter(node.node_pool for node in start.nodes if node.initialized and (node.marked or not node.ready))
    assert all(spent[name] <= rounds - used[name] for name in spent)
    assert {candidate.name for candidate in gone} | set(found.commands.kept) == {node.name for node in start.nodes}


@settings(max_examples=examples(80), deadline=None)
@given(seed=SEEDS, rounds=st.sampled_from([1, 8]))
def test_every_pod_has_a_place_on_what_stays_and_all_of_them_fit(seed: int, rounds: int) -> None:
    """D-96: no pod moves twice, and nothing is launched."""
    start = opened(seed) if rounds == 1 else closed(seed)
    found = find_joint_removal(start, rounds=rounds).commands
    if found is None:
        return
    names = {candidate.name for candidate in going(found)}
    here = {node.name: Counter(node.place.available) for node in start.nodes if node.name not in names}
    for command in found.commands:
        empty = command.reason == DisruptionReason.EMPTY
        moving = {} if empty else {pod.uid: pod for candidate in command.candidates for pod in candidate.pods}
        assert Counter(uid for placement in command.placements for uid in placement.pods) == Counter(list(moving))
        assert not command.replacements
        for place in command.placements:
            for uid in place.pods:
                here[place.node].subtract({**start.shapes[moving[uid].shape].requests, "pods": 1})
    assert all(amount >= 0 for room in here.values() for amount in room.values())
    saved = math.fsum(command.savings for command in found.commands)
    assert saved > 0
    assert math.isclose(found.end_price, bill(start) - saved, abs_tol=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS)
def test_equal_clusters_get_equal_sets_whatever_the_order_of_their_nodes(seed: int) -> None:
    start = opened(seed)
    there, back = find_joint_removal(start), find_joint_removal(replace(start, nodes=start.nodes[::-1]))
    assert (there.waves, there.steps) == (back.waves, back.steps)
    assert (there.commands is None) == (back.commands is None)
    if there.commands is not None and back.commands is not None:
        assert [command.names for command in there.commands.commands] == [
            command.names for command in back.commands.commands
        ]
        assert there.commands.end_price == back.commands.end_price
