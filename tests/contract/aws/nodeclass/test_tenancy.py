"""Dedicated hardware on EC2: its price, and what a launch of it asks for (A-165, A-216, A-230, A-246)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.mock.moto_shim import DEDICATED_FACTOR
from kerf.engine.model import labels
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import AwsWorld, Calls, catalogue_of


def test_a_216_dedicated_hardware_has_the_price_that_getproducts_names(world: AwsWorld) -> None:
    types = {kind.name: kind for kind in catalogue_of(world.restarted().observe()).types}
    m5, metal = types["m5.large"], types["m5.metal"]
    dedicated = [o for o in m5.offerings if o.tenancy == labels.DEDICATED]
    assert [(o.zone, o.capacity_type, o.available) for o in dedicated] == [
        (f"us-west-2{zone}", labels.ON_DEMAND, True) for zone in "abc"
    ]
    assert [o.price for o in dedicated] == [pytest.approx(0.096 * DEDICATED_FACTOR)] * 3
    assert m5.requirements[labels.TENANCY] == (labels.DEDICATED, labels.DEFAULT_TENANCY)
    assert metal.requirements[labels.TENANCY] == (labels.DEFAULT_TENANCY,), "it has no price as dedicated hardware"
    assert {o.tenancy for o in metal.offerings} == {labels.DEFAULT_TENANCY}


def test_a_246_a_launch_on_dedicated_hardware_asks_ec2_for_it(world: AwsWorld) -> None:
    calls = Calls(world.environment, "CreateLaunchTemplate")
    wanted = replace(order(world, "dedicated"), tenancy=labels.DEDICATED, offers=world.offers[1:2])
    assert world.cloud().launch(wanted, intent="1.0", token="dedicated").instance
    (made,) = calls.of("CreateLaunchTemplate")
    assert made["LaunchTemplateData"]["Placement"] == {"Tenancy": "dedicated"}
