"""Causes that last are told again, for as long as they hold (L-435)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.kubernetes.events import AGAIN_AFTER, REPEATS_EVERY
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.adapters.manager.reporting import LOOK_EVERY, LogOutput, TurnReports
from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepool_health import MAX_VAIN_LAUNCHES, PoolHealth, VainLaunches
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.volumes import VolumeAttachment
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.object_events import ObjectEvents
from tests.support.lives import claim_of, decide, half_empty, in_service
from tests.support.world import World, pool
from tests.support.worlds.drain import drain, put, serving


def lasting(world: World, *, restarted: bool = False) -> set[tuple[str, str, str]]:
    """What is told again of this world: kind, name and reason. A process that is `restarted` saw nothing of it."""
    decisions, objects = DecisionEvents(world.runtime.state), ObjectEvents(world.runtime.state)
    for entry in world.store.entries if not restarted else ():
        decisions.apply(entry)
        objects.apply(entry)
    found = [*decisions.lasting(world.now), *objects.lasting(world.now)]
    return {(event.about.kind, event.about.name, event.reason) for event in found}


def recalled(world: World) -> set[tuple[str, str, str]]:
    """What a process tells again that was started on this record."""
    reports = TurnReports(world.runtime.state, LogOutput("error", []), Telemetry(provider="kwok", state_metrics=False))
    reports.recall(world.store)
    return {(each.about.kind, each.about.name, each.reason) for each in reports.lasting(world.now)}


def gone(world: World, pod: str) -> None:
    world.see(Observation(ObjectGone("pod", f"uid-{pod}")))


def test_ev13_a_pod_without_a_place_is_told_until_it_has_one() -> None:
    world = World()
    world.prepare()
    world.pending("big", memory=1 << 50)
    world.after(1_000)
    assert ("Pod", "big", "FailedScheduling") in lasting(world)
    assert ("Pod", "big", "FailedScheduling") in recalled(world)
    world.gone("big")
    assert lasting(world) == set()


def test_s66_a_nodepool_without_types_is_told_until_it_has_some() -> None:
    world = World()
    world.prepare()
    none = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("nosuch",))
    world.see(Observation(replace(pool("other"), requirements=(none,))))
    world.pending("a")
    world.after(1_000)
    assert ("NodePool", "other", "NoCompatibleInstanceTypes") in lasting(world, restarted=True)
    world.see(Observation(pool("other")))
    assert lasting(world) == set()


def test_ev16_a_drain_that_waits_is_told_until_its_pods_are_gone() -> None:
    """Also by a process that saw none of it."""
    world = serving(termination_grace_period=3_600_000)
    put(world, "kept", do_not_disrupt="true")
    drain(world)
    waits = {
        ("Node", "n1", "FailedDraining"),
        ("Node", "n1", "TerminationGracePeriodExpiring"),
    }
    assert waits <= lasting(world, restarted=True)
    gone(world, "kept")
    assert ("Node", "n1", "FailedDraining") not in lasting(world)


def test_ev17_l199_what_volumes_a_drained_node_waits_for_is_told_until_they_are_detached() -> None:
    world = serving()
    world.see(Observation(VolumeAttachment("attachment", "n1", "pv-1")))
    drain(world)
    world.after(5_000)
    assert ("Node", "n1", "AwaitingVolumeDetachment") in lasting(world, restarted=True)
    world.see(Observation(ObjectGone("volumeattachment", "attachment")))
    assert ("Node", "n1", "AwaitingVolumeDetachment") not in lasting(world)


def test_ev16_d146_a_drained_node_that_waits_for_a_late_pod_is_told_of_it_and_not_of_volumes() -> None:
    """The pod leaves before the volumes may."""
    world = serving()
    world.see(Observation(VolumeAttachment("attachment", "n1", "pv-1")))
    drain(world)
    world.after(5_000)
    put(world, "late", do_not_disrupt="true")
    found = lasting(world, restarted=True)
    assert ("Node", "n1", "FailedDraining") in found
    assert ("Node", "n1", "AwaitingVolumeDetachment") not in found
    gone(world, "late")
    assert ("Node", "n1", "AwaitingVolumeDetachment") in lasting(world, restarted=True)


def test_ev16_w80_a_node_without_a_claim_is_told_to_wait_too() -> None:
    world = serving()
    world.node("lone", "aws:///us-west-2a/i-9", registered="true", initialized="true")
    put(world, "kept", do_not_disrupt="true", node="lone")
    node = world.runtime.state.facts.nodes["lone"]
    labels = {**node.labels, lbl.EC2NODECLASS: "default"}
    world.see(Observation(replace(node, deleting=world.now, labels=labels)))
    assert ("Node", "lone", "FailedDraining") in lasting(world, restarted=True)
    gone(world, "kept")
    assert ("Node", "lone", "FailedDraining") not in lasting(world, restarted=True)


def test_ev1_what_blocks_a_node_is_told_as_it_is_by_now() -> None:
    """Another pod blocks than the one that the record names."""
    world = serving()
    put(world, "first", do_not_disrupt="true")
    world.after(60_000)
    assert ("Pod", "first", "DisruptionBlocked") in lasting(world, restarted=True)
    gone(world, "first")
    put(world, "second", do_not_disrupt="true")
    found = lasting(world, restarted=True)
    assert {("Node", "n1", "DisruptionBlocked"), ("Pod", "second", "DisruptionBlocked")} <= found
    assert ("Pod", "first", "DisruptionBlocked") not in found


def test_ev7_why_a_node_is_not_consolidated_is_told_until_something_else_is_said() -> None:
    world = serving(consolidation_policy="WhenEmpty")
    put(world, "a")
    world.after(60_000)
    assert ("Node", "n1", "Unconsolidatable") in lasting(world)
    assert ("Node", "n1", "Unconsolidatable") in recalled(world)
    gone(world, "a")
    decide(world)
    assert ("Node", "n1", "Unconsolidatable") not in lasting(world)


def test_ev2_a_budget_that_allows_nothing_is_told_until_it_does() -> None:
    world = half_empty(budgets=(Budget("0"),))
    world.after(11_000)
    assert ("NodePool", "default", "DisruptionBlocked") in lasting(world)
    world.see(Observation(pool(budgets=(Budget("100%"),))))
    assert ("NodePool", "default", "DisruptionBlocked") not in lasting(world)


def test_ev2_d52_a_window_that_opens_over_a_node_without_a_cheaper_one_is_told() -> None:
    """Nothing happens when it opens, as the node could not go before. No pass looks at it."""
    hour = 3_600_000
    world = in_service(budgets=(Budget("0", "30 22 * * *", hour, ("Underutilized",)),))
    world.after(5 * 60_000)
    assert claim_of(world).verdict == "nothing-cheaper"
    blocked = ("NodePool", "default", "DisruptionBlocked")
    assert blocked not in lasting(world)
    world.now += 20 * 60_000
    assert blocked in lasting(world)
    assert ("Node", "n1", "Unconsolidatable") in lasting(world)
    world.now += hour
    assert blocked not in lasting(world)


def test_ev4_a_replacement_is_told_to_be_waited_for_until_it_is_ready() -> None:
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    assert ("NodeClaim", order.claim, "DisruptionWaitingReadiness") not in lasting(world), "it is not launched yet"
    world.answer_launch(ref, order, instance="i-2")
    assert ("NodeClaim", order.claim, "DisruptionWaitingReadiness") in lasting(world, restarted=True)


def test_ev24_an_annotation_that_counts_for_nothing_is_told_until_it_is_mended() -> None:
    world = serving()
    made = put(world, "a", do_not_disrupt="tomorrow")
    assert ("Pod", "a", "InvalidDoNotDisruptAnnotation") in lasting(world, restarted=True)
    assert ("Pod", "a", "InvalidDoNotDisruptAnnotation") in recalled(world)
    world.see(Observation(replace(made, do_not_disrupt="true")))
    assert ("Pod", "a", "InvalidDoNotDisruptAnnotation") not in lasting(world)


def test_ev25_d10_a_pod_that_is_over_is_not_said_to_hold_its_node() -> None:
    """A Job's pod that has ended: it lets its node go, whatever its annotation says."""
    world = serving()
    made = put(world, "job", do_not_disrupt="30m")
    assert ("Pod", "job", "DoNotDisruptUntil") in lasting(world, restarted=True)
    world.see(Observation(replace(made, phase="Succeeded")))
    assert ("Pod", "job", "DoNotDisruptUntil") not in lasting(world)


def test_a_label_that_no_launch_gave_is_told_until_the_nodepool_changes() -> None:
    """What kerf launches nothing for any more (issue 14, A4)."""
    world = serving()
    health = world.runtime.state.facts.health
    rack = VainLaunches(RequirementSpec("example.com/rack", "In", ("a",)), MAX_VAIN_LAUNCHES)
    health["default"] = replace(health.get("default", PoolHealth()), in_vain=(rack,))
    assert ("NodePool", "default", "LabelNotGiven") in lasting(world, restarted=True)
    health["default"] = replace(health["default"], in_vain=())
    assert ("NodePool", "default", "LabelNotGiven") not in lasting(world, restarted=True)


def test_l435_what_lasts_is_told_again_within_half_an_hour() -> None:
    assert LOOK_EVERY + AGAIN_AFTER == 30 * 60
    assert 1 / REPEATS_EVERY == 10, "a second"
