"""What every `Cloud` must do (engine/runtime/ports.py). A cloud's test subclasses `CloudContract` and gives a world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kerf.engine.errors import KerfError
from kerf.engine.model import labels
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.record.observations import CatalogueSeen, LaunchAnswered, NodeClassSeen
from kerf.engine.runtime.ports import Cloud

HOUR = 3_600_000


class CloudWorld(ABC):
    """A cloud with one NodeClass that is ready, and what its operator can do to it.

    `offers` are three or more on-demand offers of different types, in at least two zones, cheapest first.
    """

    node_class: NodeClassRef
    offers: tuple[Offer, ...]

    @abstractmethod
    def cloud(self) -> Cloud:
        """The cloud as one process sees it."""

    @abstractmethod
    def restarted(self) -> Cloud:
        """The same cloud seen by a process that remembers nothing; the cloud itself may be the same object."""

    @abstractmethod
    def advance(self, milliseconds: int) -> None:
        """Let time pass."""

    @abstractmethod
    def exhaust(self, offers: Sequence[Offer], capacity_type: str) -> None:
        """These offers have no capacity from now on."""

    @abstractmethod
    def lose_answer(self) -> None:
        """The next launch happens, but its caller never hears of it."""

    def provider_id(self, answer: LaunchAnswered) -> str:
        """How the provider id of an instance ends."""
        return f"/{answer.zone}/{answer.instance}"

    @abstractmethod
    def alive(self, claim: str) -> list[str]:
        """The instances of a claim that have not begun to end, from the cloud's own books."""


