"""What is told of drains: pods that are waited for, refusals, forced pods (D-145, D-150, D-153; EV-14 to EV-16)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.record.observations import EffectAnswered, Observation
from kerf.projections.kubernetes_events.event import WARNING, KubernetesEvent
from tests.support.events import told
from tests.support.world import World
from tests.support.worlds.drain import drain, put, serving


def of(world: World, reason: str, since: int = 0) -> list[KubernetesEvent]:
    return [event for event in told(world, since) if event.reason == reason]


def test_ev16_d145_a_drain_that_only_waits_says_for_how_many_pods() -> None:
    """No pod may be evicted, so there is no intent: what the node waits for is told all the same."""
    world = serving()
    put(world, "kept", do_not_disrupt="true")
    drain(world)
    (event,) = of(world, "FailedDraining")
    assert (event.about.kind, event.about.name, event.type) == ("Node", "n1", WARNING)
    assert event.message == "Failed to drain node, 1 pod is waiting to be evicted"


def test_ev16_d145_a_drain_that_evicts_says_how_many_pods_are_left() -> None:
    world = serving()
    put(world, "a")
    put(world, "b")
    drain(world)
    messages = {event.message for event in of(world, "FailedDraining")}
    assert messages == {"Failed to drain node, 2 pods are waiting to be evicted"}


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
