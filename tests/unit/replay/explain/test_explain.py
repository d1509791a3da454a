"""Why a pod is where it is, why a node is as it is, why it went or stays: coded, from the record alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import AffinityTerm, Owner, Selector, SpreadConstraint
from kerf.engine.model.labels import ZONE
from kerf.engine.record.observations import (
    ClocksDiffer,
    LaunchAnswered,
    LaunchError,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    ObjectGone,
    Observation,
)
from kerf.engine.scheduling.provision import VERSION
from kerf.engine.state.load import load
from kerf.projections.prose.reasons import sentence
from kerf.projections.timeline.event import event_sentence
from kerf.replay.errors import SubjectUnknown
from kerf.replay.explain.claim import explain_claim, explain_node
from kerf.replay.explain.counted_pods import CountedPods
from kerf.replay.explain.decision import explain_decision
from kerf.replay.explain.last_pod_change import PodChange
from kerf.replay.explain.pod import LostLaunches, explain_pod
from kerf.replay.explain.pools_not_asked import PoolNotAsked
from kerf.replay.explain.user_objects.nodepool import explain_pool
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.story import story
from kerf.replay.time_travel.status import status_of
from tests.support.lives import PODS, claim_of, half_empty, in_service, show_taint
from tests.support.memory import MemoryStore
from tests.support.records import changed, position_of, tampered, whole_life
from tests.support.world import NODE_CLASS, World, pool


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


@pytest.fixture(scope="module")
def claim(store: MemoryStore) -> str:
    return str(store.entries[position_of(store, "claim.requested") - 1].payload.claim)


def test_the_pods_that_set_the_quiet_time_back_are_named() -> None:
    """Who left last, and nobody once consolidateAfter has passed."""
    world = half_empty(consolidate_after=300_000)
    found = explain_node(world.store, "n1", now=world.now + 1_000)
    assert found.disturbed == PodChange(world.now, came=(), left=("default/a", "default/b", "default/c"))
    assert explain_node(world.store, "n1", now=world.now + 24 * 3_600_000).disturbed is None
    begun = in_service(consolidate_after=300_000)
    came = explain_node(begun.store, "n1", now=begun.now + 1_000).disturbed
    assert came is not None
    assert came.came == tuple(f"default/{name}" for name in PODS)


def test_a_bound_pod_with_its_funnel_and_its_launch(store: MemoryStore, claim: str) -> None:
    found = explain_pod(store, "default/a", position_of(store, "pod.seen", 9))
    assert (found.status, found.node, found.waited) == ("bound", "n1", 38_020)
    assert found.look is not None
    assert (found.look.result, found.look.place) == ("new-claim", claim)
    assert found.how is not None
    assert found.how.same
    (pool,) = found.how.pools
    assert (pool.node_pool, pool.types, pool.left, pool.reason) == ("default", 4, 4, None)
    assert [c.instance_type for c in found.how.chosen] == ["m5.large", "r5.large", "m5.xlarge"]
    assert found.launch is not None
    assert (found.launch.instance_type, found.launch.price, found.launch.offers) == ("m5.large", 0.096, 6)
    assert found.launch.cheaper == ()
    assert found.expected == ""


def test_the_funnel_counts_add_up() -> None:
    world = World()
    world.prepare()
    world.pending("a", memory=9 * 2**30, node_selector={ZONE: "us-west-2b"})
    world.after(1_000)
    found = explain_pod(world.store, "default/a")
    assert found.how is not None
    (pool,) = found.how.pools
    assert sum(cut.types for cut in pool.cuts) + pool.left == pool.types
    assert ("resource", "memory", 2) in [(cut.what, cut.key, cut.types) for cut in pool.cuts]


def test_a_pending_pod_with_counts_and_the_nearest_miss() -> None:
    """k#3152, a#2250: why a pod waits."""
    world = World()
    world.prepare()
    world.pending("big", memory=20 * 2**30)
    world.after(1_000)
    found = explain_pod(world.store, "default/big")
    assert (found.status, found.node, found.waited) == ("waiting", "", 1_000)
    assert [look.result for look in found.looks] == ["no-place"]
    assert [reason.code for reason in found.reasons] == ["types-resources"]
    assert found.how is not None
    (pool,) = found.how.pools
    assert [(cut.what, cut.key, cut.types) for cut in pool.cuts] == [("resource", "memory", 4)]
    near = pool.near[0]
    assert (near.what, near.types, near.example) == ("resource", 2, "r5.large")
    assert near.short == 20 * 2**30 - (15155 - 674) * 2**20


def test_a_pod_that_went_without_a_node_has_waited_until_then() -> None:
    world = World()
    world.prepare()
    world.pending("big", memory=20 * 2**30)
    world.after(1_000)
    world.gone("big")
    found = explain_pod(world.store, "default/big", now=world.now + 3_600_000)
    assert (found.status, found.waited) == ("gone", 1_000)


