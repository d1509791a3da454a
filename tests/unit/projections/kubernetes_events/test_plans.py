"""What a plan says of pods and NodePools in Events, metrics and logs (S-43, S-52, S-53, S-168 to S-175)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, ProvisionResult, Unplaced
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import LaunchAnswered, Observation
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.state import Facts, State
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import KubernetesEvent
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.counters import RecordCounters
from tests.support.metrics import Samples, scraped, value
from tests.support.world import Mi, World, pool

OPT_OUT = (NodeTerm((Expression(lbl.NODEPOOL, "DoesNotExist"),)),)
DECIDED = "karpenter_pods_scheduling_decision_duration_seconds"
BOUND = "karpenter_pods_provisioning_bound_duration_seconds"
HUGE = 1 << 50


def events(world: World) -> list[KubernetesEvent]:
    found = DecisionEvents(world.runtime.state)
    return [event for entry in world.store.entries for event in found.apply(entry)]


def metrics_of(world: World) -> RecordCounters:
    metrics = RecordCounters(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    return metrics


def measured(world: World) -> Samples:
    metrics = metrics_of(world)
    return scraped(exposition([*metrics.families(), *cluster_gauges(world.runtime.state, metrics, world.now)]))


def passed(world: World, *unplaced: Unplaced) -> Entry:
    """The latest entry's, as if a pass had left these pods."""
    decision = Decision("provision", 1, 1, world.now, "", ProvisionResult(unplaced=unplaced))
    return replace(world.store.entries[-1], payload=decision, at=world.now)


def prepared() -> World:
    world = World()
    world.prepare()
    return world


def test_s43_a_refused_pod_is_told_why_unless_it_wants_none_of_these_nodes() -> None:
    """And both count as ignored: no pod of them is planned for."""
    world = prepared()
    world.pending("out", required_terms=OPT_OUT)
    world.pending("bad", node_selector={lbl.HOSTNAME: "n1"})
    world.after(1_000)
    found = [(event.about.name, event.type) for event in events(world) if event.reason == "FailedScheduling"]
    assert found == [("bad", "Warning")]
    assert value(measured(world), "karpenter_scheduler_ignored_pods_count") == 2
    assert not world.runtime.state.facts.claims


def test_s170_s175_a_pod_that_waits_for_reserved_capacity_is_no_failure() -> None:
    """No Event, no log, and not counted; others beside it are."""
    world = prepared()
    world.pending("late", "lost")
    deferred = Unplaced(("uid-late",), (Reason(SchedulingCode.RESERVATION, {"node_pool": "default"}),))
    failed = Unplaced(("uid-lost",), (Reason(SchedulingCode.TYPES_RESOURCES, {"resources": ["cpu"], "types": 3}),))
    entry = passed(world, deferred, failed)
    assert [event.about.name for event in DecisionEvents(world.runtime.state).apply(entry)] == ["lost"]
    log = KarpenterLog()
    log.know(world.runtime.state)
    (line,) = log.apply(entry)
    assert (line["level"], line["Pod"]) == ("ERROR", {"name": "lost", "namespace": "default"})
    assert "cpu" in line["error"]
    metrics = RecordCounters(world.runtime.state, "aws")
    metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 1


def test_s62_without_a_nodepool_each_pod_is_told_so() -> None:
    world = World()
    world.pending("a")
    world.after(1_000)
    (event,) = events(world)
    assert (event.reason, event.about.name) == ("FailedScheduling", "a")
    assert "no NodePool is ready" in event.message


def test_s170_a_pod_whose_claims_are_ignored_is_told_and_is_no_error() -> None:
    world = prepared()
    world.pending("gpu", resource_claims=("gpu=mine",))
    world.after(1_000)
    assert [event.reason for event in events(world)] == ["FailedScheduling"]
    log = KarpenterLog()
    lines = [line for entry in world.store.entries for line in log.apply(entry)]
    assert [(line["level"], line["message"]) for line in lines] == [("INFO", "could not schedule pod")]


def test_l360_of_many_failures_a_sample_is_logged() -> None:
    world = prepared()
    pods = tuple(f"uid-{number}" for number in range(350))
    entry = passed(world, Unplaced(pods, (Reason(SchedulingCode.NO_NODE_POOL),)))
    named = [line["Pod"]["name"] for line in KarpenterLog().apply(entry)]
    assert named == [*pods[:100], "uid-199", "uid-299"]


