"""Metrics of conditions and deletions (L-415 to L-420, L-424)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_health import VainLaunches
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.nodes import NodeCondition
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.claim_events import (
    Drained,
    DrainStarted,
    ReasonRaised,
    Tainted,
    Terminated,
    Untainted,
    VolumesDetached,
)
from kerf.engine.record.decisions import Decision, DisruptResult, Verdict
from kerf.engine.record.observations import LaunchAnswered, NodeClassSeen, ObjectGone, Observation
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.conditions import ConditionMetrics
from kerf.projections.metrics.counters import RecordCounters
from tests.support import lives
from tests.support.lives import claim_of
from tests.support.metrics import Samples, counted, scraped, value
from tests.support.records import whole_life
from tests.support.world import NODE_CLASS, Mi, World, pool
from tests.support.worlds.two_nodes import two_nodes

OF_CLAIM = "operator_nodeclaim_status_condition"
GOES_FOR = "operator_nodeclaim_termination_current_time_seconds"


def test_gauges_tell_the_conditions_as_they_are() -> None:
    """Gauges tell the conditions as they are (L-415, L-416, L-424)."""
    world = lives.in_service()
    claim = claim_of(world)
    found = gauges(world, later=5_000)
    own = {"karpenter_sh_nodepool": "default", "karpenter_k8s_aws_ec2nodeclass": claim.node_class.name}
    assert value(found, f"{OF_CLAIM}_count", name=claim.name, type="Ready", status="True", **own) == 1
    age = value(found, f"{OF_CLAIM}_current_status_seconds", name=claim.name, type="Initialized", status="True")
    assert age == (world.now + 5_000 - claim.initialized) / 1000
    pool = value(found, "operator_nodepool_status_condition_count", name="default", type="Ready", status="True")
    assert pool == 1
    assert GOES_FOR not in found


def test_a_claim_on_its_way_out_says_since_when() -> None:
    """A claim on its way out says since when (L-419)."""
    world = lives.in_service()
    for name in lives.PODS:
        world.gone(name)
    lives.decide(world)
    world.answer_all()
    lives.show_taint(world)
    since = claim_of(world).drain_started
    found = gauges(world, later=since + 7_000 - world.now)
    assert value(found, GOES_FOR, name=claim_of(world).name) == 7


def test_l419_l420_d116_a_candidate_that_waits_for_its_replacement_is_not_on_its_way_out() -> None:
    """Its NodeClaim is not deleted; if its move is given up, and it ends otherwise, that counts from its own end."""
    world = lives.half_empty(expire_after=3_600_000)
    metrics = ConditionMetrics(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    lives.decide(world)
    assert claim_of_node(world).tainted
    assert GOES_FOR not in gauges(world, later=7_000)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="none")))
    world.answer_all()
    world.instance("i-1", "terminated")
    world.see(Observation(ObjectGone("node", "n1")))
    for entry in world.store.entries:
        metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    assert value(found, "operator_nodeclaim_termination_duration_seconds_count") == 0


def test_l420_m22_m18_a_candidate_is_timed_from_when_it_goes() -> None:
    """One that leaves no choice meanwhile goes from then on."""
    for hurried, expected in ((False, 20), (True, 50)):
        world = lives.half_empty()
        lives.decide(world)
        world.after(30_000)
        claim, last = claim_of_node(world), world.store.entries[-1]
        metrics = ConditionMetrics(world.runtime.state, "aws"), RecordCounters(world.runtime.state, "aws")
        course = [
            (0, Tainted(claim.name, claim.why)),
            *([(0, ReasonRaised(claim.name, "interrupted", claim.why))] if hurried else []),
            (30_000, DrainStarted(claim.name, "n1")),
            (50_000, Terminated(claim.name, claim.why)),
        ]
        for later, payload in course:
            for each in metrics:
                each.apply(replace(last, at=world.now + later, payload=payload))
        found = scraped(exposition([*metrics[0].families(), *metrics[1].families()]))
        assert value(found, "operator_nodeclaim_termination_duration_seconds_sum") == expected
        assert value(found, "karpenter_nodeclaims_termination_duration_seconds_sum") == expected
        assert value(found, "karpenter_nodes_termination_duration_seconds_sum") == expected


def test_l419_l420_what_leaves_no_choice_is_on_its_way_out_from_its_taint_on() -> None:
    world = lives.in_service(expire_after=3_600_000)
    world.after(3_600_000)
    claim, metrics = claim_of(world), ConditionMetrics(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    assert (claim.why, claim.drain_started) == ("expired", 0)
    assert value(gauges(world, later=world.now - claim.tainted + 7_000), GOES_FOR, name=claim.name) == 7
    for entry in world.store.entries:
        metrics.apply(entry)
    end = replace(world.store.entries[-1], at=claim.tainted + 9_000, payload=Terminated(claim.name, claim.why))
    metrics.apply(end)
    assert value(scraped(exposition(metrics.families())), "operator_nodeclaim_termination_duration_seconds_sum") == 9


def test_l420_a_taint_that_was_taken_off_is_no_beginning() -> None:
    """Another controller may take back what it began, which observe mode sees."""
    world = lives.in_service()
    metrics, last, name = ConditionMetrics(world.runtime.state, "aws"), world.store.entries[-1], claim_of(world).name
    for payload in (Tainted(name, "expired"), Untainted(name, "expired"), Terminated(name, "")):
        metrics.apply(replace(last, payload=payload))
    assert value(scraped(exposition(metrics.families())), "operator_nodeclaim_termination_duration_seconds_count") == 0


def claim_of_node(world: World) -> NodeClaim:
    """The claim of `n1`."""
    (claim,) = (claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    return claim


def test_a_whole_life_moves_each_condition_once() -> None:
    """A whole life moves each condition once (L-417, L-418, L-420)."""
    world = whole_life()
    metrics = ConditionMetrics(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    for kind in ("Launched", "Registered", "Initialized", "Ready"):
        assert value(found, f"{OF_CLAIM}_transitions_total", type=kind, status="True") == 1
        assert value(found, f"{OF_CLAIM}_transition_seconds_count", type=kind, status="Unknown") == 1
    assert value(found, "operator_nodeclaim_termination_duration_seconds_count", karpenter_sh_nodepool="default") == 1


def gauges(
    world: World, *, per_object: bool = True, later: int = 0, metrics: ConditionMetrics | None = None
) -> Samples:
    metrics = metrics or ConditionMetrics(world.runtime.state, "aws")
    return scraped(exposition([*metrics.gauges(world.now + later, per_object=per_object), *metrics.families()]))


def test_l415_l424_nodes_have_their_conditions_and_labels() -> None:
    world = lives.in_service()
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, conditions=(NodeCondition("StorageReady", "False", world.now),))))
    found = gauges(world, later=4_000)
    own = {"karpenter_sh_initialized": "true", "karpenter_sh_nodepool": "default"}
    assert value(found, "operator_node_status_condition_count", name="n1", type="Ready", status="True", **own) == 1
    ill = {"name": "n1", "type": "StorageReady", "status": "False"}
    assert value(found, "operator_node_status_condition_count", **ill) == 1
    assert value(found, "operator_node_status_condition_current_status_seconds", **ill) == 4


def test_l415_conditions_of_each_object_only_on_request() -> None:
    """Else they are counted together. There are few NodePools and NodeClasses: these have their names."""
    world = two_nodes()
    found = gauges(world, per_object=False)
    for kind in ("nodeclaim", "node"):
        of_ready = {"type": "Ready", "status": "True", "karpenter_sh_nodepool": "default"}
        assert value(found, f"operator_{kind}_status_condition_count", **of_ready) == 2
        names = {dict(key)["name"] for key in found[f"operator_{kind}_status_condition_count"]}
        assert names == {""}
    assert value(found, "operator_nodepool_status_condition_count", name="default", type="Ready") == 1
    oldest = min(claim.initialized for claim in world.runtime.state.facts.claims.values())
    age = value(found, "operator_nodeclaim_status_condition_current_status_seconds", type="Initialized")
    assert age == (world.now - oldest) / 1000


def test_l417_l82_launches_that_came_too_late_count_when_they_do() -> None:
    """Two in a row make a NodePool's registration unhealthy. It counted only with the next event of the NodePool."""
    world = lives.asked()
    metrics, health = ConditionMetrics(world.runtime.state, "aws"), world.runtime.state.facts.health
    while health["default"].status != "False":
        world.after(10_000)
        for entry in world.runtime.new_entries:
            metrics.apply(entry)
    since = health["default"].since
    found = gauges(world, later=5_000, metrics=metrics)
    kind, bad = "operator_nodepool_status_condition", {"type": "NodeRegistrationHealthy", "status": "False"}
    assert value(found, f"{kind}_transitions_total", **bad) == 1
    assert value(found, f"{kind}_current_status_seconds", name="default", **bad) == (world.now + 5_000 - since) / 1000