def test_a_pod_that_fits_nowhere_again_names_the_later_decision() -> None:
    world = World()
    world.prepare()
    world.pending("big", memory=20 * 2**30)
    world.after(1_000)
    world.see(Observation(world.pods["big"]))
    world.prepare(pool(weight=1))  # something changed: the window opens again
    world.after(1_000)
    found = explain_pod(world.store, "default/big")
    assert found.look is not None
    assert found.look_again > found.look.position
    assert explain_decision(world.store, found.look_again).repeats == found.look.position


def test_nodepools_that_launch_nothing_are_named_with_why() -> None:
    world = World()
    world.prepare(pool("fixed", replicas=0))
    world.see(
        Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="SubnetsNotFound")),
        Observation(pool("broken")),
        Observation(pool("going", deleting=world.now)),
    )
    world.pending("web")
    world.after(1_000)
    found = explain_pod(world.store, "default/web")
    assert [reason.code for reason in found.reasons] == ["no-node-pool"]
    assert [(left_out.node_pool, left_out.why) for left_out in found.not_asked] == [
        ("broken", "not-ready"), ("fixed", "static"), ("going", "deleting"),
    ]  # fmt: skip
    assert [wrong.code for wrong in found.not_asked[0].wrong] == ["SubnetsNotFound"]


def test_a_nodepool_that_was_deleted_lately_is_named() -> None:
    world = World()
    world.prepare(pool("b", labels={"team": "b"}))
    world.see(Observation(pool("a", labels={"team": "a"})), Observation(pool("again")))
    world.see(Observation(ObjectGone("nodepool", "a")), Observation(ObjectGone("nodepool", "again")))
    gone = world.now
    world.see(Observation(pool("again", labels={"team": "c"})))
    world.pending("web", node_selector={"team": "a"})
    world.after(1_000)
    assert explain_pod(world.store, "default/web").not_asked == (PoolNotAsked("a", "gone", gone=gone),)
    assert explain_pod(world.store, "default/web", now=gone + 2 * 86_400_000).not_asked == ()


def test_the_pods_that_a_rule_of_topology_counts_are_named() -> None:
    """The reason says that there are none, and not of whom."""
    world = World()
    world.prepare()
    follow = AffinityTerm(ZONE, Selector({"app": "cache"}))
    wish = AffinityTerm(ZONE, Selector({"app": "wish"}), weight=5)
    world.pending("web", affinity=(follow, wish), spread=(SpreadConstraint(ZONE, selector=Selector({"app": "web"})),))
    world.after(1_000)
    found = explain_pod(world.store, "default/web")
    assert [reason.params["rule"] for reason in found.reasons] == ["affinity"]
    assert found.counted == (CountedPods("affinity", ZONE, Selector({"app": "cache"})),)


def test_a_spread_that_asks_for_more_domains_than_there_are_says_so() -> None:
    """S-138: with fewer domains than minDomains the global minimum is 0. The counts alone are level."""
    world = World()
    world.prepare()
    wide = SpreadConstraint(ZONE, selector=Selector({"app": "web"}), min_domains=9)
    for number in range(9):
        world.pending(f"web-{number}", spread=(wide,), labels={"app": "web"})
    world.after(1_000)
    explained = [explain_pod(world.store, f"default/web-{number}") for number in range(9)]
    found = next(told for told in explained if told.reasons)
    assert [reason.params["rule"] for reason in found.reasons] == ["spread"]
    assert found.counted == (CountedPods("spread", ZONE, Selector({"app": "web"}), min_domains=9),)


def test_where_another_nodepool_was_asked_only_one_that_would_suit_is_named() -> None:
    world = World()
    world.prepare(pool("b", labels={"team": "b"}))
    broken = replace(NODE_CLASS, name="broken")
    world.see(
        Observation(NodeClassSeen(broken.group, broken.kind, broken.name, reason="SubnetsNotFound")),
        Observation(replace(pool("a", labels={"team": "a"}), node_class=broken)),
        Observation(replace(pool("c", labels={"team": "c"}), node_class=broken)),
        Observation(pool("fixed", replicas=0)),
    )
    world.pending("web", node_selector={"team": "a"})
    world.after(1_000)
    found = explain_pod(world.store, "default/web")
    assert {reason.code for reason in found.reasons} == {"requirements-conflict", "not-ready"}
    assert [left_out.node_pool for left_out in found.not_asked] == ["a"]


def test_a_pod_whose_window_is_open_has_no_decision_yet() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    found = explain_pod(world.store, "default/a")
    assert (found.status, found.looks, found.how) == ("waiting", (), None)


