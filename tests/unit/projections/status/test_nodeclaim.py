"""The conditions that a NodeClaim object shows (lifecycle.md 1.8, disruption.md 13.2)."""

from __future__ import annotations

import pytest

from kerf.adapters.kubernetes.objects.stale_nodeclaims import StaleNodeClaims
from kerf.engine.disruption.cluster_from_state import NEVER
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.kubernetes.volumes import VolumeAttachment
from kerf.engine.record.observations import LaunchAnswered, ObjectGone, Observation
from kerf.projections.kubernetes_events.object_events import ObjectEvents
from kerf.projections.status.nodeclaim import ELAPSED, claim_conditions
from tests.support import lives
from tests.support.lives import PROVIDER, UNREGISTERED, claim_of
from tests.support.world import World
from tests.support.worlds.drain import drain, put, serving


def shown(world: World, later: int = 0) -> dict[str, tuple[str, str]]:
    found = claim_conditions(claim_of(world), world.runtime.state, world.now + later)
    return {condition.type: (condition.status, condition.reason) for condition in found}


def test_l66_nothing_is_known_of_a_claim_that_is_only_asked_for() -> None:
    waiting = ("Unknown", "AwaitingReconciliation")
    assert shown(lives.asked()) == {
        "Launched": waiting,
        "Registered": waiting,
        "Initialized": waiting,
        "Ready": ("Unknown", "ReconcilingDependents"),
    }


def test_l70_a_launch_that_failed_and_is_tried_again_says_why() -> None:
    world = lives.asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="Throttled", message="x" * 301)))
    (launched, *_) = claim_conditions(claim_of(world), world.runtime.state, world.now)
    assert (launched.status, launched.reason, launched.message) == ("Unknown", "LaunchFailed", "x" * 300 + "...")


def test_l71_no_node_and_several() -> None:
    world = lives.launched()
    assert shown(world)["Registered"] == ("Unknown", "NodeNotFound")
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.node("n2", PROVIDER, taints=(UNREGISTERED,))
    assert shown(world)["Registered"] == ("False", "MultipleNodesFound")
    assert shown(world)["Ready"] == ("False", "UnhealthyDependents")


def test_l72_what_a_node_is_still_waited_for() -> None:
    world = lives.launched(startup_taints=(Taint("cni", "NoSchedule"),))
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    seen = []
    for ready, taints in (
        (False, ()),
        (True, (Taint("cni", "NoSchedule"),)),
        (True, (Taint("node.kubernetes.io/not-ready", "NoSchedule"),)),
    ):
        world.node("n1", PROVIDER, registered="true", ready=ready, taints=taints)
        seen.append(shown(world)["Initialized"])
    assert seen == [
        ("Unknown", "NodeNotReady"), ("Unknown", "StartupTaintsExist"), ("Unknown", "KnownEphemeralTaintsExist"),
    ]  # fmt: skip


def test_c1_a_claim_becomes_consolidatable_when_its_pods_have_been_quiet() -> None:
    """D-55 to D-57: by time alone, and no more once a pod comes."""
    world = lives.in_service(consolidate_after=30_000)
    assert "Consolidatable" not in shown(world, 29_999)
    assert shown(world, 30_000)["Consolidatable"] == ("True", "Consolidatable")
    name, upkeep, state = claim_of(world).name, StaleNodeClaims(), world.runtime.state
    assert upkeep.consolidatable(state, world.now) == ([], world.now + 30_000)
    assert upkeep.consolidatable(state, world.now + 30_000) == ([name], NEVER)
    assert upkeep.turned == {name: True}
    assert upkeep.consolidatable(state, world.now + 31_000) == ([], NEVER)
    assert upkeep.turned == {}
    later = StaleNodeClaims()
    assert later.consolidatable(state, world.now + 31_000) == ([name], NEVER)
    assert later.turned == {}, "it had become so before this process began"
    claim_of(world).last_pod_event = world.now + 32_000
    assert upkeep.consolidatable(state, world.now + 32_000) == ([name], world.now + 62_000)
    assert upkeep.turned == {name: False}


