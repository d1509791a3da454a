"""S-70, S-71: what a claim without an instance counts as."""

from __future__ import annotations

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.record.observations import CatalogueSeen, Observation
from tests.support.lives import asked
from tests.support.world import CATALOGUE, Mi


def test_a_type_that_leaves_the_catalogue_takes_no_room_from_a_claim_in_flight() -> None:
    world = asked()
    ((_, order),) = world.launches()
    assert order.offers[0].instance_type == "m5.large"
    fewer = Catalogue(tuple(t for t in CATALOGUE.types if t.name != "m5.large"), source="test")
    digest, _ = content(fewer)
    world.see(Observation(CatalogueSeen("karpenter.k8s.aws/EC2NodeClass/default", digest), {digest: fewer}))
    assert world.after(1_000) == []
    world.pending("small", memory=64 * Mi)
    assert world.after(1_000) == []
