"""L-160…L-179: from the instance to a node in service."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.lifecycle.launch_to_initialized import advance
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import Intent, RegisterNode, TerminateInstance
from kerf.engine.record.observations import EffectAnswered, ObjectGone, Observation
from kerf.projections.prose.reasons import sentence
from tests.support.lives import PROVIDER, UNREGISTERED, claim_of, in_service, launched, types
from tests.support.world import World


def test_l163_registration_syncs_labels_and_taints() -> None:
    taint = Taint("team", "NoSchedule", "a")
    startup = Taint("warming", "NoExecute")
    world = launched(taints=(), startup_taints=(startup,), labels={"type": "karpenter"})
    del taint
    (register,) = world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    assert isinstance(register, RegisterNode)
    assert register.taints == (startup,)
    assert register.labels["type"] == "karpenter"
    assert register.labels["node.kubernetes.io/instance-type"] == "m5.large"
    assert register.labels["topology.kubernetes.io/zone"] == "us-west-2a"


def test_a_conflict_on_registration_is_tried_again_after_a_back_off() -> None:
    world = launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    ((ref, _),) = world.intents
    assert world.see(Observation(EffectAnswered(ref, False, "409"))) == []
    (again,) = world.after(1_000)
    assert isinstance(again, RegisterNode)


def test_l172_startup_taints_hold_initialization_back() -> None:
    startup = Taint("warming", "NoExecute")
    world = launched(startup_taints=(startup,))
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    assert world.node("n1", PROVIDER, registered="true", taints=(startup,)) == []
    assert claim_of(world).state == "registered"
    assert len(world.node("n1", PROVIDER, registered="true")) == 1


def test_l171_a_node_that_is_not_ready_is_not_initialized() -> None:
    world = launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    assert world.node("n1", PROVIDER, ready=False, registered="true") == []


def test_l179_a_node_that_never_joins_is_terminated_after_fifteen_minutes() -> None:
    world = launched()
    assert world.runtime.next_due() == world.now + 900_000
    (end,) = world.after(900_000)
    assert isinstance(end, TerminateInstance)
    assert claim_of(world).why == "registration-timeout"
    world.answer_all()
    world.instance("i-1", "gone")
    assert types(world)[-1] == "claim.terminated"


def test_l237_an_instance_that_vanishes_ends_its_claim_and_its_node() -> None:
    world = launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    (delete,) = world.instance("i-1", "terminated")
    assert delete.node == "n1"  # type: ignore[union-attr]
    world.see(Observation(ObjectGone("node", "n1")))
    assert types(world)[-1] == "claim.instance-vanished"


# ── labels afterwards ──────────────────────────────────────────────────────────────────────────────────────────────


def shown(world: World, **changes: str | None) -> list[Intent]:
    """The watch shows `n1` in service with other labels; None takes one off."""
    node = world.runtime.state.facts.nodes["n1"]
    labels = {**node.labels, **changes}
    return world.see(Observation(replace(node, labels={k: v for k, v in labels.items() if v is not None})))


@pytest.mark.parametrize("value", [None, "another"])
def test_l242_the_label_of_its_nodeclass_is_put_back(value: str | None) -> None:
    world = in_service()
    world.after(60_000)  # what was asked for has become visible long ago
    assert shown(world, **{"karpenter.k8s.aws/ec2nodeclass": value}) == [
        RegisterNode(claim_of(world).name, "n1", {"karpenter.k8s.aws/ec2nodeclass": "default"})
    ]
    assert world.answer_all() == []
    assert shown(world, **{"karpenter.k8s.aws/ec2nodeclass": "default"}) == []


def test_l242_who_takes_it_off_again_and_again_is_answered_ever_more_rarely() -> None:
    """Another controller that does so would otherwise cost a write a minute for ever; one a day is put back at once."""
    world = in_service()
    world.after(60_000)
    start, orders = world.now, []
    shown(world, **{"karpenter.k8s.aws/ec2nodeclass": None})
    while world.now < start + 8 * 3_600_000:
        if any(isinstance(intent, RegisterNode) for _, intent in world.intents):
            orders.append((world.now - start) // 60_000)
            world.answer_all()
            shown(world, **{"karpenter.k8s.aws/ec2nodeclass": "default"})
            shown(world, **{"karpenter.k8s.aws/ec2nodeclass": None})
        else:
            world.after(60_000)
    assert orders[:8] == [0, 2, 6, 14, 30, 62, 122, 182]
    shown(world, **{"karpenter.k8s.aws/ec2nodeclass": "default"})
    world.after(24 * 3_600_000)
    assert shown(world, **{"karpenter.k8s.aws/ec2nodeclass": None})


def test_l242_what_was_done_and_undone_is_not_said_to_have_been_refused() -> None:
    world = in_service()
    shown(world, **{"karpenter.k8s.aws/ec2nodeclass": None})
    waiting = advance(claim_of(world), world.runtime.state, world.now).reason
    assert sentence(waiting) == "register was done, and what it did does not show: it is done again after a pause"


def test_l242_refused_attempts_to_register_do_not_count_as_labels_that_were_taken_off() -> None:
    """After five of them the first label that somebody took off was put back half an hour late."""
    world = launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    for _ in range(5):
        world.answer_all(ok=False, code="500")
        while not world.intents:
            world.after(1_000)
    world.answer_all()
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true")
    world.after(60_000)
    assert [type(intent) for intent in shown(world, **{"karpenter.k8s.aws/ec2nodeclass": None})] == [RegisterNode]


def test_l165_other_labels_are_the_users() -> None:
    world = in_service()
    assert shown(world, team="blue", **{"node.kubernetes.io/instance-type": None}) == []
