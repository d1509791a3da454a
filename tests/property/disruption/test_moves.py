"""Moves on random clusters: held to rules that are worked out here anew, from the cluster and the commands alone."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.disruption.budgets import Use, allowance, allowed_disruptions, budget_usage
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.after_command import after
from kerf.engine.disruption.consolidation.commands import Cheaper, decide, decide_for_kerf
from kerf.engine.disruption.consolidation.karpenter_methods import emptiness, multi_node, single_node
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.sequential_search import NEEDS_A_NODE, ChosenCommands, choose_commands
from kerf.engine.disruption.eligibility import Candidate, consolidation, find_candidates, judge_node, total_price
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.disruption.moves.proposal import move_of
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from tests.support.scenarios.clusters import SIZES, capacity
from tests.support.strategies.clusters import SEEDS, bill, made, of_different_pools
from tests.support.strategies.examples import examples

SHARES = ("100%", "50%", "2", "1")


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS)
def test_moves_take_only_candidates_within_the_budgets(seed: int) -> None:
    """D-30, D-50, D-53: budgets hold for all moves together."""
    start = made(seed)
    moves = choose_commands(start)
    gone = [candidate for command in moves.commands for candidate in command.candidates]
    assert len({candidate.name for candidate in gone}) == len(gone)
    for candidate in gone:
        assert isinstance(judge_node(candidate.node, start), Candidate)
        assert candidate.node.consolidatable
    idle = [candidate for candidate in gone if candidate.empty and not candidate.node.ready]  # they are used up already
    spent = Counter(candidate.pool.name for candidate in gone if candidate not in idle)
    assert all(spent[name] <= left for name, left in allowed_disruptions(start, DisruptionReason.EMPTY).items())
    for pool, count in Counter(candidate.pool.name for candidate in idle).items():
        use, asked = budget_usage(start)[pool], next(each.pool for each in start.pools if each.pool.name == pool)
        most = allowance(asked, DisruptionReason.EMPTY, use.total, start.now).nodes
        assert use.consuming - count + sum(candidate.pool.name == pool for candidate in gone) <= most
    assert {candidate.name for candidate in gone} | set(moves.kept) == {node.name for node in start.nodes}


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS)
def test_every_pod_that_moves_has_one_place_that_holds_it(seed: int) -> None:
    """D-96: nodes take no more than they have, and none takes pods that goes itself."""
    start = made(seed)
    moves = choose_commands(start)
    names = {name for command in moves.commands for name in command.names}
    here = {node.name: Counter(node.place.available) for node in start.nodes}
    for command in moves.commands:
        moving = {pod.uid: pod for one in command.candidates for pod in one.pods}
        places = [(placement.node, uid) for placement in command.placements for uid in placement.pods if uid in moving]
        news = [uid for replacement in command.replacements for uid in replacement.claim.pods if uid in moving]
        if command.reason != DisruptionReason.EMPTY:
            assert Counter([*news, *(uid for _, uid in places)]) == Counter(list(moving))
        for target, uid in places:
            assert target not in names
            here[target].subtract({**start.shapes[moving[uid].shape].requests, "pods": 1})
        for replacement in command.replacements:
            least = min(capacity(SIZES[name])["cpu"] for name in replacement.instance_types)
            assert replacement.claim.requests["cpu"] <= least
    assert all(amount >= 0 for room in here.values() for amount in room.values())


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS)
def test_the_end_is_no_dearer_than_after_any_method_of_the_reference(seed: int) -> None:
    start = made(seed)
    moves = choose_commands(start)
    simulator = Simulator(start)
    found = (emptiness(start), multi_node(start, simulator), single_node(start, simulator))
    best = max((outcome.command.savings for outcome in found if outcome.command is not None), default=0.0)
    assert moves.end_price <= bill(start) - best + 1e-9
    saved = math.fsum(command.savings for command in moves.commands)
    assert math.isclose(moves.end_price, bill(start) - saved, abs_tol=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS, draw=st.sampled_from([made, of_different_pools]))
def test_the_bound_excludes_only_what_a_simulation_refuses(seed: int, draw: Callable[[int], Cluster]) -> None:
    start = draw(seed)
    simulator = Simulator(start)
    bound = Bound(simulator)
    for tried in sets(start, seed):
        if bound.refusal(tried):
            assert isinstance(decide(simulator, tried), Reason)


@settings(max_examples=examples(100), deadline=None)
@given(seed=SEEDS, draw=st.sampled_from([made, of_different_pools]))
def test_a_simulation_that_is_broken_off_would_have_ended_without_a_command(
    seed: int, draw: Callable[[int], Cluster]
) -> None:
    """Where a plan would open several claims, another NodePool is asked first only if it is broken off before that."""
    start = draw(seed)
    whole, simulator = Simulator(start, most_claims=1), Simulator(start, most_claims=1)
    bound = Bound(simulator)
    anything = Cheaper({pool.pool.name: -1 for pool in start.pools}, Reason("never"))
    for tried in sets(start, seed):
        expected = decide_for_kerf(whole, tried, lambda *_: anything)
        found = decide_for_kerf(simulator, tried, bound.cheaper)
        several = isinstance(expected, Reason) and expected.code == DisruptionCode.SEVERAL_REPLACEMENTS
        assert found == expected or several or (isinstance(found, Reason) and isinstance(expected, Reason))


@settings(max_examples=examples(100), deadline=None)
@given(seed=SEEDS)
def test_nodes_that_need_nodes_of_different_nodepools_do_not_go_together(seed: int) -> None:
    start = of_different_pools(seed)
    simulator = Simulator(start, most_claims=1)
    bound = Bound(simulator)
    for tried in sets(start, seed):
        alone = [(one, decide_for_kerf(simulator, [one], bound.cheaper)) for one in tried]
        needing = [one for one, found in alone if isinstance(found, Reason) and found.code in NEEDS_A_NODE]
        launched = {pool for pool, types in bound.cheaper(tried, total_price(tried)).types.items() if types}
        if needing and not launched.intersection(*map(bound.pools_of, needing)):
            assert isinstance(decide(Simulator(start, most_claims=1), tried), Reason)
            assert isinstance(decide_for_kerf(simulator, tried, bound.cheaper), Reason)


def sets(start: Cluster, seed: int) -> list[list[Candidate]]:
    """Candidates to try together: of each number, some."""
    chosen, dice = list(find_candidates(start, consolidation).chosen), random.Random(seed)
    return [dice.sample(chosen, size) for size in range(1, len(chosen) + 1)]


@settings(max_examples=examples(30), deadline=None)
@given(seed=SEEDS)
def test_equal_clusters_get_equal_moves_whatever_the_order_of_their_nodes(seed: int) -> None:
    start = made(seed)
    nodes = list(start.nodes)
    random.Random(seed + 1).shuffle(nodes)
    assert told(choose_commands(start)) == told(choose_commands(replace(start, nodes=tuple(nodes))))


def told(moves: ChosenCommands) -> list[object]:
    commands = [
        (command.decision, command.names, [new.instance_types for new in command.replacements], command.placements)
        for command in moves.commands
    ]
    return [commands, moves.end_price, sorted(moves.kept)]


@settings(max_examples=examples(30), deadline=None)
@given(seed=SEEDS)
def test_the_fleet_comes_to_rest_and_no_move_undoes_another(seed: int) -> None:
    """With the moves made and the replacements still on their way, each further move saves, none touches a
    replacement, and after a few passes nothing is left to do."""
    current, number = made(seed), 0
    for _ in range(12):
        moves = choose_commands(current)
        if not moves.commands:
            return
        for command in moves.commands:
            assert command.savings > 0 or command.reason == DisruptionReason.EMPTY
            assert not any(name.startswith("replacement-") for name in command.names)
            number += 1
            current = after(current, command, number)
    raise AssertionError("it does not come to rest")


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS)
def test_a_second_pass_leaves_alone_what_the_first_has_under_way(seed: int) -> None:
    """Neither what goes nor what takes pods, and the budgets hold for both passes together (D-50): a node that is not
    ready has been counted already."""
    start = made(seed)
    first = [move_of(command) for command in choose_commands(start).commands]
    second = choose_commands(with_moves(start, first))
    names = {node.place.claim: node.name for node in start.nodes}
    touched = {names[claim] for move in first for claim in move.claims}
    touched |= {place.node for move in first for place in move.placements}
    gone = [candidate for command in second.commands for candidate in command.candidates]
    assert not touched.intersection(candidate.name for candidate in gone)
    end = budget_usage(with_moves(start, [*first, *map(move_of, second.commands)]))
    for pool in start.pools:
        before, after_both = budget_usage(start).get(pool.pool.name, Use()), end.get(pool.pool.name, Use())
        most = allowance(pool.pool, DisruptionReason.EMPTY, before.total, start.now).nodes
        assert after_both.consuming <= max(most, before.consuming)