def test_l416_a_condition_that_comes_back_is_as_old_as_its_return() -> None:
    """A NodePool has RequirementsMet only while launches do not give what it asks for."""
    world = lives.in_service()
    metrics, facts, last = (
        ConditionMetrics(world.runtime.state, "aws"),
        world.runtime.state.facts,
        world.store.entries[-1],
    )
    well, wanted = facts.health["default"], RequirementSpec("topology.kubernetes.io/zone", "In", ("us-west-2z",))
    ill = replace(well, in_vain=(VainLaunches(wanted, 3),))
    for minutes, health in ((1, ill), (10, well), (30, ill)):
        facts.health["default"] = health
        metrics.apply(replace(last, at=world.now + minutes * 60_000, payload=facts.pools["default"]))
    found = gauges(world, later=31 * 60_000, metrics=metrics)
    age = "operator_nodepool_status_condition_current_status_seconds"
    assert value(found, age, name="default", type="RequirementsMet", status="False") == 60


def test_l415_l416_l417_l418_a_nodeclass_that_is_no_longer_ready() -> None:
    """Its NodePool is not ready either."""
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    since = world.runtime.state.facts.at
    world.after(30_000)
    seen = next(iter(world.runtime.state.facts.node_classes.values()))
    world.see(Observation(replace(seen, ready=False, reason="SubnetsNotFound")))
    for entry in world.runtime.new_entries:
        metrics.apply(entry)
    found = gauges(world, later=5_000, metrics=metrics)
    kind, bad = "operator_ec2nodeclass_status_condition", {"status": "False", "reason": "SubnetsNotFound"}
    assert value(found, f"{kind}_count", name="default", type="Ready", **bad) == 1
    assert value(found, f"{kind}_current_status_seconds", name="default", type="Ready", **bad) == 5
    assert value(found, f"{kind}_transitions_total", type="Ready", **bad) == 1
    assert value(found, f"{kind}_transition_seconds_sum", type="Ready", status="True") == (world.now - since) / 1000
    for changed in ("NodeClassReady", "Ready"):
        moved = "operator_nodepool_status_condition_transitions_total"
        assert value(found, moved, type=changed, status="False") == 1


