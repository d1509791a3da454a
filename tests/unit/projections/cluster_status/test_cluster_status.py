"""The status of a cluster: what waits and why, what the nodes do, what is under way, and the verdict on it."""

from __future__ import annotations

import re
from copy import deepcopy

import msgspec
import pytest
from msgspec.structs import replace

from kerf.adapters.cli.render.moment.status import status_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.simulation.report import ReportFold
from kerf.engine.disruption.why_nodes_stay import why_it_stays
from kerf.engine.model.content_digest import content
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Selector, Taint
from kerf.engine.model.labels import INSTANCE_TYPE, NODEPOOL, ZONE
from kerf.engine.record.observations import ClocksDiffer, NodeClaimDeletionSeen, NodeClassSeen, Observation
from kerf.engine.state.load import load
from kerf.projections.cluster_status import structs
from kerf.projections.cluster_status.cluster_status import cluster_status
from kerf.projections.cluster_status.structs import ClusterStatus, Ground, Usage
from kerf.projections.cluster_status.words import ground_words, late_words
from kerf.projections.prose.few_words import few_words
from kerf.replay.explain.pod import explain_pod
from kerf.replay.time_travel.status import latest_plan, status_of
from tests.support.lives import asked, claim_of, half_empty, in_service, launched, show_taint, starts
from tests.support.repository import ROOT
from tests.support.simulation.manifests import of_cpu
from tests.support.simulation.run import Run, scale, workshop
from tests.support.world import NODE_CLASS, World, pool
from tests.support.worlds.static_nodepools import static

Mi = 2**20
MINUTE = 60_000


def status(world: World, later: int = 0) -> ClusterStatus:
    return status_of(world.store, load(world.store), world.now + later)


def grounds(found: ClusterStatus) -> list[tuple[str, str, int]]:
    return [(ground.level, ground.code, ground.count) for ground in found.verdict.grounds]


def test_nothing_waits_and_nothing_moves_is_fine() -> None:
    found = status(in_service())
    assert (found.verdict.level, grounds(found), found.waiting, found.under_way) == ("fine", [], (), ())
    (node,) = found.nodes
    assert (node.name, node.instance_type, node.pods, node.price, node.ready) == ("n1", "m5.large", 5, 0.096, True)
    assert node.usage["memory"] == Usage(5 * 1024 * Mi, (7577 - 674) * Mi)
    assert (found.totals.nodes, found.totals.price, found.totals.pods) == (1, 0.096, {"running": 5})


def test_pods_whose_node_is_on_its_way_are_busy_and_say_which_it_is() -> None:
    world = launched()
    found = status(world, 2_000)
    assert grounds(found) == [("busy", "waiting", 5), ("busy", "under-way", 1)]
    claim = next(iter(world.runtime.state.facts.claims))
    assert {(group.outlook, group.places) for group in found.waiting} == {("on-its-way", (claim,))}
    (joining,) = found.under_way
    assert (joining.kind, joining.subjects, joining.pods, joining.late) == ("join", (claim,), 5, False)
    (node,) = found.nodes
    assert (node.name, node.few_words) == (claim, "joining")


