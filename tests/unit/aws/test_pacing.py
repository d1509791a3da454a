"""Requests to EC2 wait for their turn. Time passes only while somebody sleeps."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from moto.core.botocore_stubber import MockRawResponse

from kerf.adapters.aws.pacing import Pace

THROTTLED = (
    b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></Response>"
)


class Sleeper:
    now = 0.0

    def __init__(self) -> None:
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


class Ec2:
    """A client whose requests are answered here: the next `throttled` of them with RequestLimitExceeded."""

    def __init__(self, pace: Pace) -> None:
        session = boto3.Session("key", "secret", region_name="us-west-2")
        self.client = session.client("ec2", config=Config(retries={"total_max_attempts": 1}))
        self.throttled = 0
        self.client.meta.events.register("before-send.ec2", self._answer)
        pace.hold(self.client)

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        if self.throttled:
            self.throttled -= 1
            return AWSResponse(request.url, 503, {}, MockRawResponse(THROTTLED))
        return AWSResponse(request.url, 200, {}, MockRawResponse(b"<Response/>"))


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@pytest.fixture
def ec2(sleeper: Sleeper) -> Ec2:
    return Ec2(Pace(sleeper.clock, sleeper.sleep))


def test_a_burst_of_launch_templates_goes_out_as_fast_as_ec2_lets_it(ec2: Ec2, sleeper: Sleeper) -> None:
    for number in range(60):
        ec2.client.delete_launch_template(LaunchTemplateName=f"name-{number}")
    assert sleeper.slept == [0.2] * 10
    assert sleeper.now == pytest.approx(2.0)


def test_each_operation_has_a_bucket_of_its_own(ec2: Ec2, sleeper: Sleeper) -> None:
    for _ in range(50):
        ec2.client.delete_launch_template(LaunchTemplateName="name")
    ec2.client.create_tags(Resources=["i-1"], Tags=[{"Key": "Name", "Value": "n"}])
    ec2.client.describe_instances()
    assert sleeper.slept == []


def test_tokens_come_back_with_time(ec2: Ec2, sleeper: Sleeper) -> None:
    for _ in range(50):
        ec2.client.delete_launch_template(LaunchTemplateName="name")
    sleeper.now += 1
    for _ in range(6):
        ec2.client.delete_launch_template(LaunchTemplateName="name")
    assert sleeper.slept == [0.2]


def test_a_refusal_empties_the_bucket(ec2: Ec2, sleeper: Sleeper) -> None:
    ec2.throttled = 1
    with pytest.raises(ec2.client.exceptions.ClientError):
        ec2.client.describe_instances()
    ec2.client.describe_instances()
    assert sleeper.slept == [0.05]


def test_a288_terminations_are_counted_by_instance_too(ec2: Ec2, sleeper: Sleeper) -> None:
    for _ in range(3):
        ec2.client.terminate_instances(InstanceIds=[f"i-{number}" for number in range(400)])
    assert sleeper.slept == [10.0]