def test_s173_a_nodepool_without_types_is_told_so_with_the_cause() -> None:
    """L-438: by its uid, within a minute; that minValues is the cause is said."""
    for requirement, cause in (
        (RequirementSpec(lbl.INSTANCE_TYPE, "In", ("nosuch",)), "leave none of its 4 instance types"),
        (RequirementSpec(lbl.INSTANCE_TYPE, "Exists", (), 5), "leave 4 of its 4 instance types, with fewer values"),
    ):
        world = World()
        world.prepare(replace(pool(), uid="u-1", requirements=(requirement,)))
        world.pending("a")
        world.after(1_000)
        (told,) = [event for event in events(world) if event.reason == "NoCompatibleInstanceTypes"]
        assert (told.about.kind, told.about.name, told.type) == ("NodePool", "default", "Warning")
        assert (told.key, told.window) == (("u-1",), 60_000)
        assert cause in told.message
        (failed,) = [event for event in events(world) if event.reason == "FailedScheduling"]
        assert cause in failed.message


def test_s66_s173_a_nodepool_without_types_is_told_so_beside_one_that_works() -> None:
    """All pods have a place, so no pod's reason names the other NodePool."""
    world = prepared()
    none = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("nosuch",))
    world.see(Observation(replace(pool("other"), uid="u-2", requirements=(none,))))
    world.pending("a")
    world.after(1_000)
    (told,) = [event for event in events(world) if event.reason == "NoCompatibleInstanceTypes"]
    assert told.about.name == "other"
    assert "leave none of its 4 instance types" in told.message
    assert [event.about.name for event in events(world) if event.reason == "FailedScheduling"] == []


def test_s173_windows_and_limits_of_what_is_told_of_pods() -> None:
    world = prepared()
    world.pending("fits")
    world.pending("lost", memory=HUGE)
    world.after(1_000)
    found = {
        event.about.name: (event.type, event.reason, event.key, event.window, event.limit) for event in events(world)
    }
    assert found == {
        "lost": ("Warning", "FailedScheduling", ("uid-lost",), 300_000, ""),
        "fits": ("Normal", "Nominated", ("uid-fits",), 120_000, "nominated"),
    }


def test_s174_every_nodepool_says_why_the_heaviest_first() -> None:
    world = prepared()
    world.see(Observation(pool("heavy", weight=10)))
    world.pending("lost", memory=HUGE)
    world.after(1_000)
    (told,) = [event for event in events(world) if event.reason == "FailedScheduling"]
    first, second = told.message.removeprefix("Failed to schedule pod, ").split("; ")
    assert first.startswith("NodePool heavy: ")
    assert second.startswith("NodePool default: ")
    assert "memory" in first


def test_s52_the_first_attempt_is_timed_once_from_when_the_pod_could_be_planned_for() -> None:
    """Not from when it was first seen: before, its scheduling may have been gated."""
    world = prepared()
    world.pending("a", memory=HUGE)
    gated = replace(world.pods["a"], uid="uid-g", name="g", unschedulable=False)
    world.see(Observation(gated))
    world.after(1_000)
    world.after(60_000)
    world.see(Observation(replace(gated, unschedulable=True)))
    world.after(2_000)
    found = measured(world)
    assert value(found, f"{DECIDED}_count") == 2
    assert value(found, f"{DECIDED}_sum") == 1 + 2


def test_s52_undecided_is_a_pod_that_could_be_planned_for_and_was_not_yet() -> None:
    name = "karpenter_pods_provisioning_scheduling_undecided_time_seconds"
    world = prepared()
    world.pending("a", memory=HUGE)
    world.see(Observation(replace(world.pods["a"], uid="uid-g", name="g", unschedulable=False)))
    world.now += 500
    assert measured(world)[name] == {(("name", "a"), ("namespace", "default")): 0.5}
    assert value(measured(world), "karpenter_scheduler_queue_depth") == 1
    world.after(500)
    assert not measured(world).get(name), "tried, and without a place"
    assert value(measured(world), "karpenter_scheduler_queue_depth") == 0


def test_s52_a_place_counts_from_the_first_plan_with_one_and_not_after_one_without() -> None:
    world = prepared()
    world.pending("a")
    metrics = metrics_of(world)
    at = world.now
    place = ProvisionResult(placements=())
    lost = Unplaced(("uid-a",), (Reason(SchedulingCode.NO_NODE_POOL),))

    def plan(seconds: int, result: ProvisionResult) -> int:
        decision = Decision("provision", 1, 1, at, "", result)
        metrics.apply(replace(world.store.entries[-1], payload=decision, at=at + 1_000 * seconds))
        return metrics.waiting()["uid-a"].planned

    world.after(1_000)
    made = next(entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision))
    assert isinstance(made, ProvisionResult)
    assert plan(1, replace(place, unplaced=(lost,))) == 0
    assert plan(2, made) == at + 2_000
    assert plan(3, made) == at + 2_000
    assert plan(4, replace(place, unplaced=(lost,))) == 0
    assert plan(5, made) == at + 5_000
    (claim,) = world.runtime.state.facts.claims
    assert world.runtime.state.facts.targets == {"uid-a": claim}