def test_pods_that_are_not_bound_to_a_node_in_service_do_not_wait_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was said to be on its way, for as long as kube-scheduler refused the pods there."""
    world = launched()
    starts(world)
    found = status(world, 2_000)
    claim = next(iter(world.runtime.state.facts.claims))
    assert {(group.outlook, group.places) for group in found.waiting} == {("not-bound", (claim,))}
    status_text(Printer(), found)
    told = " ".join(capsys.readouterr().out.split())
    assert f"its place is in service, and kube-scheduler has not bound it there: {claim}" in told
    assert ("degraded", "waiting-long", 5) in grounds(status(world, 11 * MINUTE))
    report = ReportFold(world.now).report(load(world.store), world.now, record=None, prices="", gated={})
    assert [(why.code, why.text) for group in report.waiting for why in group.reasons] == [
        ("not-bound", f"{claim} is planned for it and in service, and kube-scheduler has not bound it there")
    ]


def test_what_takes_too_long_is_late_and_degrades() -> None:
    found = status(launched(), 11 * MINUTE)
    assert found.verdict.level == "degraded"
    assert {code for _, code, _ in grounds(found)} == {"late", "waiting-long", "under-way"}
    assert [part.late for part in status(asked(), 2 * MINUTE).under_way] == [True]
    assert late_words(found.under_way[0]) == "no node has joined with its provider id yet"


def test_a_late_drain_names_the_budget_that_keeps_its_pods() -> None:
    documents = deepcopy(workshop(scale("10s", 5), scale("45m", 5)))
    pool = next(document for document in documents if document["kind"] == "NodePool")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all", "namespace": "other"},
        "spec": {"minAvailable": 5, "selector": {"matchLabels": {"app": "inflate"}}},
    }  # fmt: skip
    run = Run([*documents, budget])
    state = load(run.memory)
    (drain,) = status_of(run.memory, state, state.facts.at).under_way
    assert (drain.kind, drain.late, drain.budgets) == ("drain", True, ("other/all",))
    assert late_words(drain) == "PodDisruptionBudget other/all allows no eviction"
    two = replace(drain, budgets=("other/all", "other/more"))
    assert late_words(two) == "PodDisruptionBudgets other/all, other/more allow no eviction"


def test_a_late_drain_of_pods_under_two_budgets_says_that_these_are_never_evicted() -> None:
    """Whatever each of the budgets allows."""
    world = in_service()
    for name in ("one", "two"):
        world.see(Observation(PodDisruptionBudget(name, "default", name, selector=Selector(), disruptions_allowed=5)))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name)))
    world.answer_all()
    show_taint(world)
    world.answer_all(ok=False, code="500")
    (drain,) = status(world, 20 * MINUTE).under_way
    assert drain.budgets == ("default/one", "default/two")
    assert late_words(drain) == (
        "pod default/a: pod may not be evicted: PodDisruptionBudgets default/one, default/two select it, and the API "
        "server evicts no pod under several"
    )


def test_a_late_drain_names_the_pod_that_it_waits_for() -> None:
    world = in_service()
    world.see(Observation(replace(world.pods["b"], do_not_disrupt="true")))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name)))
    world.answer_all()
    show_taint(world)
    world.answer_all()
    for name in "acde":
        world.gone(name)
    (drain,) = status(world, 20 * MINUTE).under_way
    assert (drain.late, drain.pod) == (True, "default/b")
    assert late_words(drain) == "pod default/b: the annotation karpenter.sh/do-not-disrupt forbids it"


@pytest.mark.parametrize(("nodes", "said"), [("0", "budget allows none"), ("1", "about to go")])
def test_a_budget_that_allows_none_is_not_used_up(nodes: str, said: str) -> None:
    world = half_empty(budgets=(Budget(nodes=nodes),))
    world.after(MINUTE)
    (node,) = status(world).nodes
    assert node.few_words == said


def test_a_node_is_about_to_go_15_s_before_consolidate_after_is_over() -> None:
    """D-55, D-108: `kerf status` and `kerf explain` say the same as the pass."""
    world = half_empty(consolidate_after=MINUTE)
    changed = world.now
    world.after(10_000)
    assert (status(world).nodes[0].few_words, claim_of(world).verdict) == ("pods changed lately", "not-consolidatable")
    world.after(changed + MINUTE - 15_000 - world.now)
    assert (status(world).nodes[0].few_words, claim_of(world).verdict) == ("about to go", "move-proposed")
    assert why_it_stays(claim_of(world), world.runtime.state, world.now) is None


def drifted(later: int, **changes: object) -> ClusterStatus:
    """The status of a node in service whose pods a budget covers, so long after it has drifted."""
    world = in_service()
    budget = PodDisruptionBudget("b", "default", "checkout", selector=Selector(), expected_pods=2, desired_healthy=2)
    world.see(Observation(replace(budget, **changes)))
    state = load(world.store)
    (claim,) = state.facts.claims.values()
    claim.drifted_since = state.facts.at
    return cluster_status(state, state.facts.at + later)


def test_a_drifted_node_that_a_budget_keeps_for_good_degrades_after_a_quarter_of_an_hour() -> None:
    found = drifted(16 * MINUTE)
    (node,) = found.nodes
    assert grounds(found) == [("degraded", "drifted-kept", 1)]
    assert found.verdict.grounds[0].subjects == (node.name,)
    assert node.kept_by == ("default/checkout",)
    assert drifted(15 * MINUTE).verdict.level == "fine"


def test_a_budget_that_lets_pods_go_in_turn_does_not_keep_a_drifted_node() -> None:
    found = drifted(16 * MINUTE, desired_healthy=1)
    assert found.nodes[0].few_words == "PodDisruptionBudget used up"
    assert (found.verdict.level, found.nodes[0].kept_by) == ("fine", ())


def test_a_drifted_node_is_said_to_have_drifted_whatever_keeps_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The NodePool counts it, so that the reader looks for it."""
    status_text(Printer(), drifted(16 * MINUTE, desired_healthy=1))
    out = capsys.readouterr().out
    assert "1 drifted" in out
    assert "drifted for 16m, stays: PodDisruptionBudget used up; " in " ".join(out.split())


