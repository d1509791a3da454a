"""The shim that makes of moto an account: it draws, keeps time, and lets nothing out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from botocore.awsrequest import AWSPreparedRequest
from msgspec.structs import replace

from kerf.adapters.aws.mock.moto_shim import MotoShim
from kerf.engine.errors import KerfError
from kerf.engine.record.decisions import LaunchInstance, Offer
from tests.contract.cloud_contract import HOUR, order
from tests.support.servers.aws_world import AwsWorld


def test_nothing_leaves_the_process(world: AwsWorld) -> None:
    """A request that moto does not know is an error, not a connection."""
    with pytest.raises(KerfError, match="KERF510"):
        MotoShim._moto(AWSPreparedRequest("GET", "https://example.invalid/", {}, b"", stream_output=False))


def test_the_cheapest_offer_with_capacity_is_drawn(world: AwsWorld) -> None:
    """lowest-price, whatever the order of the request."""
    wanted = replace(order(world, "cheapest"), offers=world.offers[::-1])
    assert world.cloud().launch(wanted, intent="1.0", token="cheapest").instance_type == "m6g.large"


def test_time_passes_only_by_the_clock(world: AwsWorld) -> None:
    instance = world.cloud().launch(order(world, "slow"), intent="1.0", token="slow").instance
    assert [seen.status for seen in world.cloud().describe([instance])] == ["pending"]
    world.advance(HOUR)
    world.environment.operator.reclaim(instance)
    assert [seen.status for seen in world.cloud().describe([instance])] == ["shutting-down"]
    world.advance(HOUR)
    assert [seen.status for seen in world.cloud().describe([instance])] == ["gone"]


def test_a_launch_without_a_known_type_is_an_error(world: AwsWorld) -> None:
    unknown: LaunchInstance = replace(order(world, "odd"), offers=(Offer("m5.tiny", "us-west-2a", 0.01),))
    assert world.cloud().launch(unknown, intent="1.0", token="odd").code == "NoLaunchableOffer"


@pytest.mark.slow
def test_the_environment_of_the_user_has_no_say() -> None:
    """A profile, an endpoint or a region in the shell's variables neither breaks the demonstration nor leads it out."""
    script = (
        "from kerf.adapters.aws.mock.environment import demo_environment\n"
        "for region in ('us-west-2', 'eu-west-1'):\n"
        "    with demo_environment(lambda: 1_760_000_000_000, region=region, zones=2) as made:\n"
        "        print(made.cloud.observe()[0].payload.ready)\n"
        "import os; print(os.environ['AWS_PROFILE'])\n"
    )
    hostile = {"AWS_PROFILE": "nobody", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": "xx-nowhere-1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **hostile}, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.returncode) == (["True", "True", "nobody"], 0), done.stderr
