"""TerminateInstances for many threads at once (A-288)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from kerf.adapters.aws.endings import Endings
from kerf.adapters.aws.session import AwsError
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics
from kerf.adapters.manager.metrics.exposition import exposition
from tests.support.metrics import scraped, value

NAMES = [f"i-{number}" for number in range(40)]


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "T")


def ended(names: list[str]) -> dict[str, Any]:
    return {"TerminatingInstances": [{"InstanceId": name, "CurrentState": {"Name": "shutting-down"}} for name in names]}


class Ec2:
    """Answers the first call when all of `NAMES` wait, and every call as `answer` says."""

    def __init__(self, answer: Callable[[list[str]], dict[str, Any]] = ended) -> None:
        self.ec2, self.listener = self, AwsMetrics()
        self.calls: list[list[str]] = []
        self.all_there = threading.Event()
        self._answer = answer

    def terminate_instances(self, InstanceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        self.calls.append(InstanceIds)
        self.all_there.wait(10)
        return self._answer(InstanceIds)


def end_all(ec2: Ec2) -> dict[str, AwsError | None]:
    """The outcomes of 40 terminations, the first of which is under way when the others come."""
    endings = Endings(ec2)  # type: ignore[arg-type]
    with ThreadPoolExecutor(len(NAMES)) as pool:
        first = pool.submit(endings.end, NAMES[0])
        while not ec2.calls:
            threading.Event().wait(0.001)
        others = [pool.submit(endings.end, name) for name in NAMES[1:]]
        while len(endings._waiting) < len(others):
            threading.Event().wait(0.001)
        ec2.all_there.set()
        return dict(zip(NAMES, [asked.result(10) for asked in (first, *others)], strict=True))


def test_a288_those_who_come_meanwhile_share_the_next_call() -> None:
    ec2 = Ec2()
    assert end_all(ec2) == dict.fromkeys(NAMES)
    assert [len(names) for names in ec2.calls] == [1, 39]


def test_l428_what_goes_out_in_one_call_is_counted_and_how_long_it_waited() -> None:
    ec2 = Ec2()
    end_all(ec2)
    batch, of = "karpenter_cloudprovider_batcher_batch", {"batcher": "terminate_instances"}
    found = scraped(exposition(ec2.listener.families()))
    assert value(found, f"{batch}_size_count", **of) == value(found, f"{batch}_time_seconds_count", **of) == 2
    assert value(found, f"{batch}_size_bucket", le="1", **of) == 1
    assert value(found, f"{batch}_size_sum", **of) == len(NAMES)
    assert value(found, f"{batch}_time_seconds_sum", **of) > 0


@pytest.mark.parametrize(
    "code",
    [
        "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "UnauthorizedOperation", "OperationNotPermitted",
        "IncorrectInstanceState", "UnsupportedOperation", "InvalidParameterValue",
    ],
)  # fmt: skip
def test_a288_one_that_is_refused_spoils_nothing_for_the_others(code: str) -> None:
    def answer(names: list[str]) -> dict[str, Any]:
        if "i-7" in names:
            raise refusal(code)
        return ended(names)

    ec2 = Ec2(answer)
    found = end_all(ec2)
    assert {name: outcome.aws_code for name, outcome in found.items() if outcome is not None} == {"i-7": code}
    assert len(ec2.calls) <= 2 + 2 * 6, "it is found by halves"


def test_a288_one_that_the_answer_leaves_out_is_ended_alone() -> None:
    ec2 = Ec2(lambda names: ended([name for name in names if name != "i-7" or len(names) == 1]))
    assert end_all(ec2) == dict.fromkeys(NAMES)
    assert ec2.calls[2:] == [["i-7"]]


@pytest.mark.parametrize(
    ("failure", "unknown"),
    [
        (refusal("RequestLimitExceeded"), False),
        (refusal("ExpiredToken"), False),
        (ReadTimeoutError(endpoint_url="https://ec2.invalid"), True),
    ],
)
def test_a_throttled_or_lost_call_is_not_repeated_for_each_instance(failure: Exception, unknown: bool) -> None:
    def answer(names: list[str]) -> dict[str, Any]:
        if len(names) > 1:
            raise failure
        return ended(names)

    ec2 = Ec2(answer)
    found = end_all(ec2)
    assert len(ec2.calls) == 2
    assert found.pop(NAMES[0]) is None
    assert {outcome.unknown for outcome in found.values() if outcome is not None} == {unknown}
    assert None not in found.values()


def test_a_defect_reaches_everybody_who_asked() -> None:
    ec2 = Ec2(lambda names: {"TerminatingInstances": [{}]})
    with pytest.raises(KeyError):
        end_all(ec2)