def test_a_launch_without_capacity_says_what_was_refused() -> None:
    """a#4346: capacity errors are state, not only logs."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    errors = (LaunchError("InsufficientInstanceCapacity", "", "c5.large", "us-west-2a", "on-demand"),)
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=errors)))
    found = explain_claim(world.store, order.claim)
    assert found.launch is not None
    assert [error.instance_type for error in found.launch.refused] == ["c5.large"]
    assert found.launch.error == "insufficient-capacity"
    assert (found.state, found.removed) == ("terminated", "launch-failed")
    pod = explain_pod(world.store, "default/a")
    assert pod.lost == LostLaunches(nodes=1, refused=1, reasons=("InsufficientInstanceCapacity",), shared={})


def test_refusals_for_a_pod_say_what_they_have_in_common() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    types = ("c5.large", "m5.large")
    errors = tuple(LaunchError("InsufficientInstanceCapacity", "", kind, "us-west-2a", "on-demand") for kind in types)
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=errors)))
    lost = explain_pod(world.store, "default/a").lost
    assert lost is not None
    assert lost.shared == {"zone": "us-west-2a", "capacity": "on-demand"}


def test_while_the_clocks_differ_no_method_is_said_to_take_a_node() -> None:
    world = half_empty()
    for name in PODS[3:]:
        world.gone(name)
    world.see(Observation(ClocksDiffer(jump=600_000)))
    world.after(120_000)
    found = explain_claim(world.store, claim_of(world).name, now=world.now)
    emptiness = next(method for method in found.methods if method.method == "emptiness")
    assert (emptiness.reason.code, emptiness.acts) == ("clocks-disagree", False)
    assert emptiness.way is not None
    assert [change.code for change in emptiness.way.changes] == ["clocks-agreed"]
    assert emptiness.way.goes is not None
    assert found.staying is not None
    assert found.staying.reason.code == "clocks-disagree"


def test_d45_a_nodepool_names_the_budget_that_leaves_nothing() -> None:
    world = in_service()
    closed = Budget(nodes="0", schedule="* * * * *", duration=3_600_000)
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], budgets=(Budget(), closed))))
    store = world.store
    found = explain_pool(store, histories_of(store), load(store), "default")
    assert {(budget.nodes, budget.least, budget.terms) for budget in found.budgets} == {(0, 1, closed)}
    (ends,) = {budget.ends for budget in found.budgets}
    assert 0 < ends - world.now <= 3_600_000


def test_a_dearer_type_than_asked_shows_what_was_cheaper() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    dear = order.offers[-1]
    world.see(
        Observation(
            LaunchAnswered(
                ref, order.claim, "i-1", "aws:///x/i-1", dear.instance_type, dear.zone, capacity_type="on-demand"
            )
        )
    )
    found = explain_claim(world.store, order.claim)
    assert found.launch is not None
    assert found.launch.cheaper[0] == order.offers[0]
    assert found.launch.price == dear.price


def test_a_life_step_by_step_with_durations(store: MemoryStore, claim: str) -> None:
    found = explain_claim(store, claim)
    assert [(step.type, step.took) for step in found.steps] == [
        ("requested", 0), ("launched", 2_000), ("registered", 30_000), ("initialized", 5_000), ("tainted", 3_625_100),
        ("drain-started", 0), ("drained", 5_000), ("terminated", 0),
    ]  # fmt: skip
    assert (found.state, found.removed) == ("terminated", "empty")
    assert found.removed_at == position_of(store, "claim.tainted")
    assert found.staying is None
    assert found.launched_for == tuple(f"default/{name}" for name in "abcde")
    assert found.cost == store.entries[-1].payload.cost
    assert [judged.verdict.reason.code for judged in found.verdicts] == [
        "nothing-cheaper", "move-proposed", "empty",
    ]  # fmt: skip


def test_a_vanished_node_has_cost_what_it_ran_for() -> None:
    """L-237: the end that kerf did not bring about has its cost too, in the explanation and in the log."""
    world = in_service()
    world.now = claim_of(world).launched + 3_600_000
    world.instance("i-1", "gone")
    world.see(Observation(ObjectGone("node", "n1")))
    ended = world.store.entries[position_of(world.store, "claim.instance-vanished") - 1]
    found = explain_claim(world.store, ended.payload.claim)
    assert (found.cost, found.removed) == (0.096, "instance-vanished")
    (told,) = [e for e in story(world.store, "n1").events if e.code == "claim-instance-vanished"]
    assert event_sentence(told).endswith("has vanished (gone) after 1h, at a cost of $0.0960")


def test_a_stuck_drain_names_its_pods_and_what_holds_each() -> None:
    """D-13, D-147, L-205: the PodDisruptionBudget by its name, the annotation, the pod that is on its way."""
    world = in_service()
    world.see(Observation(PodDisruptionBudget("b", "default", "keep", selector=Selector())))
    world.see(Observation(replace(world.pods["b"], do_not_disrupt="true")))
    world.see(Observation(replace(world.pods["c"], deleting=world.now)))
    claim = claim_of(world).name
    world.see(Observation(NodeClaimDeletionSeen(claim)))
    world.answer_all()
    show_taint(world)
    world.answer_all(ok=False, code="429")
    found = explain_claim(world.store, claim)
    assert [(leaving.pod, leaving.reason.code) for leaving in found.leaving] == [
        ("default/a", "pod-budget-exhausted"), ("default/b", "do-not-disrupt"), ("default/c", "terminating"),
        ("default/d", "pod-budget-exhausted"), ("default/e", "pod-budget-exhausted"),
    ]  # fmt: skip
    said = "pod may not be evicted: PodDisruptionBudget default/keep allows none"
    assert sentence(found.leaving[0].reason) == said
    assert found.forced_at == 0


def test_of_a_drain_pods_of_daemonsets_wait_for_those_that_hold_it() -> None:
    """L-204: the first pod by its name is not what the drain waits for."""
    world = in_service()
    world.see(Observation(replace(world.pods["a"], owner=Owner("apps/v1/DaemonSet", "agent"))))
    for name in "bcde":
        world.see(Observation(replace(world.pods[name], do_not_disrupt="true")))
    claim = claim_of(world).name
    world.see(Observation(NodeClaimDeletionSeen(claim)))
    world.answer_all()
    show_taint(world)
    world.answer_all()
    leaving = explain_claim(world.store, claim).leaving
    assert [(pod.pod, pod.reason.code) for pod in leaving[:2]] == [
        ("default/a", "waiting-for-group"), ("default/b", "do-not-disrupt"),
    ]  # fmt: skip
    (drain,) = status_of(world.store, world.runtime.state, world.now + 3_600_000).under_way
    assert (drain.late, drain.pod) == (True, "default/b")


def test_a_node_that_stays_says_what_holds_it(store: MemoryStore, claim: str) -> None:
    """A.2, k#711, a#3745: why a node is still here."""
    found = explain_node(store, "n1", position_of(store, "pod.seen", 9))
    assert (found.claim, found.state, found.removed) == (claim, "initialized", "")
    assert found.staying is not None
    assert found.staying.reason.code == "not-looked-at"
    assert found.staying.held_by == tuple(f"default/{name}" for name in "abcde")
    assert found.waiting is None


