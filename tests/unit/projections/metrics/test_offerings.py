"""What the cloud sells, as gauges (L-425, L-426)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.record.observations import CatalogueSeen, LaunchAnswered, LaunchError, Observation
from kerf.projections.metrics.offerings import MEMORY_MIB, offering_families
from tests.support import lives
from tests.support.metrics import scraped, value

TYPES = "karpenter_cloudprovider_instance_type_"


def test_types_and_offerings_are_told_and_what_was_refused_is_not_available_for_a_while() -> None:
    world = lives.asked()
    ((ref, order),) = world.launches()
    offer = order.offers[0]
    refused = LaunchError("InsufficientInstanceCapacity", "", offer.instance_type, offer.zone, order.capacity_type)
    answer = LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=(refused,))
    labels = {
        "instance_type": offer.instance_type, "zone": offer.zone, "capacity_type": order.capacity_type,
    }  # fmt: skip

    def told(later: int) -> tuple[float, float]:
        found = scraped(exposition(offering_families(world.runtime.state, world.now + later)))
        assert value(found, f"{TYPES}cpu_cores", instance_type=offer.instance_type) > 0
        assert value(found, f"{TYPES}memory_bytes", instance_type=offer.instance_type) > 1 << 30
        available = value(found, f"{TYPES}offering_available", **labels)
        return available, value(found, f"{TYPES}offering_price_estimate", **labels)

    assert told(0) == (1, offer.price)
    world.see(Observation(answer))
    assert told(0) == (0, offer.price)
    assert told(world.settings.unavailable_for + 1) == (1, offer.price)


def test_a382_the_memory_of_a_type_is_what_the_cloud_names_and_not_what_its_nodes_see() -> None:
    """A share of it is lost on the node (A-7)."""
    world = lives.asked()
    indexes, facts = world.runtime.state.indexes, world.runtime.state.facts
    ((key, digest),) = facts.catalogues.items()
    catalogue = indexes.blobs.catalogue(digest)
    first = catalogue.types[0]
    named = replace(first, requirements=first.requirements | {MEMORY_MIB: ("8192",)})
    named_by_the_cloud = replace(catalogue, types=(named,))
    digest, _ = content(named_by_the_cloud)
    world.see(Observation(CatalogueSeen(key, digest), {digest: named_by_the_cloud}))
    found = scraped(exposition(offering_families(world.runtime.state, world.now)))
    assert first.capacity["memory"] != 8192 << 20
    assert value(found, f"{TYPES}memory_bytes", instance_type=first.name) == 8192 << 20


def test_a378_a_type_without_a_reservation_has_no_samples_of_reserved_capacity() -> None:
    world = lives.asked()
    text = exposition(offering_families(world.runtime.state, world.now))
    assert b'capacity_type="on-demand"' in text
    assert b'capacity_type="reserved"' not in text
    facts = world.runtime.state.facts
    ((key, sold),) = facts.catalogues.items()
    kind = world.runtime.state.indexes.blobs.catalogue(sold).types[0]
    spent = replace(kind.offerings[0], capacity_type="reserved", reservation_id="cr-1", available=False)
    made = Catalogue((replace(kind, offerings=(*kind.offerings, spent)),), source="")
    digest, _ = content(made)
    world.see(Observation(CatalogueSeen(key, digest), {digest: made}))
    found = scraped(exposition(offering_families(world.runtime.state, world.now)))
    labels = {"instance_type": kind.name, "zone": spent.zone, "capacity_type": "reserved"}
    assert value(found, f"{TYPES}offering_available", **labels) == 0


def test_a378_an_offering_is_available_if_one_class_can_launch_it() -> None:
    """Whichever class is looked at last."""
    world = lives.asked()
    facts = world.runtime.state.facts
    ((_, sold),) = facts.catalogues.items()
    kind = world.runtime.state.indexes.blobs.catalogue(sold).types[0]
    closed = replace(kind, offerings=tuple(replace(offering, available=False) for offering in kind.offerings))
    for last in (True, False):
        others = (Catalogue((closed,), source=str(number)) for number in range(100))
        digest, made = next((digest, made) for made in others if ((digest := content(made)[0]) > sold) == last)
        world.see(Observation(CatalogueSeen("karpenter.k8s.aws/EC2NodeClass/other", digest), {digest: made}))
        found = scraped(exposition(offering_families(world.runtime.state, world.now)))
        offering = kind.offerings[0]
        labels = {"instance_type": kind.name, "zone": offering.zone, "capacity_type": offering.capacity_type}
        assert value(found, f"{TYPES}offering_available", **labels) == 1
