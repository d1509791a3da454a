"""What is told of drains: pods that are waited for, refusals, forced pods (D-145, D-150, D-153; EV-14 to EV-16)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.model.kubernetes.volumes import VolumeAttachment
from kerf.engine.record.observations import EffectAnswered, ObjectGone, Observation
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import WARNING, KubernetesEvent
from tests.support.events import told
from tests.support.lives import DISRUPTED, UNREGISTERED, claim_of, decide, half_empty, show_taint
from tests.support.metrics import counted, value
from tests.support.world import World
from tests.support.worlds.drain import drain, put, serving

HOUR = 3_600_000


def of(world: World, reason: str, since: int = 0) -> list[KubernetesEvent]:
    return [event for event in told(world, since) if event.reason == reason]


def test_ev16_d145_a_drain_that_only_waits_says_for_how_many_pods() -> None:
    """No pod may be evicted, so there is no intent: what the node waits for is told all the same."""
    world = serving()
    put(world, "kept", do_not_disrupt="true")
    since = world.runtime.state.facts.position
    drain(world)
    (event,) = of(world, "FailedDraining", since)
    assert (event.about.kind, event.about.name, event.type) == ("Node", "n1", WARNING)
    assert event.message == "Failed to drain node, 1 pod is waiting to be evicted"


def test_ev16_d145_a_drain_that_evicts_says_how_many_pods_are_left() -> None:
    world = serving()
    put(world, "a")
    put(world, "b")
    drain(world)
    messages = {event.message for event in of(world, "FailedDraining")}
    assert messages == {"Failed to drain node, 2 pods are waiting to be evicted"}


@pytest.mark.parametrize("there", [0, 1])
def test_ev16_d145_a_pod_that_comes_to_a_drain_and_may_not_be_evicted_is_told_of(there: int) -> None:
    """There is no intent of it, and no decision. Until the next look at what lasts nothing was told."""
    world = serving()
    for number in range(there):
        put(world, f"kept-{number}", do_not_disrupt="true")
    drain(world)
    since = world.runtime.state.facts.position
    put(world, "late", do_not_disrupt="true")
    (event,) = of(world, "FailedDraining", since)
    pods = "2 pods are" if there else "1 pod is"
    assert event.message == f"Failed to drain node, {pods} waiting to be evicted"
    since = world.runtime.state.facts.position
    put(world, "elsewhere", do_not_disrupt="true", node="")
    assert of(world, "FailedDraining", since) == []


def test_ev16_w80_a_node_without_a_claim_says_so_too() -> None:
    world = serving()
    world.node("lone", "aws:///us-west-2a/i-9", registered="true", initialized="true")
    put(world, "kept", do_not_disrupt="true", node="lone")
    since = world.runtime.state.facts.position
    node = world.runtime.state.facts.nodes["lone"]
    labels = {**node.labels, "karpenter.k8s.aws/ec2nodeclass": "default"}
    world.see(Observation(replace(node, deleting=world.now, labels=labels)))
    (event,) = of(world, "FailedDraining", since)
    assert (event.about.name, event.message) == ("lone", "Failed to drain node, 1 pod is waiting to be evicted")


def test_ev16_d150_several_budgets_are_a_refusal_like_any_other() -> None:
    """The API server answers with status 500 and this text."""
    world = serving()
    put(world, "a")
    drain(world)
    ((ref, _),) = world.intents
    since = world.runtime.state.facts.position
    text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    world.see(Observation(EffectAnswered(ref, ok=False, code="500", message=text)))
    (event,) = of(world, "FailedDraining", since)
    assert "default/a violates a PDB" in event.message


def test_ev15_a_forced_pod_is_told_the_deadline_and_both_graces() -> None:
    world = serving(termination_grace_period=60_000)
    put(world, "held", grace=30, do_not_disrupt="true")
    drain(world)
    world.after(31_000)
    world.answer_all()
    (event,) = of(world, "Disrupted")
    assert (event.about.kind, event.about.name) == ("Pod", "held")
    assert "It was granted 29 seconds of grace-period of the 30 terminationGracePeriodSeconds" in event.message
    assert "its node 2023-" in event.message


def test_ev15_lg13_a_forced_pod_that_is_gone_with_the_answer_has_both_graces() -> None:
    """The next process has heard of the order alone."""
    world = serving(termination_grace_period=60_000)
    put(world, "held", grace=30, do_not_disrupt="true")
    drain(world)
    events, log = DecisionEvents(world.runtime.state), KarpenterLog(level="debug")
    log.know(world.runtime.state)
    world.after(31_000)
    for entry in world.runtime.new_entries:
        events.apply(entry)
        log.apply(entry)
    next_events, next_log = DecisionEvents(world.runtime.state), KarpenterLog(level="debug")
    next_log.know(world.runtime.state)
    answers = [Observation(EffectAnswered(ref, ok=True, code="200")) for ref, _ in world.intents]
    world.see(*answers, Observation(ObjectGone("pod", "uid-held")))
    for teller, logged in ((events, log), (next_events, next_log)):
        found = [(teller.apply(entry), logged.apply(entry)) for entry in world.runtime.new_entries]
        (event,) = [event for pair in found for event in pair[0] if event.reason == "Disrupted"]
        assert "29 seconds of grace-period of the 30 terminationGracePeriodSeconds" in event.message
        (line,) = [line for pair in found for line in pair[1] if line["message"] == "force-deleted pod"]
        assert line["grace-period"] == 30


def test_ev1_d30_the_pod_and_the_budget_that_block_are_told_as_well() -> None:
    """Their owners do not look at nodes."""
    world = serving()
    made = put(world, "held")
    budget = PodDisruptionBudget("uid-pdb", made.namespace, "none", Selector())
    world.see(Observation(budget))
    world.after(60_000)
    found = of(world, "DisruptionBlocked")
    about = {(event.about.kind, event.about.name) for event in found}
    assert {("Node", "n1"), ("Pod", "held"), ("PodDisruptionBudget", "none")} <= about
    (of_budget,) = {event.message for event in found if event.about.kind == "PodDisruptionBudget"}
    assert "node n1" in of_budget
    assert "default/none allows none" in of_budget


def test_ev16_d145_pods_that_are_evicted_later_are_told_of_as_well() -> None:
    world = serving()
    kept = put(world, "kept", do_not_disrupt="true")
    put(world, "stays", do_not_disrupt="true")
    drain(world)
    since = world.runtime.state.facts.position
    world.see(Observation(replace(kept, do_not_disrupt="")))
    (event,) = of(world, "FailedDraining", since)
    assert event.message == "Failed to drain node, 2 pods are waiting to be evicted"


def test_ev16_d150_another_answer_than_a_budgets_is_no_refusal() -> None:
    world = serving()
    put(world, "a")
    drain(world)
    ((ref, _),) = world.intents
    since = world.runtime.state.facts.position
    world.see(Observation(EffectAnswered(ref, ok=False, code="500", message="etcdserver: leader changed")))
    assert of(world, "FailedDraining", since) == []


def test_ev17_l199_a_drained_node_says_which_volumes_it_waits_for() -> None:
    world = serving()
    world.see(Observation(VolumeAttachment("attachment", "n1", "pv-1")))
    drain(world)
    world.after(5_000)
    assert claim_of(world).drained
    (event,) = of(world, "AwaitingVolumeDetachment")
    assert (event.about.kind, event.about.name) == ("Node", "n1")
    assert event.message == "Awaiting deletion VolumeAttachments bound to node (pv-1)"


def test_ev14_m24_w80_an_evicted_pod_of_a_node_without_a_claim_is_told_and_counted_too() -> None:
    """No claim can say why (D-153)."""
    world = serving()
    world.node("lone", "aws:///us-west-2a/i-9", registered="true", initialized="true", taints=(DISRUPTED,))
    put(world, "a", node="lone")
    node = world.runtime.state.facts.nodes["lone"]
    labels = {**node.labels, "karpenter.k8s.aws/ec2nodeclass": "default"}
    world.see(Observation(replace(node, deleting=world.now, labels=labels)))
    world.answer_all()
    (event,) = of(world, "Evicted")
    assert (event.about.kind, event.about.name, event.message) == ("Pod", "a", "Evicted pod")
    assert value(counted(world), "karpenter_pods_drained_total", reason="") == 1


@pytest.mark.parametrize(("expires", "why"), [(None, "Deleted"), (HOUR, "Expired")])
def test_ev14_d153_an_evicted_pod_is_told_why_its_node_goes(expires: int | None, why: str) -> None:
    world = serving(expire_after=expires)
    put(world, "a")
    if expires is None:
        drain(world)
    else:
        world.after(HOUR)
        world.answer_all()
        show_taint(world)
    world.answer_all()
    (event,) = of(world, "Evicted")
    assert (event.about.kind, event.about.name, event.message) == ("Pod", "a", f"Evicted pod: {why}")


def test_ev18_ev19_a_deadline_is_told_as_soon_as_it_is_known() -> None:
    """Of what leaves no choice with the decision, before the Node shows its taint."""
    world = serving(termination_grace_period=60_000, expire_after=HOUR)
    put(world, "held", do_not_disrupt="true")
    world.after(HOUR)
    assert claim_of(world).drain_started == 0
    events = of(world, "TerminationGracePeriodExpiring")
    assert {event.about.kind for event in events} == {"Node", "NodeClaim"}


def test_ev18_l189_a_candidate_that_waits_has_its_deadline_from_when_it_goes() -> None:
    world = half_empty(termination_grace_period=60_000)
    decide(world)
    ((ref, order),) = world.launches()
    show_taint(world)
    assert of(world, "TerminationGracePeriodExpiring") == [], "it waits for its replacement"
    world.answer_launch(ref, order, instance="i-2")
    other = next(claim for claim in world.runtime.state.facts.claims.values() if claim.instance == "i-2")
    for step in ({"taints": (UNREGISTERED,)}, {"registered": "true"}, {"registered": "true", "initialized": "true"}):
        world.node("n2", other.provider_id, **step)
        world.answer_all()
    events = of(world, "TerminationGracePeriodExpiring")
    assert {event.about.kind for event in events} == {"Node", "NodeClaim"}


def test_ev14_ev15_a_pod_that_goes_at_once_is_told_all_the_same() -> None:
    """One without a grace period: that it is gone is seen together with the answer."""
    world = serving(termination_grace_period=60_000)
    put(world, "quick", grace=0)
    put(world, "held", grace=30, do_not_disrupt="true")
    drain(world)
    answers = [Observation(EffectAnswered(ref, ok=True, code="200")) for ref, _ in world.intents]
    world.see(*answers, Observation(ObjectGone("pod", "uid-quick")))
    world.after(31_000)
    answers = [Observation(EffectAnswered(ref, ok=True, code="200")) for ref, _ in world.intents]
    world.see(*answers, Observation(ObjectGone("pod", "uid-held")))
    evicted, forced = of(world, "Evicted"), of(world, "Disrupted")
    assert [(event.about.name, event.about.uid, event.message) for event in evicted] == [
        ("quick", "uid-quick", "Evicted pod: Deleted")
    ]
    assert [(event.about.namespace, event.about.name) for event in forced] == [("default", "held")]


def test_ev16_a_refusal_that_the_next_process_hears_of_is_told() -> None:
    world = serving()
    put(world, "a")
    drain(world)
    ((ref, _),) = world.intents
    events = DecisionEvents(world.runtime.state)
    since = len(world.store.entries)
    world.see(Observation(EffectAnswered(ref, ok=False, code="429", message="the budget allows none")))
    later = [event for entry in world.store.entries[since:] for event in events.apply(entry)]
    assert "violates a PDB" in " ".join(event.message for event in later if event.reason == "FailedDraining")