def test_a_node_that_is_not_ready_says_what_it_waits_for(store: MemoryStore) -> None:
    found = explain_node(store, "n1", position_of(store, "claim.registered"))
    assert found.waiting is not None
    assert found.waiting.code == "node-not-ready"


def test_a_provisioning_decision_piece_by_piece(store: MemoryStore, claim: str) -> None:
    found = explain_decision(store, position_of(store, "decision.made"))
    assert (found.decider, found.same, found.version, found.version_today) == ("provision", True, VERSION, VERSION)
    (plan,) = found.plans
    assert (plan.claim, plan.pods) == (claim, tuple(f"default/{name}" for name in "abcde"))
    assert plan.how is not None
    assert plan.how.chosen[0].instance_type == "m5.large"


def test_a_disruption_decision_is_explained_by_its_verdicts(store: MemoryStore) -> None:
    found = explain_decision(store, explain_node(store, "n1").verdicts[-1].position)
    assert (found.decider, found.same, found.plans) == ("move", None, ())


def test_a_decision_that_todays_engine_would_not_make_is_marked(store: MemoryStore) -> None:
    position = position_of(store, "decision.made")
    forged = tampered(store, changed(position, version=0))
    assert explain_decision(forged, position).same is False


def test_the_second_pod_of_a_name_is_the_one_explained() -> None:
    world = whole_life()
    world.pending("a")
    assert explain_pod(world.store, "default/a").status == "waiting"


@pytest.mark.parametrize("name", ["default/nobody", "a", ""])
def test_an_unknown_pod_is_refused(store: MemoryStore, name: str) -> None:
    with pytest.raises(SubjectUnknown, match="KERF203"):
        explain_pod(store, name)


def test_unknown_claims_nodes_and_decisions_are_refused(store: MemoryStore) -> None:
    with pytest.raises(SubjectUnknown, match="no NodeClaim 'x'"):
        explain_claim(store, "x")
    with pytest.raises(SubjectUnknown, match="no node 'x'"):
        explain_node(store, "x")
    with pytest.raises(SubjectUnknown, match=r"is no decision but record\.started"):
        explain_decision(store, 1)
    with pytest.raises(SubjectUnknown, match="no such entry"):
        explain_decision(store, 10_000)
