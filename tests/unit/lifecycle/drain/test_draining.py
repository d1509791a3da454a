"""L-196…L-206, D-140…D-157: from the taint to the end."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.decisions import DeletePod, EvictPod, LaunchInstance, TaintNode, TerminateInstance
from kerf.engine.record.observations import EffectAnswered, NodeClaimDeletionSeen, ObjectGone, Observation
from tests.support.lives import PODS, PROVIDER, claim_of, in_service, show_taint, types
from tests.support.world import World


def draining(**changes: object) -> World:
    world = in_service(**changes)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    return world


def test_l204_every_pod_is_evicted_once() -> None:
    world = draining()
    assert [i.name for i in (intent for _, intent in world.intents) if isinstance(i, EvictPod)] == list(PODS)
    world.answer_all()
    assert types(world).count("claim.pod-evicted") == 5
    assert claim_of(world).evicted == 5


def test_l206_a_429_is_tried_again_with_back_off() -> None:
    world = draining()
    refused = [ref for ref, intent in world.intents if isinstance(intent, EvictPod)]
    world.see(*(Observation(EffectAnswered(ref, False, "429", "pdb")) for ref in refused))
    assert world.after(999) == []
    again = world.after(1)
    assert {i.attempt for i in again if isinstance(i, EvictPod)} == {2}
    world.see(*(Observation(EffectAnswered(ref, False, "429", "pdb")) for ref, _ in world.intents))
    assert world.after(1_999) == []
    assert len(world.after(1)) == 5


def test_l198_d145_w78_a_drain_settles_for_five_seconds() -> None:
    world = draining()
    world.answer_all()
    for name in PODS:
        assert world.gone(name) == []
    assert world.after(4_999) == []
    (end,) = world.after(1)
    assert isinstance(end, TerminateInstance)


def test_l196_no_instance_ends_before_a_taint_that_was_taken_off_is_on_again() -> None:
    """Found by a simulation seed: the untaint of a move given up came after the drain for another reason had begun, and
    the instance ended under pods that had come since."""
    world = draining()
    world.answer_all()
    world.after(60_000)
    untainted = world.node("n1", PROVIDER, registered="true", initialized="true")
    assert [type(intent) for intent in untainted] == [TaintNode]
    for name in PODS:
        world.gone(name)
    assert not any(isinstance(intent, TerminateInstance) for intent in world.after(10_000))
    world.answer_all()
    show_taint(world)
    assert any(isinstance(intent, TerminateInstance) for _, intent in world.intents)


def test_d146_after_a_refused_end_the_pods_that_came_since_leave_first() -> None:
    """Found by a simulation seed: a watch had a gap, EC2 refused the end of the instance, and it ended under two pods
    that were bound before the taint and seen after it."""
    world = draining()
    world.answer_all()
    came = world.pods["a"]
    for name in PODS:
        world.gone(name)
    world.after(5_000)
    ((ref, end),) = world.intents
    assert isinstance(end, TerminateInstance)
    late = Pod("late", came.namespace, "late", came.shape, node="n1", phase="Running")
    assert world.see(Observation(late)) == [], "there is no way back while the answer is awaited"
    refused = world.see(Observation(EffectAnswered(ref, False, "RequestLimitExceeded", "try again")))
    assert [type(intent) for intent in refused] == [EvictPod]
    world.answer_all()
    assert not any(isinstance(intent, TerminateInstance) for intent in world.after(60_000))
    assert [type(intent) for intent in world.see(Observation(ObjectGone("pod", "late")))] == [TerminateInstance]


def test_d151_pods_are_deleted_by_force_before_the_deadline() -> None:
    world = in_service(termination_grace_period=300_000)
    for name in PODS[1:]:
        world.gone(name)
    kept = world.pods["a"]
    protected = Pod(kept.uid, kept.namespace, kept.name, kept.shape, node="n1", phase="Running", do_not_disrupt="true")
    world.see(Observation(protected))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    (replacement,) = world.after(1_000)  # it will leave by the deadline: its next place is there by then
    assert isinstance(replacement, LaunchInstance)
    assert world.after(299_000) == []
    world.after(1)  # the pod's own grace is 0: strictly after the deadline
    ((ref, by_force),) = ((ref, i) for ref, i in world.intents if isinstance(i, DeletePod))
    assert by_force.grace == 1
    world.see(Observation(EffectAnswered(ref, True)))
    assert "claim.pod-forced" in types(world)


def test_d147_a_protected_pod_holds_the_drain_without_a_deadline() -> None:
    world = in_service()
    for name in PODS[1:]:
        world.gone(name)
    kept = world.pods["a"]
    world.see(Observation(Pod(kept.uid, "default", "a", kept.shape, node="n1", phase="Running", do_not_disrupt="true")))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    assert world.after(10 * 3_600_000) == []
    assert claim_of(world).state == "draining"


def test_d150_a_refused_eviction_is_tried_again_as_soon_as_a_budget_changes() -> None:
    world = draining()
    refused = [ref for ref, intent in world.intents if isinstance(intent, EvictPod)]
    world.see(*(Observation(EffectAnswered(ref, False, "429")) for ref in refused))
    again = world.see(Observation(PodDisruptionBudget("uid-pdb", "default", "pdb", disruptions_allowed=1)))
    assert len([i for i in again if isinstance(i, EvictPod)]) == len(PODS)


def test_a_budget_that_never_allows_costs_less_and_less() -> None:
    world = draining()
    end = world.now + 3_600_000
    asked = 0
    while world.now < end:
        refused = [ref for ref, intent in world.intents if isinstance(intent, EvictPod)]
        asked += len(refused)
        world.see(*(Observation(EffectAnswered(ref, False, "429")) for ref in refused))
        world.after((world.runtime.next_due() or end) - world.now)
    assert len(PODS) * 10 < asked <= len(PODS) * (9 + 12)  # 1 s doubling to 5 min, then every 5 min for an hour