def test_l417_the_nodepool_of_a_nodeclass_that_goes_is_not_ready() -> None:
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    world.after(30_000)
    world.see(Observation(ObjectGone("nodeclass", NODE_CLASS.key)))
    for entry in world.runtime.new_entries:
        metrics.apply(entry)
    found = gauges(world, later=5_000, metrics=metrics)
    kind = "operator_nodepool_status_condition"
    assert value(found, f"{kind}_transitions_total", type="Ready", status="False") == 1
    assert value(found, f"{kind}_current_status_seconds", name="default", type="Ready", status="False") == 5


def test_l417_conditions_that_a_claim_gets_when_they_are_true() -> None:
    world = lives.in_service()
    name, last = claim_of(world).name, world.store.entries[-1]
    drifted = DisruptResult((Verdict(name, "drift", "drifted", Reason("nodepool-drifted", {"nodepool": "default"})),))
    metrics = ConditionMetrics(world.runtime.state, "aws")
    for payload in (
        Decision("drift", 1, 1, 1, "", drifted),
        Tainted(name, "drifted"),
        VolumesDetached(name, took=4_000),
        VolumesDetached(name, took=1_000, left=("pv-1",)),
    ):
        metrics.apply(replace(last, payload=payload))
    found = scraped(exposition(metrics.families()))
    for kind, reason in (
        ("Drifted", "NodePoolDrifted"),
        ("DisruptionReason", "Drifted"),
        ("VolumesDetached", "VolumesDetached"),
    ):
        assert value(found, f"{OF_CLAIM}_transitions_total", type=kind, status="True", reason=reason) == 1
    assert value(found, f"{OF_CLAIM}_transition_seconds_sum", type="VolumesDetached", status="Unknown") == 5
    late = {"type": "VolumesDetached", "status": "False", "reason": "TerminationGracePeriodElapsed"}
    assert value(found, f"{OF_CLAIM}_transitions_total", **late) == 1


