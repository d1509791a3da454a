"""Design, idea 4: an instance that no claim wants is ended, whatever has become of its claim."""

from __future__ import annotations

from kerf.engine.record.decisions import TerminateInstance
from kerf.engine.record.observations import EffectAnswered, LaunchAnswered, Observation
from tests.support.lives import asked, claim_of, in_service, launched


def answered(ref: str, claim: str, instance: str) -> Observation:
    return Observation(
        LaunchAnswered(
            ref, claim, instance=instance, provider_id=f"aws:///us-west-2a/{instance}", instance_type="m5.large",
            zone="us-west-2a", capacity_type="on-demand",
        )
    )  # fmt: skip


def test_a_second_instance_of_a_living_claim_is_ended_once_and_the_claim_stays() -> None:
    world = launched()
    claim = claim_of(world)
    (end,) = world.see(answered("1.0", claim.name, "i-2"))
    assert end == TerminateInstance(claim.name, "i-2")
    ((ref, _),) = world.intents
    assert world.see(Observation(EffectAnswered(ref, False, "RequestLimitExceeded"))) == []
    (again,) = world.after(1_000)
    assert again == end
    ((ref, _),) = world.intents
    assert world.see(Observation(EffectAnswered(ref, True, "200"))) == []
    assert world.runtime.state.facts.orphans == {}
    assert claim_of(world).state == "launched"
    assert claim_of(world).effect("terminate") is None


def test_of_two_answers_in_one_turn_the_first_instance_is_kept_and_the_second_ended() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    intents = world.see(answered(ref, order.claim, "i-1"), answered(ref, order.claim, "i-2"))
    assert claim_of(world).instance == "i-1"
    assert intents == [TerminateInstance(order.claim, "i-2")]


def test_nothing_is_due_while_the_end_of_a_surplus_instance_awaits_its_answer() -> None:
    world = in_service(expire_after=None)
    world.after(60_000)
    world.see(answered("1.0", claim_of(world).name, "i-2"))
    assert len(world.intents) == 1
    hour_old = claim_of(world).created + 3_600_000  # D-126: when its instance type is looked for
    assert world.runtime.next_due() == hour_old