def test_a_pod_without_a_place_has_the_reason_of_the_pool_that_came_nearest() -> None:
    world = World()
    world.prepare()
    world.pending("huge", memory=10**13)
    world.after(1_000)
    found = status(world, 30 * MINUTE)
    assert grounds(found) == [("degraded", "no-place", 1)]
    (group,) = found.waiting
    assert (group.workload, group.kind, group.pods, group.outlook) == (
        "default/huge",
        "Pod",
        ("default/huge",),
        "no-place",
    )
    assert group.waited == 30 * MINUTE + 1_000
    assert group.reason is not None
    assert group.reason.code == "types-resources"
    assert group.why.startswith("NodePool default: none of the 4 types")


def crowded_by(requests: dict[str, int], *, cpu: int) -> structs.WaitingWorkload:
    """What waits for this much cpu where a DaemonSet asks for this."""
    world = World()
    world.prepare()
    agent = PodShape(requests=requests)
    digest, _ = content(agent)
    world.see(Observation(DaemonSet("d1", "kube-system", "agent", digest), {digest: agent}))
    world.pending("web", cpu=cpu)
    world.after(1_000)
    (group,) = status(world).waiting
    return group


def test_the_daemonsets_that_leave_no_type_large_enough_are_named() -> None:
    """The largest type has 3,930m."""
    group = crowded_by({"cpu": 700, "memory": Mi}, cpu=3_500)
    assert group.why == (
        "NodePool default: none of the 4 types that meet the requirements has enough cpu; without DaemonSets 1 type "
        "would be large enough: kube-system/agent takes 700m cpu"
    )
    assert group.daemonsets == {"kube-system/agent": {"cpu": 700}}


def test_daemonsets_are_not_blamed_for_a_pod_that_no_type_could_hold() -> None:
    group = crowded_by({"cpu": 700}, cpu=4_000)
    assert group.why.endswith("has enough cpu")
    assert group.daemonsets == {}
    assert crowded_by({"memory": Mi}, cpu=4_000).daemonsets == {}


def test_a_pod_that_selects_the_label_of_a_tainted_pool_lacks_its_toleration() -> None:
    world = World()
    world.prepare()
    ml = replace(pool("ml"), labels={"team": "ml"}, taints=(Taint("team", "NoSchedule", "ml"),))
    world.see(Observation(ml))
    world.pending("train", node_selector={"team": "ml"})
    world.pending("typo", node_selector={"teem": "ml"})
    world.after(1_000)
    why = {group.workload: group.why for group in status(world).waiting}
    assert why["default/train"] == "NodePool ml: the pod does not tolerate team=ml:NoSchedule"
    assert why["default/typo"] == "NodePool default: label teem is not defined here"


def test_a_pod_that_selects_a_team_hears_of_that_team_s_pool_first() -> None:
    """Also where all other NodePools give the label another value, and where the team's has no type left."""
    world = World()
    world.prepare()
    nowhere = (RequirementSpec(ZONE, "In", ("nowhere",)),)
    world.see(Observation(replace(pool("web"), labels={"team": "web"}, weight=10)))
    world.see(Observation(replace(pool("ml"), labels={"team": "ml"}, taints=(Taint("gpu", "NoSchedule", "yes"),))))
    world.see(Observation(replace(pool("far"), labels={"team": "far"}, requirements=nowhere)))
    for team in ("ml", "far", "typo"):
        world.pending(team, node_selector={"team": team})
    world.after(1_000)
    why = {group.workload: group.why for group in status(world).waiting}
    assert why["default/ml"] == "NodePool ml: the pod does not tolerate gpu=yes:NoSchedule"
    assert why["default/far"].startswith("NodePool far: the NodePool's requirements and what is on offer leave none")
    assert why["default/typo"].startswith("NodePool web: the pod asks for team")