def test_l417_a_claim_that_has_drifted_more_has_not_drifted_again() -> None:
    world = lives.in_service()
    name, last = claim_of(world).name, world.store.entries[-1]
    metrics = ConditionMetrics(world.runtime.state, "aws")
    for action in ("drifted", "drifted", "not-drifted", "drifted"):
        verdict = Verdict(name, "drift", action, Reason("nodepool-drifted", {"nodepool": "default"}))
        metrics.apply(replace(last, payload=Decision("drift", 1, 1, 1, "", DisruptResult((verdict,)))))
    assert value(scraped(exposition(metrics.families())), f"{OF_CLAIM}_transitions_total", type="Drifted") == 2


@pytest.mark.parametrize(("volumes", "appeared"), [(0, 1), (1, 0)])
def test_l417_d156_volumes_are_detached_with_the_drain_if_it_left_none(volumes: int, appeared: int) -> None:
    """The object's condition is True from then on. Where volumes are left, the wait for them has an end of its own."""
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    metrics.apply(replace(world.store.entries[-1], payload=Drained(claim_of(world).name, volumes=volumes)))
    found = scraped(exposition(metrics.families()))
    assert value(found, f"{OF_CLAIM}_transitions_total", type="VolumesDetached", status="True") == appeared
    assert value(found, f"{OF_CLAIM}_transition_seconds_count", type="VolumesDetached") == 0


def test_l417_l420_a_node_that_falls_ill_and_goes() -> None:
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    node = world.runtime.state.facts.nodes["n1"]
    ill = replace(node, ready=False, ready_since=world.now, deleting=world.now)
    for observation in (Observation(ill), Observation(ObjectGone("node", "n1"))):
        world.after(7_000)
        world.see(observation)
        for entry in world.runtime.new_entries:
            metrics.apply(entry)
    found = gauges(world, metrics=metrics)
    assert value(found, "operator_node_status_condition_transitions_total", type="Ready", status="False") == 1
    assert value(found, "operator_node_termination_duration_seconds_sum", karpenter_sh_nodepool="default") == 14


def class_of(world: World, status: str, reason: str, *, deleting: int = 0) -> Observation:
    """The EC2NodeClass "default" with a condition that has been so for three seconds, beside one that is as ever."""
    ready = status == "True"
    conditions = (
        Condition("AMIsReady", "True", "AMIsReady", since=world.now - 60_000),
        Condition("Ready", status, "Ready" if ready else "UnhealthyDependents", since=world.now - 3_000),
        Condition("SubnetsReady", status, reason, since=world.now - 3_000),
    )
    known = EC2NodeClass("default", EC2NodeClassSpec(), EC2NodeClassStatus(conditions=conditions), deleting=deleting)
    digest, _ = content(known)
    seen = NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, "default", ready=ready and not deleting, digest=digest)
    return Observation(seen, {digest: known})


def applied(world: World, metrics: ConditionMetrics, observation: Observation) -> None:
    world.see(observation)
    for entry in world.runtime.new_entries:
        metrics.apply(entry)


def test_a379_l415_l416_l417_l418_all_conditions_of_an_ec2nodeclass() -> None:
    """They have the times of their object: what a process saw of them does not count."""
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    applied(world, metrics, class_of(world, "True", "SubnetsReady"))
    world.after(30_000)
    applied(world, metrics, class_of(world, "False", "SubnetsNotFound"))
    found = gauges(world, later=5_000, metrics=metrics)
    kind, bad = "operator_ec2nodeclass_status_condition", {"status": "False", "reason": "SubnetsNotFound"}
    assert value(found, f"{kind}_count", name="default", type="SubnetsReady", **bad) == 1
    assert value(found, f"{kind}_current_status_seconds", name="default", type="SubnetsReady", **bad) == 8
    assert value(found, f"{kind}_count", name="default", type="AMIsReady", status="True") == 1
    assert value(found, f"{kind}_current_status_seconds", name="default", type="AMIsReady") == 65
    assert value(found, f"{kind}_transitions_total", type="SubnetsReady", **bad) == 1
    assert value(found, f"{kind}_transition_seconds_sum", type="SubnetsReady", status="True") == 33
    moved = {dict(key)["type"] for key in found[f"{kind}_transitions_total"]}
    assert moved == {"Ready", "SubnetsReady"}
    bounds = {float(dict(key)["le"]) for key in found[f"{kind}_transition_seconds_bucket"]}
    assert max(bounds - {float("inf")}) == 10, "P of L-362"


