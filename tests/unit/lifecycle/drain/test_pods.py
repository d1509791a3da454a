"""W-70…W-77, W-82, W-83 and D-12: which pods leave a draining node, in which order, and how."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Toleration
from kerf.engine.record.decisions import DeleteNode, EvictPod, LaunchInstance
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer, EffectAnswered, ObjectGone, Observation
from kerf.engine.scheduling.problem.departing_pods import MIN_LEAD
from tests.support.lives import claim_of, types
from tests.support.world import World
from tests.support.worlds.drain import drain, evicted, forced, put, serving


def gone(world: World, name: str) -> None:
    world.see(Observation(ObjectGone("pod", f"uid-{name}")))


def test_w70_the_four_groups_leave_strictly_one_after_another() -> None:
    """L-204: each group is gone before the next is asked for."""
    world = serving()
    put(world, "critical-daemon", critical=True, daemon=True)
    put(world, "critical", critical=True)
    put(world, "daemon", daemon=True)
    put(world, "plain-1")
    put(world, "plain-2")
    drain(world)
    assert evicted(world) == ["plain-1", "plain-2"]
    world.answer_all()
    gone(world, "plain-1")
    assert evicted(world) == []
    gone(world, "plain-2")
    for name in ("daemon", "critical", "critical-daemon"):
        assert evicted(world) == [name]
        world.answer_all()
        gone(world, name)
    world.after(5_000)
    assert claim_of(world).drained


def test_d144_the_number_of_a_priority_makes_no_pod_critical() -> None:
    world = serving()
    shape = PodShape(priority=2_000_001_000, priority_class="mine")
    digest, _ = content(shape)
    pod = Pod("uid-high", "default", "high", digest, node="n1", phase="Running")
    world.see(Observation(pod, {digest: shape}))
    put(world, "plain")
    drain(world)
    assert evicted(world) == ["high", "plain"]


def test_d147_a_protected_pod_holds_back_the_groups_behind_it() -> None:
    world = serving()
    put(world, "held", do_not_disrupt="true")
    put(world, "daemon", daemon=True)
    drain(world)
    assert world.after(3_600_000) == []


def test_w73_forced_pods_of_any_group_go_at_once() -> None:
    """Beside the first group's evictions: a critical pod that takes longer than the deadline leaves."""
    world = serving(termination_grace_period=300_000)
    put(world, "plain", grace=30)
    put(world, "critical", grace=600, critical=True)
    drain(world)
    assert evicted(world) == ["plain"]
    assert forced(world) == {"critical": 300}


def test_w71_a_pod_whose_grace_is_the_whole_period_goes_by_force_at_once() -> None:
    world = serving(termination_grace_period=300_000)
    put(world, "held", grace=300, do_not_disrupt="true")
    drain(world)
    assert forced(world) == {}  # strictly after (D-151)
    world.after(1)
    assert forced(world) == {"held": 299}


def test_w72_a_pod_is_left_alone_until_its_own_grace_is_all_that_is_left() -> None:
    world = serving(termination_grace_period=300_000)
    put(world, "held", grace=60, do_not_disrupt="true")
    drain(world)
    world.after(90_000)
    world.after(150_000)
    assert forced(world) == {}
    world.after(1)
    assert forced(world) == {"held": 59}


def test_w74_a_pod_that_terminates_beyond_the_deadline_is_shortened_to_it() -> None:
    world = serving(termination_grace_period=300_000)
    pod = put(world, "slow", grace=6_000)
    world.see(Observation(replace(pod, deleting=world.now + 6_000_000)))
    drain(world)
    assert forced(world) == {"slow": 300}
    world.answer_all()
    world.see(Observation(replace(pod, deleting=world.now + 300_000)))
    assert forced(world) == {}


def test_w75_long_past_the_deadline_one_second_of_grace_is_left() -> None:
    world = serving(termination_grace_period=60_000)
    drain(world)
    world.after(4_000)  # not settled yet: the drain still looks
    put(world, "late", do_not_disrupt="true")
    assert evicted(world) == []
    world.after(600_000)
    put(world, "later", grace=5, do_not_disrupt="true")
    assert forced(world) == {"later": 1}


def test_w77_a_pod_61_s_past_its_deletion_is_not_awaited() -> None:
    world = serving()
    put(world, "stuck", deleting=world.now + 1_000)
    put(world, "daemon", daemon=True)
    drain(world)
    world.after(61_000)
    assert evicted(world) == []
    world.after(1)
    assert evicted(world) == ["daemon"]