def test_a_pod_that_selects_a_nodepool_hears_of_that_one_first() -> None:
    """Also where the others are refused for a label that they do not have at all, and so not for their name (S-17)."""
    world = World()
    world.prepare()
    world.see(Observation(replace(pool("batch"), taints=(Taint("batch", "NoSchedule", "yes"),))))
    world.pending("job", node_selector={NODEPOOL: "batch", "team": "data"})
    world.after(1_000)
    (group,) = status(world).waiting
    assert group.why == "NodePool batch: the pod does not tolerate batch=yes:NoSchedule"
    first, second = explain_pod(world.store, "default/job").reasons
    assert (first.params["node_pool"], second.params["node_pool"]) == ("batch", "default")


def test_s40_pods_for_which_nobody_asks_for_a_node_are_shown_and_judge_nothing() -> None:
    world = in_service()
    world.see(Observation(Pod("uid-gated", "default", "gated", world.pods["a"].shape, created=world.now)))
    found = status(world, 5_000)
    assert (found.verdict.level, grounds(found)) == ("fine", [])
    assert [(group.outlook, group.pods, group.waited) for group in found.waiting] == [
        ("not-asked", ("default/gated",), 5_000)
    ]


def test_clocks_that_differ_degrade_and_hold_every_node() -> None:
    world = half_empty()
    world.see(Observation(ClocksDiffer(jump=600_000)))
    found = status(world, MINUTE)
    assert ("degraded", "clocks-differ", 1) in grounds(found)
    assert [node.few_words for node in found.nodes] == ["clocks disagree"]


def test_pods_that_wait_while_no_nodepool_is_ready_are_a_failure() -> None:
    world = World()
    world.prepare()
    world.see(Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="SubnetsNotFound")))
    world.pending("a")
    world.after(1_000)
    found = status(world)
    assert grounds(found) == [("failing", "no-pool-ready", 1), ("degraded", "pool-not-ready", 1)]
    assert [(pool.ready, pool.wrong) for pool in found.pools] == [
        (False, ("SubnetsNotFound: NodeClass default is not ready",))
    ]


def test_s191_a_nodepool_of_a_fixed_size_that_no_type_fits_degrades() -> None:
    """No pod waits for it: it was said to be fine."""
    world = World(static_capacity=True)
    none = RequirementSpec(INSTANCE_TYPE, "In", ("nosuch",))
    world.prepare(replace(static(2), requirements=(none,)))
    found = status(world)
    assert grounds(found) == [("degraded", "pool-not-ready", 1)]
    assert [pool.wrong for pool in found.pools] == [
        ("it has 0 of 2 nodes: nothing that its template allows is on offer now",)
    ]


def test_pods_that_nothing_on_offer_would_do_for_are_a_failure() -> None:
    world = World()
    world.prepare()
    for kind in ("c5.large", "m5.large", "r5.large", "m5.xlarge"):
        for zone in ("us-west-2a", "us-west-2b"):
            world.runtime.state.facts.unavailable[f"on-demand|{kind}|{zone}"] = world.now + 3_600_000
    world.pending("a")
    world.after(1_000)
    found = status_of(world.store, world.runtime.state, world.now)
    assert grounds(found)[0] == ("failing", "no-capacity", 1)
    assert len(found.unavailable) == 8


def test_a_cordoned_node_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    world = in_service()
    (node,) = world.runtime.state.facts.nodes.values()
    assert [node.cordoned for node in status(world).nodes] == [False]
    world.see(Observation(replace(node, taints=(Taint("node.kubernetes.io/unschedulable", effect="NoSchedule"),))))
    found = status(world)
    assert [node.cordoned for node in found.nodes] == [True]
    status_text(Printer(), found)
    assert "    cordoned; stays: " in capsys.readouterr().out


