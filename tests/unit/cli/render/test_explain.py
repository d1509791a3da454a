"""Explanations as text: repetitions in one line, and what holds up a drain pod by pod."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from kerf.adapters.cli.render.explain.claim import claim_text
from kerf.adapters.cli.render.explain.decision import decision_text
from kerf.adapters.cli.render.explain.explanation import pool_text
from kerf.adapters.cli.render.explain.node import methods_text, removal_text
from kerf.adapters.cli.render.explain.placement import MAX_INSTANCE_TYPES, launch_text
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint, Taint
from kerf.engine.model.labels import ZONE
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.record.observations import NodeClaimDeletionSeen, NodeClassSeen, Observation
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.explain.tracer import NearMiss, PricedType
from kerf.engine.state.load import load
from kerf.projections.prose.amounts import rounded
from kerf.replay.explain.claim import explain_claim
from kerf.replay.explain.decision import DecisionExplanation, PlanExplanation, explain_decision
from kerf.replay.explain.funnels import PlacementExplanation, PoolFunnel
from kerf.replay.explain.method_verdicts import MethodVerdict
from kerf.replay.explain.pod import explain_pod
from kerf.replay.explain.user_objects.nodepool import PoolBudget, RefusedPods, explain_pool
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.removal import Removal, RemovalMove
from kerf.replay.what_if.node import WhatWouldChange, WouldGo
from tests.support.lives import claim_of, in_service, show_taint
from tests.support.records import position_of
from tests.support.world import NODE_CLASS, World, pool
from tests.support.worlds import drift


@pytest.mark.parametrize(
    ("launches", "failed", "told"), [(77, 20, "77 launches so far, 20 of which failed"), (1, 0, "1 launch so far")]
)
def test_launches_of_a_nodepool_count_with_those_that_failed(
    launches: int, failed: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = in_service()
    explained = explain_pool(world.store, histories_of(world.store), load(world.store), "default")
    pool_text(Printer(), replace(explained, launches=launches, failed=failed))
    assert capsys.readouterr().out.endswith(f"\n{told}\n")


def test_why_no_nodepool_launches_anything_is_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare(pool("fixed", replicas=0))
    world.see(
        Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="SubnetsNotFound")),
        Observation(pool("broken")),
    )
    world.pending("web")
    world.after(1_000)
    pod_text(Printer(), explain_pod(world.store, "default/web"))
    told = capsys.readouterr().out
    assert "NodePool broken launches nothing for pods now: SubnetsNotFound: NodeClass default is not ready\n" in told
    assert "NodePool fixed launches nothing for pods now: it is static\n" in told


def test_a_limit_tells_what_nodes_on_their_way_count_as(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare(pool(limits={"cpu": 64_000}))
    world.pending("web", cpu=500)
    world.after(1_000)
    found = explain_pool(world.store, histories_of(world.store), load(world.store), "default")
    refused = RefusedPods(("default/other",), Reason("limits", {"node_pool": "default", "resources": ["cpu"]}))
    pool_text(Printer(), replace(found, refused=(refused,)))
    told = capsys.readouterr().out
    assert found.in_flight == 1
    largest = rounded(found.reserved["cpu"], "cpu")
    assert f"limit: 0 of 64 cpu; 1 node on its way counts as up to {largest} more\n" in told
    assert "leave of cpu; a node on its way counts as its largest type\n" in told


def test_amounts_of_a_limit_are_written_as_status_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    store = in_service().store
    found = explain_pool(store, histories_of(store), load(store), "default")
    amounts = {"cpu": (36_250, 1_024_000), "memory": (102_293 * 2**20, 800 * 2**30), "pods": (29, 5_000)}
    pool_text(Printer(), replace(found, limits=amounts, in_flight=1, reserved={"memory": 32_100 * 2**20}))
    told = capsys.readouterr().out
    assert "limit: 36.2 of 1,024 cpu\n" in told
    assert "limit: 99.9Gi of 800Gi memory; 1 node on its way counts as up to 31.3Gi more\n" in told
    assert "limit: 29 of 5,000 pods\n" in told


@pytest.mark.parametrize(
    ("taints", "told"),
    [
        ((Taint("tier", "NoSchedule"),), "nodeSelector: critcal is no tier that kerf knows. Is it critical?"),
        ((), "(is critical meant?)"),
    ],
)
def test_a_value_that_is_nearly_one_that_a_nodepool_gives_is_told_once(
    taints: tuple[Taint, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where something else keeps the pod from that NodePool, too, no near miss says it."""
    world = World()
    world.prepare(pool("crit", labels={"tier": "critical"}, taints=taints))
    world.see(Observation(pool("default")))
    world.pending("web", node_selector={"tier": "critcal"})
    world.pending("other", node_selector={"tier": "batch"})
    world.after(1_000)
    pod_text(Printer(), explain_pod(world.store, "default/web"))
    hints = [
        line for line in capsys.readouterr().out.splitlines() if "s it critical?" in line or "critical meant" in line
    ]
    assert [line.endswith(told) for line in hints] == [True]
    pod_text(Printer(), explain_pod(world.store, "default/other"))
    assert "s it critical?" not in capsys.readouterr().out