def test_c1_never_where_the_node_pool_says_never() -> None:
    world = lives.in_service(consolidate_after=None)
    assert "Consolidatable" not in shown(world, 10**12)


def test_c4_to_c6_the_way_out_is_told_step_by_step() -> None:
    world = lives.in_service()
    for name in lives.PODS:
        world.gone(name)
    lives.decide(world)
    assert shown(world)["DisruptionReason"] == ("True", "Empty")
    world.answer_all()
    lives.show_taint(world)
    world.after(6_000)
    assert shown(world)["Drained"] == ("True", "Drained")
    assert shown(world)["VolumesDetached"] == ("True", "VolumesDetached")
    assert "InstanceTerminating" not in shown(world)
    world.answer_all()
    assert shown(world)["InstanceTerminating"] == ("True", "InstanceTerminating")


def test_c4_c5_d146_d156_until_it_is_true_a_step_of_the_way_out_says_its_reason_as_its_message() -> None:
    world = serving(termination_grace_period=60_000)
    world.see(Observation(VolumeAttachment("attachment", "n1", "pv-1")))
    pod = put(world, "kept", do_not_disrupt="true")
    drain(world)
    assert message(world, "Drained") == ("Unknown", "Draining", "Draining")
    world.see(Observation(ObjectGone("pod", pod.uid)))
    world.after(5_000)
    assert message(world, "Drained") == ("True", "Drained", "")
    assert message(world, "VolumesDetached") == ("Unknown", *2 * ("AwaitingVolumeDetachment",))
    events = ObjectEvents(world.runtime.state)
    world.after(60_000)
    assert message(world, "VolumesDetached") == ("False", *2 * ("TerminationGracePeriodElapsed",))
    told = [event.message for entry in world.runtime.new_entries for event in events.apply(entry)]
    assert any(text.endswith(f"Unknown -> False, Reason: {ELAPSED}, Message: {ELAPSED}") for text in told)


def message(world: World, kind: str) -> tuple[str, str, str]:
    conditions = claim_conditions(claim_of(world), world.runtime.state, world.now)
    (found,) = [(c.status, c.reason, c.message) for c in conditions if c.type == kind]
    return found


def test_c6_an_instance_that_takes_its_time_is_terminating_all_the_while() -> None:
    """The order to end it is repeated each minute: neither that nor a refusal takes the condition back (D-6)."""
    world = lives.in_service()
    for name in lives.PODS:
        world.gone(name)
    lives.decide(world)
    world.answer_all()
    lives.show_taint(world)
    world.after(6_000)
    world.answer_all()
    accepted = world.now
    for ok in (True, False):
        assert [type(intent).__name__ for intent in world.after(60_000)] == ["TerminateInstance"]
        assert since(world, "InstanceTerminating") == accepted, "while the order is on its way"
        world.answer_all(ok=ok, code="200" if ok else "503")
        assert since(world, "InstanceTerminating") == accepted


def since(world: World, kind: str) -> int:
    conditions = claim_conditions(claim_of(world), world.runtime.state, world.now)
    return next((condition.since for condition in conditions if condition.type == kind), 0)


def test_objects_are_brought_up_to_date_for_what_no_event_of_the_claim_says() -> None:
    world, upkeep = lives.asked(), StaleNodeClaims()
    name, state = claim_of(world).name, world.runtime.state
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="Throttled", message="later")))
    assert upkeep.touched(world.runtime.new_entries, state) == [name]
    world = lives.launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    assert upkeep.touched(world.runtime.new_entries, world.runtime.state) == [claim_of(world).name]
    world = lives.in_service()
    world.node("n1", PROVIDER, registered="true", initialized="true", ready=False)
    assert upkeep.touched(world.runtime.new_entries, world.runtime.state) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [("Unauthorized", "Unauthorized"), ("NodeClassReadinessUnknown",) * 2, ("KERF605", "LaunchFailed")],
)
def test_l154_l70_a_failed_launch_has_the_clouds_reason(code: str, reason: str) -> None:
    world = lives.asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code=code, message="no")))
    (launched, *_) = claim_conditions(claim_of(world), world.runtime.state, world.now)
    assert (launched.status, launched.reason, launched.message) == ("Unknown", reason, "no")
