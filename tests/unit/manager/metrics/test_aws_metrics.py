"""Calls to AWS as the SDK of Karpenter counts them (L-433)."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError
from moto.core.botocore_stubber import MockRawResponse

from kerf.adapters.aws.call_listener import CallHooks
from kerf.adapters.aws.pacing import READING, Pace
from kerf.adapters.aws.session import AwsError, AwsWriteRefused, Clients, ReadingClients, call
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.manager.metrics.telemetry import Telemetry
from tests.support.metrics import Samples, scraped, value
from tests.support.repository import ROOT

NAME = "aws_sdk_go_request"
TWO_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 3})
SESSION = boto3.Session("key", "secret", region_name="us-west-2")
REFUSED = "<Response><Errors><Error><Code>{}</Code><Message>m</Message></Error></Errors></Response>"
CODES = {400: "InvalidParameterValue", 503: "RequestLimitExceeded"}


class Ec2:
    """A client that is answered here: as `answers` says, then with 200. By `now` each answer takes two seconds, and
    each wait four."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: int) -> None:
        self.metrics, self.now, self._answers = AwsMetrics(), 0.0, list(answers)
        self.client = SESSION.client("ec2", config=TWO_RETRIES)
        self.pace = Pace(lambda: self.now, self.sleep)
        self.pace.hold(self.client)
        CallHooks(self.metrics, "EC2", lambda: self.now).hold(self.client)
        monkeypatch.setattr(self.client._endpoint, "_send", self._answer)
        monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=self.sleep))

    def sleep(self, seconds: float) -> None:
        self.now += 4.0

    def _answer(self, request: Any) -> AWSResponse:
        self.now += 2.0
        status = self._answers.pop(0) if self._answers else 200
        if not status:
            raise ConnectTimeoutError(endpoint_url=request.url)
        text = REFUSED.format(CODES[status]) if status in CODES else "<Response/>"
        return AWSResponse(request.url, status, {}, MockRawResponse(text.encode()))

    def describe(self) -> Samples:
        """What is counted after one DescribeSubnets, whatever becomes of it."""
        with suppress(AwsError):
            call(self.client.describe_subnets)
        return scraped(exposition(self.metrics.families()))


OF = {"service": "EC2", "action": "DescribeSubnets"}


def test_l433_a_call_that_is_sent_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call took all of it, and each request what AWS took."""
    found = Ec2(monkeypatch, 503, 0).describe()
    assert value(found, f"{NAME}_total", code="200", **OF) == 1
    assert value(found, f"{NAME}_duration_seconds_sum", code="200", **OF) == 3 * 2 + 2 * 4
    assert value(found, f"{NAME}_retry_count_sum", code="200", **OF) == 2
    for code in ("503", "0", "200"):
        assert value(found, f"{NAME}_attempt_total", code=code, **OF) == 1
        assert value(found, f"{NAME}_attempt_duration_seconds_sum", code=code, **OF) == 2


@pytest.mark.parametrize(("answers", "code"), [((0, 0, 0), "0"), ((503, 503, 503), "503"), ((400,), "400")])
def test_l433_a_call_that_fails(monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], code: str) -> None:
    found = Ec2(monkeypatch, *answers).describe()
    assert value(found, f"{NAME}_total") == value(found, f"{NAME}_total", code=code, **OF) == 1
    assert value(found, f"{NAME}_retry_count_sum", code=code, **OF) == len(answers) - 1
    assert value(found, f"{NAME}_attempt_total", code=code, **OF) == len(answers)


def test_l433_what_a_request_waits_for_its_turn_is_not_the_time_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    for _ in range(READING[0]):
        ec2.pace.wait("DescribeSubnets", READING)
    found = ec2.describe()
    assert value(found, f"{NAME}_duration_seconds_sum", **OF) == 6
    assert value(found, f"{NAME}_attempt_duration_seconds_sum", **OF) == 2


def test_l433_the_clients_of_kerf_are_listened_to() -> None:
    metrics = AwsMetrics()
    clients = Clients("us-west-2", SESSION, listener=metrics)
    clients.sqs.meta.events.register("before-call", lambda **_: (AWSResponse("", 200, {}, b""), {}))
    call(clients.sqs.list_queues)
    found = scraped(exposition(metrics.families()))
    assert value(found, f"{NAME}_total", service="SQS", action="ListQueues", code="200") == 1


def test_l433_a_call_that_observe_mode_refuses_is_none() -> None:
    metrics = AwsMetrics()
    with pytest.raises(AwsWriteRefused):
        call(ReadingClients("us-west-2", SESSION, listener=metrics).sqs.create_queue, QueueName="q")
    assert f"{NAME}_total" not in scraped(exposition(metrics.families()))


@pytest.mark.parametrize("provider", ["aws", "kwok"])
@pytest.mark.asyncio(loop_scope="function")
async def test_a_scrape_has_them_where_there_is_aws(provider: str) -> None:
    telemetry = Telemetry(provider=provider, state_metrics=True)
    telemetry.aws.called("EC2", "DescribeSubnets", 200, 0.1, 0)
    text = b"".join(await telemetry.metrics()).decode()
    assert (f"{NAME}_total{{" in text) == (provider == "aws")


def test_all_are_in_the_documents() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert [family.name for family in AwsMetrics().families() if f"`{family.name}`" not in text] == []


def test_l429_l430_interruption_messages_and_their_age() -> None:
    metrics = AwsMetrics()
    metrics.received("spot_interrupted")
    metrics.received("no_op")
    metrics.handled(4.0)
    found = scraped(exposition(metrics.families()))
    received = "karpenter_interruption_received_messages_total"
    assert value(found, received, message_type="spot_interrupted") == value(found, received, message_type="no_op") == 1
    assert value(found, "karpenter_interruption_message_queue_duration_seconds_sum") == 4
