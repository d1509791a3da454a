"""What `kerf capture --ask-ec2` asks of EC2."""

from __future__ import annotations

import pytest

from kerf.adapters.cli.capture.catalogues import offers_of
from kerf.adapters.cli.capture.listing import Listing
from kerf.adapters.kubernetes.watch.watched_kinds import EC2_NODE_CLASSES, KWOK_NODE_CLASSES
from kerf.engine.errors import InputError
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen
from tests.support.servers.aws_world import START, AwsWorld, Calls, resolved

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_clients(world: AwsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture talks to this world."""
    monkeypatch.setattr("kerf.adapters.aws.session.ReadingClients", lambda region: world.cloud()._clients)


def test_types_and_prices_are_ec2s_and_nothing_is_changed(world: AwsWorld) -> None:
    found = resolved(world.restarted().observe())
    listing = Listing([], {EC2_NODE_CLASSES.path: [found], KWOK_NODE_CLASSES.path: []}, [])
    calls = Calls(world.environment, "CreateLaunchTemplate", "CreateInstanceProfile", "CreateTags", "CreateFleet")
    offers = offers_of(listing, types=None, ask_ec2=True, now=START)
    assert calls.made == []
    assert {type(seen.payload) for seen in offers.observations} >= {CatalogueSeen, NodeClassSeen}
    (catalogue,) = [blob for seen in offers.observations for blob in seen.blobs.values() if isinstance(blob, Catalogue)]
    assert {offering.zone for kind in catalogue.types for offering in kind.offerings} <= {
        "us-west-2a", "us-west-2b", "us-west-2c",
    }  # fmt: skip
    (sources,) = offers.sources
    assert "on-demand prices of us-west-2" in sources
    assert "spot prices of " in sources
    assert (offers.node_classes, offers.lacks) == ("karpenter.k8s.aws/EC2NodeClass", ())


def test_ec2_that_refuses_is_no_catalogue(world: AwsWorld) -> None:
    found = resolved(world.restarted().observe())
    listing = Listing([], {EC2_NODE_CLASSES.path: [found], KWOK_NODE_CLASSES.path: []}, [])
    world.environment.operator.fault("DescribeInstanceTypes", "refused", 9)
    offers = offers_of(listing, types=None, ask_ec2=False, now=START)
    assert Missing.MARKET in offers.lacks
    with pytest.raises(InputError, match="describe_instance_types"):
        offers_of(listing, types=None, ask_ec2=True, now=START)
