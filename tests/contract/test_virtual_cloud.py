"""The virtual cloud: the contract of every `Cloud`, and what is its own; its queue as `Interruptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cloud.cloud import VirtualCloud
from kerf.adapters.simulation.cloud.market import Market, OfferingSelector
from kerf.adapters.simulation.errors import AnswerLostError
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.record.observations import CatalogueSeen, InputRefused, InterruptionSeen, NodeClassSeen
from tests.contract.cloud_contract import CloudContract, CloudWorld

REF = NodeClassRef("kerf.dev", "VirtualNodeClass", "default")
START = 1_000_000


def kind(name: str, price: float) -> InstanceType:
    offerings = [Offering(z, c, price * f) for z in ("a", "b") for c, f in (("on-demand", 1.0), ("spot", 0.5))]
    offerings.append(Offering("a", "reserved", 0.0, reservation_id="cr-1", reservation_capacity=1))
    return InstanceType(name, {"cpu": 2000, "pods": 10}, offerings=tuple(offerings))


CATALOGUE = Catalogue((kind("small", 0.1), kind("large", 0.4), kind("huge", 0.8)), source="test")


def world(**faults: Any) -> Simulation:
    simulation = Simulation(CATALOGUE, clock=Clock(START), timing=Timing(join_jitter=0), faults=FaultPlan(**faults))
    simulation.cloud.put_node_class(NodeClassSeen(REF.group, REF.kind, REF.name, ready=True))
    return simulation


def order(claim: str = "c", *offers: str, capacity_type: str = "on-demand", reservation: str = "") -> LaunchInstance:
    pairs = [offer.split("/") for offer in offers or ("small/a", "small/b", "large/a", "large/b")]
    return LaunchInstance(
        claim=claim,
        node_pool="pool",
        node_class=REF,
        capacity_type=capacity_type,
        offers=tuple(Offer(name, zone, 0.0) for name, zone in pairs),
        requests={"cpu": 1000},
        reservation=reservation,
    )


class VirtualWorld(CloudWorld):
    node_class = REF
    offers = (Offer("small", "a", 0.1), Offer("large", "b", 0.4), Offer("huge", "a", 0.8))

    def __init__(self) -> None:
        self.simulation = world()

    def cloud(self) -> VirtualCloud:
        return self.simulation.cloud

    def restarted(self) -> VirtualCloud:
        self.simulation.cloud.reconnect()
        return self.simulation.cloud

    def advance(self, milliseconds: int) -> None:
        self.simulation.clock.advance(self.simulation.clock.now + milliseconds)

    def exhaust(self, offers: Sequence[Offer], capacity_type: str) -> None:
        for offer in offers:
            self.simulation.cloud.market.exhaust(OfferingSelector(capacity_type, offer.instance_type, offer.zone))

    def lose_answer(self) -> None:
        self.simulation.cloud.lose_answer()

    def alive(self, claim: str) -> list[str]:
        return [i.machine.instance for i in self.simulation.cloud.alive() if i.machine.claim == claim]


class TestVirtualCloud(CloudContract):
    @pytest.fixture
    def world(self) -> CloudWorld:
        return VirtualWorld()


def test_observe_tells_node_classes_and_their_catalogue_with_its_content() -> None:
    first, second = world().cloud.observe()
    assert first.payload == NodeClassSeen(REF.group, REF.kind, REF.name, ready=True)
    digest, _ = content(CATALOGUE)
    assert second.payload == CatalogueSeen("kerf.dev/VirtualNodeClass/default", digest)
    assert second.blobs == {digest: CATALOGUE}


def test_a_launch_takes_the_cheapest_offer_with_capacity_and_tells_what_it_passed_over() -> None:
    simulation = world()
    simulation.cloud.market.exhaust(OfferingSelector(instance_type="small", zone="a"))
    answer = simulation.cloud.launch(order(), intent="4.1", token="t")
    assert (answer.intent, answer.claim, answer.instance_type, answer.zone) == ("4.1", "c", "small", "b")
    assert (answer.capacity_type, answer.launched, answer.adopted, answer.kind) == ("on-demand", START, False, "")
    assert answer.provider_id == f"virtual:///b/{answer.instance}"
    assert [(e.code, e.instance_type, e.zone, e.capacity_type) for e in answer.errors] == [
        ("InsufficientInstanceCapacity", "small", "a", "on-demand")
    ]


def test_without_any_capacity_nothing_is_started_and_every_offer_has_its_error() -> None:
    """Without any capacity nothing is started and every offer has its error (L-152, A-291)."""
    simulation = world()
    simulation.cloud.market.exhaust(OfferingSelector(capacity_type="spot"))
    answer = simulation.cloud.launch(order(capacity_type="spot"), intent="1.0", token="t")
    assert (answer.instance, answer.kind, len(answer.errors)) == ("", "insufficient-capacity", 4)
    assert simulation.cloud.alive() == []
    assert simulation.cloud.market.restore(OfferingSelector())
    assert simulation.cloud.launch(order(capacity_type="spot"), intent="1.0", token="t").instance


def test_an_offering_that_is_not_sold_is_unsupported() -> None:
    answer = world().cloud.launch(order("c", "colossal/a"), intent="1.0", token="t")
    assert [error.code for error in answer.errors] == ["Unsupported"]


def test_a_reservation_holds_as_many_instances_as_it_has() -> None:
    cloud = world().cloud
    reserved = {"capacity_type": "reserved", "reservation": "cr-1"}
    first = cloud.launch(order("c1", "small/a", **reserved), intent="1.0", token="t1")
    second = cloud.launch(order("c2", "small/a", **reserved), intent="1.1", token="t2")
    assert (first.capacity_type, second.instance) == ("reserved", "")
    assert [error.code for error in second.errors] == ["ReservationCapacityExceeded"]
    cloud.terminate(first.instance, intent="2.0")
    assert cloud.launch(order("c2", "small/a", **reserved), intent="3.0", token="t3").instance


def test_the_same_token_never_starts_a_second_instance() -> None:
    """Design, idea 4."""
    cloud = world().cloud
    first = cloud.launch(order(), intent="1.0", token="t")
    again = cloud.launch(order(), intent="1.0", token="t")
    assert again == first
    assert len(cloud.instances) == 1
    assert cloud.launch(order(), intent="1.1", token="u").instance != first.instance


def test_a_launched_instance_is_found_by_its_claim_until_it_ends() -> None:
    cloud = world().cloud
    assert cloud.find(order(), intent="2.0", token="t") is None
    launched = cloud.launch(order(), intent="1.0", token="t")
    found = cloud.find(order(), intent="2.0", token="t")
    assert found is not None
    assert (found.instance, found.adopted, found.intent) == (launched.instance, True, "2.0")
    assert cloud.find(order("other"), intent="2.0", token="t") is None
    cloud.terminate(launched.instance, intent="3.0")
    assert cloud.find(order(), intent="4.0", token="t") is None


def test_a_lost_answer_leaves_an_instance_that_is_found() -> None:
    cloud = world(answer_lost=1.0).cloud
    with pytest.raises(AnswerLostError, match=r"KERF830.*NodeClaim c"):
        cloud.launch(order(), intent="1.0", token="t")
    found = cloud.find(order(), intent="1.0", token="t")
    assert found is not None
    assert found.adopted
    assert cloud.launch(order(), intent="1.0", token="t").instance == found.instance


def test_states_follow_virtual_time() -> None:
    simulation = world()
    cloud, clock = simulation.cloud, simulation.clock
    name = cloud.launch(order(), intent="1.0", token="t").instance

    def status() -> str:
        (seen,) = cloud.describe([name])
        assert (seen.instance, seen.claim) == (name, "c")
        return seen.status

    assert status() == "pending"
    clock.advance(START + 8_000)
    assert status() == "running"
    assert cloud.terminate(name, intent="2.0").ok
    assert status() == "shutting-down"
    assert cloud.terminate(name, intent="2.0").ok
    clock.advance(START + 28_000)
    assert status() == "gone"
    assert cloud.terminate(name, intent="3.0").ok
    assert [seen.status for seen in cloud.describe(["i-unknown"])] == ["gone"]
    assert cloud.terminate("i-unknown", intent="3.0").ok


def test_a_node_class_that_is_missing_or_not_ready_refuses_launches() -> None:
    """A NodeClass that is missing or not ready refuses launches (L-153)."""
    simulation = world()
    simulation.cloud.update_node_class(NodeClassSeen(REF.group, REF.kind, REF.name, reason="SubnetsNotFound"))
    answer = simulation.cloud.launch(order(), intent="1.0", token="t")
    assert (answer.kind, answer.message) == ("nodeclass-not-ready", "SubnetsNotFound")
    assert simulation.cloud.drop_node_class("default")
    assert simulation.cloud.launch(order(), intent="1.0", token="t").kind == "nodeclass-not-ready"


def test_a_throttled_cloud_refuses_launches_and_ends_until_it_recovers() -> None:
    simulation = world()
    name = simulation.cloud.launch(order(), intent="1.0", token="t").instance
    simulation.cloud.throttle(5_000)
    answer = simulation.cloud.launch(order("d"), intent="1.1", token="u")
    assert (answer.kind, answer.code) == ("error", "RequestLimitExceeded")
    ended = simulation.cloud.terminate(name, intent="1.2")
    assert (ended.ok, ended.code) == (False, "RequestLimitExceeded")
    simulation.clock.advance(START + 5_000)
    assert simulation.cloud.terminate(name, intent="1.3").ok


def test_a_launch_may_fail_for_another_reason() -> None:
    """A launch may fail for another reason (L-155)."""
    answer = world(launch_error=1.0).cloud.launch(order(), intent="1.0", token="t")
    assert (answer.kind, answer.code, answer.instance) == ("error", "InternalError", "")


def test_a_node_class_with_a_catalogue_of_its_own_sells_that_at_todays_prices_and_anew_when_it_changes() -> None:
    def catalogue_of(node_class: Struct) -> Catalogue:
        assert isinstance(node_class, Taint)  # any object does
        kinds = (replace(instance_type, capacity={"pods": int(node_class.value)}) for instance_type in CATALOGUE.types)
        return replace(CATALOGUE, types=tuple(kinds))

    def put(pods: int) -> list[Catalogue]:
        seen = NodeClassSeen(REF.group, REF.kind, REF.name, ready=True, digest="d")
        cloud.put_node_class(seen, {"d": Taint("pods", "", value=str(pods))})
        told = [observation for observation in cloud.observe() if isinstance(observation.payload, CatalogueSeen)]
        return [found for observation in told for found in observation.blobs.values() if isinstance(found, Catalogue)]

    simulation = Simulation(CATALOGUE, clock=Clock(START), catalogue_of=catalogue_of)
    cloud = simulation.cloud
    simulation.cloud.market.reprice(OfferingSelector(), factor=2.0)
    (first,) = put(5)
    assert first.types[0].capacity == {"pods": 5}
    assert first.types[0].offerings[0].price == 2 * CATALOGUE.types[0].offerings[0].price
    assert put(5) == []
    (second,) = put(6)
    assert second.types[0].capacity == {"pods": 6}
    cloud.launch(order(), intent="1.0", token="t")
    assert [instance.machine.type.capacity for instance in cloud.alive()] == [{"pods": 6}]


def test_prices_move_and_the_catalogue_is_seen_again() -> None:
    simulation = world()
    simulation.cloud.observe()
    piece = OfferingSelector(capacity_type="on-demand", instance_type="small")
    assert simulation.cloud.market.reprice(piece, factor=9.0) == 2
    simulation.cloud.prices_changed()
    (seen,) = simulation.cloud.observe()
    assert isinstance(seen.payload, CatalogueSeen)
    assert seen.blobs[seen.payload.digest] == simulation.cloud.market.catalogue_of()
    assert simulation.cloud.launch(order(), intent="1.0", token="t").instance_type == "large"


def test_a_restore_ends_only_what_lies_within_it() -> None:
    market = Market(CATALOGUE)
    market.exhaust(OfferingSelector(zone="a"))
    assert not market.restore(OfferingSelector(zone="b"))
    assert not market.has_capacity(("spot", "small", "a"))
    assert market.restore(OfferingSelector(zone="a"))
    assert market.has_capacity(("spot", "small", "a"))


def test_a_spot_interruption_warns_and_ends_the_instance_two_minutes_later() -> None:
    """A spot interruption warns and ends the instance two minutes later (A-346)."""
    simulation = world()
    name = simulation.cloud.launch(order(capacity_type="spot"), intent="1.0", token="t").instance
    simulation.clock.advance(START + 60_000)
    simulation.cloud.interrupt(name)
    (message,) = simulation.queue.poll()
    assert isinstance(message.payload, InterruptionSeen)
    assert (message.payload.kind, message.payload.instance) == ("spot_interrupted", name)
    assert message.payload.sent == START + 60_000
    simulation.clock.advance(START + 179_999)
    assert simulation.cloud.status(name) == "running"
    simulation.clock.advance(START + 180_000)
    assert simulation.cloud.status(name) == "shutting-down"


def test_messages_stay_until_they_are_acknowledged() -> None:
    queue = world().queue
    queue.send("spot_interrupted", "i-1")
    assert queue.poll() == queue.poll()
    queue.send("spot_interrupted", "i-2")
    queue.acknowledge()
    (left,) = queue.poll()
    assert isinstance(left.payload, InterruptionSeen)
    assert left.payload.instance == "i-2"
    queue.acknowledge()
    assert not queue.waiting


def test_an_unreadable_message_is_refused_and_does_not_stand_in_the_way() -> None:
    queue = world().queue
    queue.send_garbage("{")
    queue.send("spot_interrupted", "i-1")
    refused, message = (observation.payload for observation in queue.poll())
    assert isinstance(refused, InputRefused)
    assert (refused.code, refused.source) == ("KERF812", "queue")
    assert isinstance(message, InterruptionSeen)


def test_a_message_may_come_twice() -> None:
    simulation = world(message_twice=1.0)
    simulation.queue.send("spot_interrupted", "i-1")
    first = simulation.queue.poll()
    simulation.queue.acknowledge()
    simulation.clock.advance(START + 30_000)
    assert simulation.queue.poll() == first


def test_a_vanished_instance_is_gone_at_once_and_silent() -> None:
    simulation = world()
    name = simulation.cloud.launch(order(), intent="1.0", token="t").instance
    simulation.cloud.vanish(name)
    assert simulation.cloud.status(name) == "gone"
    assert not simulation.queue.waiting


def test_a_reclaimed_instance_is_announced_afterwards() -> None:
    """A reclaimed instance is announced afterwards (A-348)."""
    simulation = world()
    name = simulation.cloud.launch(order(), intent="1.0", token="t").instance
    simulation.cloud.reclaim(name)
    assert simulation.cloud.status(name) == "shutting-down"
    (message,) = simulation.queue.poll()
    assert isinstance(message.payload, InterruptionSeen)
    assert message.payload.kind == "instance_terminated"