def test_a379_l419_l420_an_ec2nodeclass_and_a_nodepool_that_go() -> None:
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    began = world.now
    applied(world, metrics, class_of(world, "True", "SubnetsReady", deleting=began))
    applied(world, metrics, Observation(pool(deleting=began)))
    world.after(7_000)
    found = gauges(world, metrics=metrics)
    for kind in ("ec2nodeclass", "nodepool"):
        assert value(found, f"operator_{kind}_termination_current_time_seconds", name="default") == 7
    applied(world, metrics, Observation(ObjectGone("nodepool", "default")))
    applied(world, metrics, Observation(ObjectGone("nodeclass", NODE_CLASS.key)))
    found = gauges(world, metrics=metrics)
    for kind in ("ec2nodeclass", "nodepool"):
        assert value(found, f"operator_{kind}_termination_duration_seconds_sum") == 7
        assert f"operator_{kind}_termination_current_time_seconds" not in found
        assert f"operator_{kind}_status_condition_count" not in found


def test_l415_a_class_whose_object_the_record_leaves_out_has_ready_alone() -> None:
    """So do bundles with pseudonyms."""
    world = lives.in_service()
    metrics = ConditionMetrics(world.runtime.state, "aws")
    seen = class_of(world, "False", "SubnetsNotFound").payload
    applied(world, metrics, Observation(replace(seen, reason="UnhealthyDependents")))
    found = gauges(world, later=4_000, metrics=metrics)
    count = found["operator_ec2nodeclass_status_condition_count"]
    assert [(dict(key)["type"], dict(key)["reason"]) for key in count] == [("Ready", "UnhealthyDependents")]
    assert value(found, "operator_ec2nodeclass_status_condition_current_status_seconds", type="Ready") == 4


def with_buffer(memory: int = 5_000 * Mi) -> World:
    world = World(capacity_buffers=True)
    world.prepare()
    shape = PodShape(requests={"memory": memory})
    digest, _ = content(shape)
    world.see(
        Observation(PodTemplate("shop", "spare", digest), {digest: shape}),
        Observation(CapacityBuffer("buf", "shop", "b", template="spare", replicas=1)),
    )
    return world


def test_l402_a_restart_goes_on_with_the_room_of_a_buffer_that_has_no_place() -> None:
    world = with_buffer(memory=1 << 60)
    world.after(1_000)
    metrics = RecordCounters(world.runtime.state, "aws")
    for entry in world.store.scan(world.runtime.state.facts.plan - 1, world.runtime.state.facts.plan):
        metrics.recall(entry)
    for found in (counted(world), scraped(exposition(metrics.families()))):
        assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 1


def test_l415_to_l418_conditions_of_a_capacity_buffer() -> None:
    """By namespace and name, from when they changed; a new process goes on with the latest plan."""
    world = with_buffer()
    name = "operator_capacitybuffer_status_condition"
    count, moved = f"{name}_count", f"{name}_transitions"
    metrics, seen = ConditionMetrics(world.runtime.state, "aws"), len(world.store.entries)

    def told() -> Samples:
        nonlocal seen
        for entry in world.store.entries[seen:]:
            metrics.apply(entry)
        seen = len(world.store.entries)
        return scraped(exposition([*metrics.families(), *metrics.gauges(world.now)]))

    ready = {"namespace": "shop", "name": "b", "type": "ReadyForProvisioning"}
    assert value(told(), count, **ready, status="True") == 1
    world.after(1_000)
    assert value(told(), count, namespace="shop", name="b", type="Provisioning") == 1
    later = ConditionMetrics(world.runtime.state, "aws")
    plan = world.runtime.state.facts.plan
    for entry in world.store.scan(plan - 1, plan):
        later.recall(entry)
    assert value(scraped(exposition(later.gauges(world.now))), count, type="Provisioning") == 1
    world.after(4_000)
    world.see(Observation(ObjectGone("podtemplate", "shop/spare")))
    found = told()
    assert value(found, count, **ready, status="False") == 1
    assert value(found, f"{moved}_total", type="ReadyForProvisioning", status="False") == 1
    took = f"{name}_transition_seconds_sum"
    assert value(found, took, type="ReadyForProvisioning", status="True") == 5
    world.see(Observation(ObjectGone("capacitybuffer", "shop/b")))
    assert count not in told()
    assert not [key for key in metrics._known if key[0] == "capacitybuffer"]