def test_c2_a_nodepool_tells_how_many_of_its_nodes_have_drifted_and_by_what(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = drift.in_service()
    before = explain_pool(world.store, histories_of(world.store), load(world.store), "default")
    drift.change(world, labels={"team": "b"})
    found = explain_pool(world.store, histories_of(world.store), load(world.store), "default")
    assert (before.drifted, found.drifted) == ({}, {"NodePoolDrifted": 1})
    pool_text(Printer(), before)
    assert "drifted" not in capsys.readouterr().out.replace("to go as drifted", "")
    pool_text(Printer(), replace(found, drifted={"AMIDrift": 1_200, "NodePoolDrifted": 1}))
    assert "of its nodes 1,201 drifted (1,200 AMIDrift, 1 NodePoolDrifted)\n" in capsys.readouterr().out


def test_a_budget_that_leaves_nothing_says_until_when_and_what_uses_it_up(capsys: pytest.CaptureFixture[str]) -> None:
    store = in_service().store
    found = explain_pool(store, histories_of(store), load(store), "default")
    terms = Budget(nodes="1", schedule="0 9 * * mon-fri", duration=8 * 3_600_000)
    ends = 1_767_286_800_000
    closed = PoolBudget("empty", 0, least=1, terms=terms, ends=ends, consuming=2)
    pool_text(Printer(), replace(found, budgets=(closed, replace(closed, reason="drifted"))))
    assert (
        "its disruption budgets leave 0 nodes to go; budgets[1]: nodes 1, schedule 0 9 * * mon-fri (UTC) for 8h, "
        "until 2026-01-01T17:00:00.000Z, with 2 nodes going or not ready\n"
    ) in capsys.readouterr().out


def test_a_spread_is_told_with_its_min_domains(capsys: pytest.CaptureFixture[str]) -> None:
    """S-138: the fewest pods of a domain count as 0 then, though there are more."""
    world = World()
    world.prepare()
    nowhere = SpreadConstraint("rack", selector=Selector({"app": "web"}), min_domains=4)
    world.pending("web", spread=(nowhere,))
    world.after(1_000)
    pod_text(Printer(), explain_pod(world.store, "default/web"))
    told = (
        "its spread over rack counts pods with app=web; with fewer than 4 domains (minDomains) the fewest pods of one"
    )
    assert f"{told} count as 0\n" in capsys.readouterr().out


def test_a_rule_of_topology_is_told_with_its_selector(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare()
    terms = (
        AffinityTerm(ZONE, Selector({"app": "cache"}), namespaces=("shop", "store")),
        AffinityTerm(ZONE, Selector()),
    )
    world.pending("web", affinity=terms)
    world.after(1_000)
    pod_text(Printer(), explain_pod(world.store, "default/web"))
    told = capsys.readouterr().out
    assert f"its affinity over {ZONE} counts pods with app=cache, in namespace shop, store\n" in told
    assert f"its affinity over {ZONE} counts all pods\n" in told


def test_decisions_that_came_to_the_same_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare()
    world.pending("big", memory=10**13)
    world.after(1_000)
    for name in "xyz":
        world.pending(name, memory=10**13)
        world.after(1_000)
    found = explain_pod(world.store, "default/big")
    assert len(found.looks) == 4
    pod_text(Printer(), found)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("decision ")]
    assert line.endswith(f": no place (and 3 times more, last by decision {found.looks[-1].position})")


def test_a_stuck_drain_says_which_pods_and_for_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    """D-148: without a grace period a drain waits for as long as its pods stay."""
    world = in_service()
    name = claim_of(world).name
    world.see(Observation(NodeClaimDeletionSeen(name)))
    world.answer_all()
    show_taint(world)
    world.answer_all(ok=False, code="429")
    claim_text(Printer(), explain_claim(world.store, name))
    out = capsys.readouterr().out
    assert "  default/a: the eviction (429) was refused: it is tried again after a pause\n" in out
    assert "  without a terminationGracePeriod it waits for as long as they stay\n" in out
    assert "it waits: 5 pods still to leave\n" in out


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (("p-1",), ["it saves $2.0000/h; "]),
        (("p-1", "p-2"), ["2 nodes went together: p-1, p-2", "together they save $2.0000/h; "]),
    ],
)
def test_what_a_move_saves_is_not_said_of_one_of_its_nodes(
    capsys: pytest.CaptureFixture[str], claims: tuple[str, ...], said: list[str]
) -> None:
    move = RemovalMove(
        ref="9.0", why="underutilized", proposed=8, started=9, looked_again=0, savings=2.0, claims=claims
    )
    removal = Removal(why="underutilized", reason=Reason("underutilized"), position=10, at=0, decision=9, move=move)
    removal_text(Printer(), removal, "underutilized")
    told = [line.strip() for line in capsys.readouterr().out.splitlines()][2 : 2 + len(said)]
    assert [line.removesuffix("proposed by decision 8, started by decision 9") for line in told] == said