def test_a_node_that_is_not_ready_degrades() -> None:
    world = in_service()
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, ready=False)))
    found = status(world)
    assert ("degraded", "node-not-ready", 1) in grounds(found)
    assert found.nodes[0].few_words == "not ready"


def test_nodes_come_emptiest_first_and_say_why_they_stay() -> None:
    world = half_empty()
    world.see(Observation(Node("other", ready=True, allocatable={"cpu": 4000, "memory": 8 * 1024 * Mi, "pods": 58})))
    found = status(world)
    assert [(node.name, node.state) for node in found.nodes] == [("other", "unmanaged"), ("n1", "initialized")]
    other, own = found.nodes
    assert (other.few_words, other.claim, other.price) == ("not kerf's", "", 0.0)
    assert own.reason is not None
    assert own.few_words == few_words(own.reason.code)


def test_ages_are_counted_to_the_time_that_is_asked_for() -> None:
    world = in_service()
    assert status(world, MINUTE).nodes[0].age == status(world).nodes[0].age + MINUTE


def test_without_the_plan_nobody_knows_why_pods_wait() -> None:
    world = World()
    world.prepare()
    world.pending("huge", memory=10**13)
    world.after(1_000)
    state = load(world.store)
    assert latest_plan(world.store, state) is not None
    assert [group.outlook for group in cluster_status(state).waiting] == ["not-planned"]
    state.facts.plan = 0
    assert latest_plan(world.store, state) is None


def test_a_state_of_nothing_has_a_status() -> None:
    found = status_of(World().store, World().runtime.state)
    assert (found.verdict.level, found.nodes, found.pools) == ("fine", (), ())


@pytest.mark.parametrize("code", list(DisruptionCode))
def test_each_reason_to_stay_has_at_most_three_words(code: DisruptionCode) -> None:
    words = few_words(code.value)
    assert len(words.split()) <= 3
    assert len(words) <= 28
    assert words != code.value or code in (DisruptionCode.REGISTERED, DisruptionCode.REGISTERING)


def test_each_ground_has_words() -> None:
    source = (ROOT / "projections/cluster_status/verdict.py").read_text()
    for code in set(re.findall(r'(?:BUSY|DEGRADED|FAILING), "([a-z-]+)"', source)):
        told = ground_words(Ground("busy", code, 7, ("a", "b", "c")))
        assert "7 " in told
        assert told.endswith("(a, b and others)")
        assert f": {code}" not in told


def test_a_ground_names_a_claim_once_that_is_moved_and_drained() -> None:
    run = Run(workshop(scale("10s", 12), scale("10m", 5)))
    positions = range(1, run.memory.last_position() + 1)
    states = [load(run.memory, position) for position in positions]
    told = [ground for state in states for ground in status_of(run.memory, state, state.facts.at).verdict.grounds]
    assert all(len(set(ground.subjects)) == len(ground.subjects) for ground in told)
    assert any(ground.count > len(ground.subjects) == 2 for ground in told)
    assert ground_words(Ground("busy", "under-way", 3, ("a", "b"))) == "3 changes under way (a, b)"


def test_all_fields_of_the_status_are_documented() -> None:
    page = (ROOT / "docs/status.md").read_text()
    kinds = [kind for kind in vars(structs).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    own = [kind for kind in kinds if kind.__module__ == structs.__name__]
    assert len(own) > 5
    fields = [f"{kind.__name__}.{name}" for kind in own for name in kind.__struct_fields__]
    missing = [field for field in fields if not re.search(rf"`{field.partition('.')[2]}(\[\])?`", page)]
    assert missing == []


def test_d51_a_proposed_move_that_the_budgets_have_no_room_for_is_said_to_wait() -> None:
    """Of twelve nodes two may go at a time, and the next ones are proposed already."""
    idle = {"at": "5m", "action": "scale", "namespace": "other", "name": "large", "replicas": 0}
    run = Run([*workshop(idle), of_cpu("large", 12, 2_500)], until=6 * MINUTE + 30_000)
    state = run.runtime.state
    waiting = {claim for move in state.facts.moves.values() if not move.started for claim in move.move.claims}
    found = status_of(run.store, state)
    assert waiting
    assert {node.few_words for node in found.nodes if node.claim in waiting} == {"waits for the budget"}
