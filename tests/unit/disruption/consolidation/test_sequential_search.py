"""kerf's own set of moves (issue 5, point 3)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.budgets import empty_within_budgets
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation import sequential_search
from kerf.engine.disruption.consolidation.after_command import after
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.eligibility import consolidation, emptiness, find_candidates
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, Taint, Toleration
from kerf.engine.model.labels import HOSTNAME, INSTANCE_TYPE
from tests.support.scenarios.clusters import CATALOGUE, ON_DEMAND, cluster, node, pending, pod, pool, price


def test_nodes_that_go_without_a_replacement_go_each_by_itself() -> None:
    given = cluster(
        *(node(f"n{n}", "small", pod(f"p{n}", 600)) for n in range(3)), node("big", "large", pod("q", 5_000))
    )
    moves = choose_commands(given)
    assert [command.names for command in moves.commands] == [("n0",), ("n1",), ("n2",)]
    assert [[(to.node, to.pods) for to in command.placements] for command in moves.commands] == [
        [("big", (f"uid-p{n}",))] for n in range(3)
    ]
    assert moves.end_price == pytest.approx(price("large"))
    assert moves.kept["big"].code == "takes-pods"


def test_of_ends_that_cost_the_same_the_one_with_fewer_evictions_counts() -> None:
    pods = [pod(f"p{n}", 100) for n in range(5)]
    moves = choose_commands(
        cluster(node("a", "medium", *pods), node("b", "medium", pod("q", 100)), pools=(pool(limits={"cpu": 0}),))
    )
    assert [command.names for command in moves.commands] == [("b",)]
    assert moves.evictions == 1


@pytest.mark.parametrize(("live", "goes"), [(False, "crowded"), (True, "emptier")])
def test_the_live_controller_counts_what_evictions_cost_when_it_ranks_commands(live: bool, goes: str) -> None:
    """The large node takes the pods of one other node. The crowded one is dearer, and has four pods to move."""
    nodes = [
        node("a-large", "large", pod("x", 3_400), pod("y", 3_400)),
        node("crowded", "medium", *(pod(f"c{n}", 200) for n in range(4))),
        node("emptier", "small", pod("e", 800)),
    ]
    given = replace(cluster(*nodes, pools=(pool(limits={"cpu": 0}),)), live=live)
    assert [command.names for command in choose_commands(given).commands] == [(goes,)]


@pytest.mark.parametrize(
    ("budget", "dead", "goes"), [("1", 1, ["dead0"]), ("1", 2, []), ("0", 1, []), ("2", 2, ["dead0", "dead1"])]
)
def test_d50_d60_empty_nodes_that_are_not_ready_use_the_budget_already(budget: str, dead: int, goes: list[str]) -> None:
    """They go, and nothing else does. Where more are not ready than the budget lets go, all stay."""
    nodes = [*(node(f"dead{n}", "small", ready=False) for n in range(dead)), node("idle", "small")]
    given = cluster(*nodes, pools=(pool(budgets=(Budget(budget),)),))
    moves = choose_commands(given)
    assert sorted(name for command in moves.commands for name in command.names) == goes
    assert moves.kept["idle"].code == "budget"
    empty = find_candidates(given, emptiness).chosen
    assert [candidate.name for candidate in empty_within_budgets(empty, given)] == goes


def test_empty_nodes_and_others_go_in_one_set_within_one_budget() -> None:
    nodes = [node("idle", "small"), node("half", "large", pod("a")), node("full", "small", pod("b", 1_400))]
    both = choose_commands(cluster(*nodes))
    assert sorted(name for command in both.commands for name in command.names) == ["half", "idle"]
    one = choose_commands(cluster(*nodes, pools=(pool(budgets=(Budget("1"),)),)))
    assert [command.names for command in one.commands] == [("half",)]
    assert one.kept["idle"].code == "budget"


def test_a_pending_pod_goes_along_with_one_replacement_only() -> None:
    nodes = [node(f"n{n}", "large", pod(f"p{n}", 5_000)) for n in range(2)]
    moves = choose_commands(cluster(*nodes, pending=(pending("w", 3_500),)))
    news = [uid for command in moves.commands for new in command.replacements for uid in new.claim.pods]
    assert len(news) == len(set(news))


def test_the_search_ends_by_its_steps_and_says_so() -> None:
    given = cluster(*(node(f"n{n}", "large", pod(f"p{n}", 3_000)) for n in range(6)))
    whole, short = choose_commands(given), choose_commands(given, steps=1)
    assert (whole.exhausted, short.exhausted) == (False, True)
    assert whole.end_price <= short.end_price <= 6 * price("large")


def test_nothing_to_do_gives_every_node_its_reason() -> None:
    given = cluster(node("a", "small", pod("p", 1_900)), node("b", "small", pod("q", 1_900), nominated=True))
    moves = choose_commands(given)
    assert moves.commands == ()
    assert {name: why.code for name, why in moves.kept.items()} == {"a": "nothing-cheaper", "b": "nominated"}


def test_what_no_cheaper_node_can_hold_is_not_simulated() -> None:
    """Their pods fit on no other node, and no type below their price holds them together."""
    given = cluster(*(node(f"n{n}", "large", pod(f"p{n}", 7_000)) for n in range(4)))
    simulator = Simulator(given)
    candidates = list(find_candidates(given, consolidation).chosen)
    assert Bound(simulator).refusal(candidates[:1])
    assert Bound(simulator).refusal(candidates)
    assert simulator.work == 0
    roomier = Simulator(cluster(*given.nodes, node("spare", "large")))
    assert not Bound(roomier).refusal(candidates[:1])
    used = [1, 4, 7, 7]  # thousands of mCPU; each pod by itself fits on the first node
    nodes = [node(f"n{n}", "large", *(pod(f"p{n}-{k}", 500) for k in range(2 * size))) for n, size in enumerate(used)]
    crowded = cluster(*nodes)
    leaving = [candidate for candidate in find_candidates(crowded, consolidation).chosen if candidate.name != "n0"]
    assert len(leaving) == 3
    assert Bound(Simulator(crowded)).refusal(leaving)
    assert not Bound(Simulator(crowded)).refusal(leaving[:1])
    cheaper = Simulator(cluster(*given.nodes, pools=(pool(requirements=()),)))
    assert not Bound(cheaper).refusal(candidates[:1])


def test_searches_that_take_the_same_command_first_ask_about_the_rest_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Command] = []

    def counted(given: Cluster, command: Command, number: int) -> Cluster:
        made.append(command)
        return after(given, command, number)

    monkeypatch.setattr(sequential_search, "after", counted)
    assert len(choose_commands(cluster(node("a", "large", pod("p", 600)))).commands) == 1
    assert len(made) == 1  # not one for each of the three rankings


# ── why the others stay ────────────────────────────────────────────────────────────────────────────────────────────


def test_d30_what_excludes_a_node_is_said_although_it_takes_pods() -> None:
    """It would stay without them, too."""
    held = node("held", "large", pod("q", do_not_disrupt="true"))
    moves = choose_commands(cluster(node("a", "small", pod("p", 600)), held))
    assert [command.names for command in moves.commands] == [("a",)]
    assert moves.kept["held"].code == "pod-do-not-disrupt"


def test_d83_a_hopeless_candidate_is_not_worth_it_and_no_budget_is_short() -> None:
    dear = [pod(f"d{number}", 10, deletion_cost=1 << 30) for number in range(5)]
    given = cluster(
        node("dear", "small", *dear),
        node("large", "large", pod("p", 6_000)),
        pools=(pool(consolidation_policy="Balanced"),),
    )
    assert choose_commands(given).kept["dear"].code == "not-worth-it"


def test_d90_without_a_nodepool_that_may_launch_it_says_so() -> None:
    """Its own NodePool is there, and only not ready."""
    nodes = (node("a", "small", pod("p", 600)), node("b", "small", pod("q", 600)))
    assert {reason.code for reason in choose_commands(cluster(*nodes, pools=(pool(ready=False),))).kept.values()} == {
        "no-usable-nodepool"
    }


def test_a_node_that_the_search_did_not_come_to_says_so() -> None:
    given = cluster(*(node(f"n{n}", "large", pod(f"p{n}", 3_000)) for n in range(6)))
    assert {reason.code for reason in choose_commands(given, steps=0).kept.values()} == {"search-ended"}


def test_d98_what_is_launched_where_there_is_no_spot_has_its_price() -> None:
    """Step 8 asks for spot alone; the reference counts nothing for it then (D-100), and saves the more."""
    sold = tuple(
        replace(
            instance_type,
            offerings=tuple(
                replace(offer, available=offer.capacity_type != "spot") for offer in instance_type.offerings
            ),
        )
        for instance_type in CATALOGUE.types
    )
    given = cluster(node("a", "large", pod("p", 600)), catalogue=Catalogue(sold), pools=(pool(requirements=()),))
    (command,) = choose_commands(given).commands
    (new,) = command.replacements
    assert (new.instance_types[0], new.capacity_types) == ("small", ("on-demand",))
    assert command.savings == pytest.approx(price("large") - price("small"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    """The sets of nodes that are simulated."""
    found: list[frozenset[str]] = []
    simulate = Simulator._simulate

    def noted(simulator: Simulator, leaving: frozenset[str], *more: Any) -> SimulationOutcome:
        found.append(leaving)
        return simulate(simulator, leaving, *more)

    monkeypatch.setattr(Simulator, "_simulate", noted)
    return found


def test_the_longest_set_that_may_go_is_found_by_bisection(asked: list[frozenset[str]]) -> None:
    """No two of these pods may share a node, so the set of all 30 needs 30 new ones."""
    apart = AffinityTerm(HOSTNAME, Selector({"app": "web"}))
    pods = [pod(f"p{n}", 100, labels={"app": "web"}, anti_affinity=(apart,)) for n in range(30)]
    moves = choose_commands(cluster(*(node(f"n{n:02}", "small", each) for n, each in enumerate(pods))))
    assert (moves.commands, moves.exhausted) == ((), False)
    assert 0 < sum(len(names) > 1 for names in asked) <= 3 * 5  # three orders, of 30 nodes each


def test_a_node_of_the_cheapest_type_that_its_nodepool_allows_is_not_replaced() -> None:
    """Smaller types cost less, but none is launched for it."""
    sizes = RequirementSpec(INSTANCE_TYPE, "In", ("medium", "large"))
    nodes = [node("a", "medium", pod("p", 600), pod("q", 600)), node("b", "large", pod("r", 7_000))]
    given = cluster(*nodes, pools=(pool(requirements=(ON_DEMAND, sizes)),))
    bound = Bound(Simulator(given))
    candidates = {candidate.name: candidate for candidate in find_candidates(given, consolidation).chosen}
    assert bound.cheaper([candidates["a"]], price("medium")).types == {"default": 0}
    assert bound.cheaper([candidates["b"]], price("large")).types == {"default": 1 << 1}
    kept = choose_commands(given).kept
    assert {name: kept[name].code for name in kept} == {"a": "nothing-cheaper", "b": "nothing-cheaper"}


def test_nodes_that_need_nodes_of_two_nodepools_are_not_simulated_together(asked: list[frozenset[str]]) -> None:
    nodes, pools = [], []
    for name in ("a", "b"):
        taints = (Taint(name, "NoSchedule", ""),)
        pools.append(pool(name, taints=taints))
        for n in range(2):
            one = pod(f"p-{name}{n}", 1_100, tolerations=(Toleration(name, "Exists"),))
            made = node(f"{name}{n}", "small", one, pool=name)
            nodes.append(replace(made, place=replace(made.place, taints=taints)))
    assert choose_commands(cluster(*nodes, pools=tuple(pools))).commands == ()
    assert not [names for names in asked if {name[0] for name in names} == {"a", "b"}]