def explained(plan: PlanExplanation) -> DecisionExplanation:
    return DecisionExplanation(
        position=1, decider="provision", now=0, looked_at=0, version=1, version_today=1, same=True,
        result=ProvisionResult(), intents=0, repeats=0, plans=(plan,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("types", "said"),
    [(45, "share the node\n"), (MAX_INSTANCE_TYPES, "share the node, or dearer than the 600 cheapest\n")],
)
def test_the_counts_of_a_funnel_add_up(capsys: pytest.CaptureFixture[str], types: int, said: str) -> None:
    """S-162: a NodeClaim names the cheapest types only, which the last step of the funnel says."""
    pool = PoolFunnel(node_pool="p", types=900, cuts=(), left=900, cheapest=(), near=(), reason=None, weight=7)
    how = PlacementExplanation(
        decision=1, version=1, same=True, pods=1, requests={}, requirements=(), refused=(), pools=(pool,),
        chosen=(PricedType("c5.large", 0.085),), chosen_types=types, reasons=(),
    )  # fmt: skip
    decision_text(Printer(), explained(PlanExplanation(claim="p-1", pods=("default/a",), how=how)), [])
    told = capsys.readouterr().out
    assert f"    -{900 - types:<5} too small for all pods that {said}" in told
    assert "  NodePool p, of weight 7: 900 instance types considered" in told


def test_why_a_pod_has_no_place_and_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    """What binds the pods, what they gave up, the nearest miss and one of another kind; else that there is none."""
    near = (
        NearMiss("requirement", 3, "a", "zone", ("z1",), side="pod"),
        NearMiss("requirement", 2, "b", "arch", ("arm64",), side="pod"),
        NearMiss("limits", 1, "c", "cpu", short=1000),
    )
    refused = Reason("limits", {"node_pool": "p", "resources": ["cpu"]})
    pools = tuple(
        PoolFunnel(node_pool=name, types=4, cuts=(), left=0, cheapest=(), near=misses, reason=refused)
        for name, misses in (("p", near), ("q", ()))
    )
    how = PlacementExplanation(
        decision=1, version=1, same=True, pods=1, requests={}, requirements=("zone In [z2]",), refused=(), pools=pools,
        chosen=(), chosen_types=0, reasons=(), rules=(("spread", "rack"),), gave_up=(RelaxedPreference("soft-taints"),),
    )  # fmt: skip
    decision_text(Printer(), explained(PlanExplanation(claim="", pods=("default/a",), how=how)), [])
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "1 pod of this kind: no requests; zone In [z2], spread over rack" in told
    assert "it gave up to keep off taints that are PreferNoSchedule" in told
    misses = [line for line in told if line.startswith(("nearest", "or:", "no nearest"))]
    assert misses == [
        "nearest miss: 3 types would do if the pods allowed z1 for zone, a first",
        "or: 1 type would do if the NodePool's limits left 1 more cpu, c first",
        "no nearest miss: no single change would let a type through",
    ]


def test_each_kind_of_pods_on_a_new_node_says_what_it_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare()
    world.pending("a", cpu=750, memory=2 << 30)
    world.pending("b", "c", cpu=500, memory=1 << 30)
    world.after(1_000)
    position = position_of(world.store, "decision.made")
    decision_text(Printer(), explain_decision(world.store, position), [])
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "1 pod of this kind: 750m cpu, 2Gi memory" in told
    assert "another kind: default/b, default/c: 500m cpu, 1Gi memory each" in told


def test_of_the_pools_that_a_launch_names_the_first_are_told_and_how_many_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = in_service().runtime.state
    launch = explain_claim(in_service().store, next(iter(state.facts.claims))).launch
    assert launch is not None
    for offers, said in ((len(launch.cheapest[:3]), "/h"), (9, f"/h and {9 - len(launch.cheapest[:3])} more")):
        launch_text(Printer(), replace(launch, offers=offers))
        assert capsys.readouterr().out.splitlines()[0].endswith(said)


def test_a_type_that_nobody_sells_now_has_no_price(capsys: pytest.CaptureFixture[str]) -> None:
    """S-164: beside reserved capacity a node may become types of which there is none on offer."""
    chosen = (PricedType("c5.large", 0.085), PricedType("c5.xlarge", math.inf))
    how = PlacementExplanation(
        decision=1, version=1, same=True, pods=1, requests={}, requirements=(), refused=(), pools=(), chosen=chosen,
        chosen_types=2, reasons=(),
    )  # fmt: skip
    plan = PlanExplanation(claim="p-1", pods=("default/a",), how=how)
    decision_text(Printer(), explained(plan), [])
    out = capsys.readouterr().out
    assert "  dearer: c5.xlarge (none on offer)\n" in out
    assert "inf" not in out


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (("m5.large",), "for a m5.large at $0.3000/h"),
        (("c6a.large",) * 4, "for 4 c6a.large at $0.3000/h"),
        (("m5.large", "c6a.large", "m5.large"), "for 2 m5.large and a c6a.large at $0.3000/h"),
    ],
)
def test_new_nodes_of_one_type_are_counted(
    capsys: pytest.CaptureFixture[str], types: tuple[str, ...], said: str
) -> None:
    way = WhatWouldChange(verdict=None, goes=WouldGo(claims=("p-1",), replacements=types, price=0.3))
    methods_text(Printer(), (MethodVerdict(method="drift", reason=Reason("drifted"), acts=True, way=way),))
    assert f"it would go: {said}\n" in capsys.readouterr().out