def test_l202_no_pod_counts_as_stuck_while_the_clocks_differ() -> None:
    """Its deletion time is the API server's: a process whose time is ahead of that would lose the pod."""
    world = serving()
    put(world, "ends", deleting=world.now + 1_000)
    put(world, "daemon", daemon=True)
    drain(world)
    world.see(Observation(ClocksDiffer(skew=5_000)))
    world.after(24 * 3_600_000)
    assert evicted(world) == []
    world.see(Observation(ClocksAgree()))
    assert evicted(world) == ["daemon"]


def test_d12_the_duration_of_a_protection_does_not_end_while_the_clocks_differ() -> None:
    world = serving()
    put(world, "held", do_not_disrupt="1m")
    drain(world)
    world.see(Observation(ClocksDiffer(skew=5_000)))
    world.after(3_600_000)
    assert evicted(world) == []
    world.see(Observation(ClocksAgree()))
    assert evicted(world) == ["held"]


def test_w82_only_a_toleration_of_the_disrupted_taint_keeps_a_pod() -> None:
    """Only a toleration of the disrupted taint keeps a pod (D-11)."""
    world = serving()
    put(world, "stays", tolerations=(Toleration(operator="Exists"),))
    put(world, "goes", tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))
    drain(world)
    assert evicted(world) == ["goes"]
    gone(world, "goes")
    world.after(5_000)
    assert "claim.drained" in types(world)


def test_w83_a_pod_of_the_same_name_has_an_eviction_of_its_own() -> None:
    """L-205: the order names the uid, and what became of the old one does not count for the new one."""
    world = serving()
    old = put(world, "web-0")
    drain(world)
    ((ref, order),) = [(r, i) for r, i in world.intents if isinstance(i, EvictPod)]
    assert order.uid == "uid-web-0"
    world.see(Observation(EffectAnswered(ref, False, "409", "the uid differs")))
    gone(world, "web-0")
    world.see(Observation(replace(old, uid="uid-second")))
    ((_, again),) = [(r, i) for r, i in world.intents if isinstance(i, EvictPod)]
    assert (again.uid, again.attempt) == ("uid-second", 1)


def test_d12_a_pod_protected_for_a_while_is_evicted_when_the_time_is_up() -> None:
    world = serving()
    put(world, "batch", do_not_disrupt="30m")
    drain(world)
    assert world.after(30 * 60_000 - MIN_LEAD - 1 - (world.now - claim_of(world).tainted)) == []
    (replacement,) = world.after(1)
    assert isinstance(replacement, LaunchInstance), "its next place is there when it comes"
    assert evicted(world) == []
    world.after(MIN_LEAD)
    assert evicted(world) == ["batch"]


def test_d12_other_text_protects_nothing_and_a_pod_that_has_not_started_is_protected() -> None:
    world = serving()
    put(world, "off", do_not_disrupt="false")
    put(world, "negative", do_not_disrupt="-5m")
    put(world, "starting", do_not_disrupt="5m", started=0)
    drain(world)
    assert evicted(world) == ["negative", "off"]


def test_d150_a_refusal_over_several_budgets_is_tried_again_when_one_changes() -> None:
    world = serving()
    put(world, "web")
    drain(world)
    refused = [ref for ref, i in world.intents if isinstance(i, EvictPod)]
    world.see(*(Observation(EffectAnswered(ref, False, "500", "more than one")) for ref in refused))
    world.see(Observation(PodDisruptionBudget("uid-pdb", "default", "pdb", disruptions_allowed=1)))
    assert evicted(world) == ["web"]


def test_d150_a_budget_of_another_namespace_has_nothing_tried_again() -> None:
    world = serving()
    put(world, "web")
    drain(world)
    (refused,) = [ref for ref, i in world.intents if isinstance(i, EvictPod)]
    world.see(Observation(EffectAnswered(refused, False, "429", "no")))
    world.see(Observation(PodDisruptionBudget("uid-other", "elsewhere", "pdb", disruptions_allowed=1)))
    world.see(Observation(ObjectGone("pdb", "uid-other")))
    assert evicted(world) == []
    world.see(Observation(PodDisruptionBudget("uid-pdb", "default", "pdb", disruptions_allowed=1)))
    assert evicted(world) == ["web"]


def test_w76_an_instance_that_is_gone_ends_the_drain_whatever_the_node_says() -> None:
    """D-140, the first half of W-76; the second is a difference on purpose (docs/differences.md)."""
    world = serving()
    put(world, "held", do_not_disrupt="true")
    drain(world)
    world.instance("i-1", "terminated")
    assert [type(intent) for _, intent in world.intents] == [DeleteNode]