class CloudContract(ABC):
    """The tests. The fixture `world` may be shared by a module: each test uses claims and tokens of its own."""

    @pytest.fixture
    @abstractmethod
    def world(self) -> CloudWorld:
        """A world without faults."""

    @pytest.fixture
    def claim(self, request: pytest.FixtureRequest) -> str:
        return request.node.name.replace("_", "-").replace("[", "-").strip("]")[:60]  # type: ignore[no-any-return]

    # ── observing ──────────────────────────────────────────────────────────────────────────────────────────

    def test_it_shows_the_node_class_and_its_catalogue(self, world: CloudWorld) -> None:
        seen = world.restarted().observe()
        classes = [o.payload for o in seen if isinstance(o.payload, NodeClassSeen)]
        catalogues = [o for o in seen if isinstance(o.payload, CatalogueSeen)]
        ref = world.node_class
        assert [(c.group, c.kind, c.name, c.ready) for c in classes] == [(ref.group, ref.kind, ref.name, True)]
        assert len(catalogues) == 1
        payload = catalogues[0].payload
        assert isinstance(payload, CatalogueSeen)
        assert payload.node_class == f"{ref.group}/{ref.kind}/{ref.name}"
        catalogue = catalogues[0].blobs[payload.digest]
        assert isinstance(catalogue, Catalogue)
        offered = {(kind.name, o.zone) for kind in catalogue.types for o in kind.offerings if o.available}
        assert {(offer.instance_type, offer.zone) for offer in world.offers} <= offered
        assert catalogue.source

    def test_blobs_are_addressed_by_their_content(self, world: CloudWorld) -> None:
        blobs = [item for seen in world.restarted().observe() for item in seen.blobs.items()]
        assert blobs
        assert all(content(blob)[0] == digest for digest, blob in blobs)

    def test_it_says_nothing_the_second_time(self, world: CloudWorld) -> None:
        cloud = world.restarted()
        cloud.observe()
        assert cloud.observe() == []
        world.advance(10 * 60_000)
        assert cloud.observe() == []

    # ── launching ──────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("capacity_type", [labels.ON_DEMAND, labels.SPOT])
    def test_a_launch_gives_one_of_the_offers(self, world: CloudWorld, claim: str, capacity_type: str) -> None:
        answer = world.cloud().launch(order(world, claim, capacity_type), intent="7.0", token=claim)
        assert_launched(world, answer, claim)
        assert (answer.intent, answer.capacity_type, answer.adopted) == ("7.0", capacity_type, False)
        assert world.alive(claim) == [answer.instance]

    def test_the_same_token_gives_the_same_instance(self, world: CloudWorld, claim: str) -> None:
        wanted = order(world, claim)
        first = world.cloud().launch(wanted, intent="7.0", token=claim)
        again = world.cloud().launch(wanted, intent="7.0", token=claim)
        after_crash = world.restarted().launch(wanted, intent="7.0", token=claim)
        assert first.instance
        assert {again.instance, after_crash.instance} == {first.instance}
        assert (again.instance_type, again.zone) == (first.instance_type, first.zone)
        assert world.alive(claim) == [first.instance]

    def test_other_tokens_start_other_instances(self, world: CloudWorld, claim: str) -> None:
        cloud = world.cloud()
        one = cloud.launch(order(world, claim + "-1"), intent="7.0", token=claim + "-1")
        two = cloud.launch(order(world, claim + "-2"), intent="7.1", token=claim + "-2")
        assert one.instance
        assert two.instance
        assert one.instance != two.instance

    def test_a_launch_whose_answer_was_lost_is_found(self, world: CloudWorld, claim: str) -> None:
        cloud, wanted = world.cloud(), order(world, claim)
        world.lose_answer()
        with pytest.raises(KerfError):
            cloud.launch(wanted, intent="7.0", token=claim)
        found = cloud.find(wanted, intent="7.0", token=claim)
        assert found is not None
        assert_launched(world, found, claim)
        assert (found.intent, found.adopted, found.capacity_type) == ("7.0", True, labels.ON_DEMAND)
        assert world.alive(claim) == [found.instance]
        assert world.restarted().find(wanted, intent="7.0", token=claim) is not None

    def test_trying_a_lost_launch_again_starts_no_second_instance(self, world: CloudWorld, claim: str) -> None:
        wanted = order(world, claim)
        world.lose_answer()
        with pytest.raises(KerfError):
            world.cloud().launch(wanted, intent="7.0", token=claim)
        answer = world.restarted().launch(wanted, intent="7.0", token=claim)
        assert world.alive(claim) == [answer.instance]

    def test_nothing_is_found_of_a_claim_that_was_never_launched(self, world: CloudWorld, claim: str) -> None:
        assert world.cloud().find(order(world, claim), intent="7.0", token=claim) is None

    def test_an_unknown_node_class_launches_nothing(self, world: CloudWorld, claim: str) -> None:
        """An unknown NodeClass launches nothing (L-152, L-153, L-159)."""
        ref = NodeClassRef(world.node_class.group, world.node_class.kind, "no-such-class")
        answer = world.cloud().launch(replace(order(world, claim), node_class=ref), intent="7.0", token=claim)
        assert answer.instance == ""
        assert answer.kind in ("insufficient-capacity", "nodeclass-not-ready")
        assert world.alive(claim) == []

    # ── without capacity ───────────────────────────────────────────────────────────────────────────────────

    def test_a_launch_falls_to_the_next_offer(self, world: CloudWorld, claim: str) -> None:
        """A-446: the offer that lacked capacity is named beside the instance."""
        world.exhaust(world.offers[:1], labels.SPOT)
        answer = world.cloud().launch(order(world, claim, labels.SPOT), intent="7.0", token=claim)
        assert_launched(world, answer, claim)
        lacking = (world.offers[0].instance_type, world.offers[0].zone)
        assert (answer.instance_type, answer.zone) != lacking
        assert all((e.instance_type, e.zone, e.capacity_type) == (*lacking, labels.SPOT) for e in answer.errors)

    def test_without_any_capacity_each_offer_has_its_error(self, world: CloudWorld, claim: str) -> None:
        """Without any capacity each offer has its error (L-152, A-291)."""
        world.exhaust(world.offers, labels.SPOT)
        answer = world.cloud().launch(order(world, claim, labels.SPOT), intent="7.0", token=claim)
        assert (answer.instance, answer.kind) == ("", "insufficient-capacity")
        assert {(e.instance_type, e.zone) for e in answer.errors} == {(o.instance_type, o.zone) for o in world.offers}
        assert {e.code for e in answer.errors} == {"InsufficientInstanceCapacity"}
        assert world.alive(claim) == []
        on_demand = world.cloud().launch(order(world, claim + "-od"), intent="8.0", token=claim + "-od")
        assert on_demand.instance

    # ── ending ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_an_instance_lives_from_pending_to_gone(self, world: CloudWorld, claim: str) -> None:
        cloud = world.cloud()
        instance = cloud.launch(order(world, claim), intent="7.0", token=claim).instance
        (young,) = cloud.describe([instance])
        assert (young.instance, young.status, young.claim) == (instance, "pending", claim)
        world.advance(HOUR)
        assert [seen.status for seen in cloud.describe([instance])] == ["running"]
        assert cloud.terminate(instance, intent="9.0").ok
        (ending,) = cloud.describe([instance])
        assert ending.status in ("shutting-down", "gone")
        assert world.alive(claim) == []
        world.advance(HOUR)
        assert [seen.status for seen in cloud.describe([instance])] == ["gone"]

    def test_ending_an_instance_twice_is_a_success(self, world: CloudWorld, claim: str) -> None:
        cloud = world.cloud()
        instance = cloud.launch(order(world, claim), intent="7.0", token=claim).instance
        answers = [cloud.terminate(instance, intent="9.0")]
        answers.append(cloud.terminate(instance, intent="9.0"))
        world.advance(HOUR)
        answers.append(cloud.terminate(instance, intent="9.0"))
        assert [(answer.intent, answer.ok) for answer in answers] == [("9.0", True)] * 3

    def test_an_instance_that_never_was_is_gone(self, world: CloudWorld) -> None:
        cloud = world.cloud()
        assert cloud.terminate("i-00000000000000000", intent="9.0").ok
        assert [seen.status for seen in cloud.describe(["i-00000000000000000"])] == ["gone"]

    def test_describe_answers_in_the_order_asked(self, world: CloudWorld, claim: str) -> None:
        cloud = world.cloud()
        known = [cloud.launch(order(world, f"{claim}-{n}"), intent="7.0", token=f"{claim}-{n}") for n in range(3)]
        asked = [known[2].instance, "i-00000000000000000", known[0].instance, known[1].instance]
        assert [seen.instance for seen in cloud.describe(asked)] == asked
        assert [seen.status == "gone" for seen in cloud.describe(asked)] == [False, True, False, False]
        assert cloud.describe([]) == []

    def test_a_listing_has_every_instance_until_it_begins_to_end(self, world: CloudWorld, claim: str) -> None:
        """A listing has every instance until it begins to end (A-327)."""
        started = [
            world.cloud().launch(order(world, f"{claim}-{n}"), intent="7.0", token=f"{claim}-{n}") for n in range(3)
        ]
        ours = {answer.instance: answer for answer in started}
        for cloud in (world.cloud(), world.restarted()):
            listed = [instance for instance in cloud.listing() or [] if instance.instance in ours]
            assert {instance.instance: instance.claim for instance in listed} == {i: a.claim for i, a in ours.items()}
            assert all(abs(instance.launched - ours[instance.instance].launched) < 60_000 for instance in listed)
        world.cloud().terminate(started[0].instance, intent="9.0")
        world.advance(HOUR)
        left = {instance.instance for instance in world.cloud().listing() or []}
        assert {answer.instance in left for answer in started[1:]} == {True}
        assert started[0].instance not in left

    def test_an_ended_instance_is_not_found_again(self, world: CloudWorld, claim: str) -> None:
        cloud, wanted = world.cloud(), order(world, claim)
        cloud.terminate(cloud.launch(wanted, intent="7.0", token=claim).instance, intent="9.0")
        assert cloud.find(wanted, intent="7.0", token=claim) is None


def order(world: CloudWorld, claim: str, capacity_type: str = labels.ON_DEMAND) -> LaunchInstance:
    return LaunchInstance(
        claim=claim,
        node_pool="default",
        node_class=world.node_class,
        capacity_type=capacity_type,
        offers=world.offers,
        requests={"cpu": 500, "memory": 1 << 30, "pods": 3},
        labels={labels.NODEPOOL: "default"},
    )


def assert_launched(world: CloudWorld, answer: LaunchAnswered, claim: str) -> None:
    """The answer names one of the offers, completely."""
    assert answer.instance
    assert (answer.instance_type, answer.zone) in {(o.instance_type, o.zone) for o in world.offers}
    assert answer.provider_id.endswith(world.provider_id(answer))
    assert answer.launched > 0
    assert (answer.claim, answer.kind, answer.code) == (claim, "", "")