def test_s52_a_plan_without_a_place_forgets_where_the_pod_was_to_go() -> None:
    world = prepared()
    world.pending("a")
    world.after(1_000)
    assert world.runtime.state.facts.targets
    ((ref, order),) = world.launches()
    world.see(Observation(replace(pool(), limits={"cpu": 0})))
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="none")))
    world.after(11_000)
    assert not world.runtime.state.facts.targets


def test_s52_pods_that_are_bound_already_are_not_recorded() -> None:
    """Those of a node that goes are planned for beside the others."""
    world = prepared()
    world.pending("a")
    world.after(1_000)
    pod = world.pods["a"]
    world.see(Observation(replace(pod, node="n9", unschedulable=False)))
    metrics = metrics_of(world)
    before = metrics.waiting()["uid-a"].planned
    made = next(entry for entry in world.store.entries if isinstance(entry.payload, Decision))
    metrics.apply(replace(made, at=world.now + 60_000))
    assert metrics.waiting()["uid-a"].planned == before
    assert value(scraped(exposition(metrics.families())), f"{DECIDED}_count") == 1


def test_s53_what_is_kept_of_a_pod_goes_with_it_and_when_it_is_ready_or_over() -> None:
    def after(change: Pod | None) -> bool:
        world = prepared()
        world.pending("a")
        world.after(1_000)
        assert "uid-a" in metrics_of(world).waiting()
        if change is None:
            world.gone("a")
        else:
            world.see(Observation(change))
        return "uid-a" in metrics_of(world).waiting()

    world = prepared()
    world.pending("a")
    pod = world.pods["a"]
    assert after(replace(pod, node="n1", phase="Running")), "bound, and not ready"
    assert not after(None)
    assert not after(replace(pod, node="n1", phase="Running", ready=True))
    assert not after(replace(pod, phase="Failed"))


def test_s168_a_created_claim_is_counted_logged_and_known_at_once() -> None:
    world = prepared()
    world.pending("a")
    world.after(1_000)
    (claim,) = world.runtime.state.facts.claims.values()
    created = {("reason", "provisioned"), ("nodepool", "default"), ("min_values_relaxed", "false")}
    assert measured(world)["karpenter_nodeclaims_created_total"] == {tuple(sorted(created)): 1}
    assert world.runtime.state.facts.targets == {"uid-a": claim.name}
    log = KarpenterLog()
    lines = [line for entry in world.store.entries for line in log.apply(entry)]
    made = next(line for line in lines if line["message"] == "created nodeclaim")
    assert made["NodeClaim"] == {"name": claim.name}
    assert made["requests"] == {"memory": "1Gi", "pods": "1"}
    assert made["instance-types"] == "c5.large, m5.large, r5.large, m5.xlarge"
    assert [event.message for event in events(world)] == [f"Pod should schedule on: nodeclaim/{claim.name}"]


def test_s172_what_is_logged_of_a_plan() -> None:
    """Of new nodes and their pods, then of nodes that take some; nothing where there are no new ones."""

    def lines(world: World) -> list[tuple[str, object, object, object]]:
        log = KarpenterLog()
        found = [line for entry in world.store.entries for line in log.apply(entry)]
        return [
            (line["message"], line.get("nodeclaims", line.get("nodes")), line.get("pods"), line.get("Pods"))
            for line in found
            if line["controller"] == "provisioner" and line["message"] != "created nodeclaim"
        ]

    world = prepared()
    world.pending("a", memory=3_000 * Mi)
    world.after(1_000)
    first = [
        ("found provisionable pod(s)", None, None, "default/a"),
        ("computed new nodeclaim(s) to fit pod(s)", 1, 1, None),
    ]
    assert lines(world) == first
    world.pending("b", memory=10 * Mi)
    world.after(1_000)
    assert lines(world) == first, "it goes where the first one goes"
    world.pending("c", memory=10_000 * Mi)
    world.after(1_000)
    assert lines(world)[2:] == [
        ("found provisionable pod(s)", None, None, "default/a, default/b, default/c"),
        ("computed new nodeclaim(s) to fit pod(s)", 1, 1, None),
        ("computed unready node(s) will fit pod(s)", 1, 2, None),
    ]
