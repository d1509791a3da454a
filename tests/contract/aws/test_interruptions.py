"""`AwsInterruptions` through boto3 against moto's SQS."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.adapters.aws.session import AwsError
from kerf.engine.record.observations import InputRefused, InterruptionSeen
from tests.support.aws.boundary import Boundary
from tests.support.servers.aws_world import CLOCK, AwsWorld


def messages(world: AwsWorld) -> list[Any]:
    found = [o.payload for o in world.environment.interruptions.poll()]
    world.environment.interruptions.acknowledge()
    return found


def test_a_346_a_spot_interruption(world: AwsWorld) -> None:
    event = world.environment.operator.interrupt_spot("i-1")
    assert messages(world) == [InterruptionSeen(event, "spot_interrupted", "i-1", CLOCK.now // 1000 * 1000)]
    assert messages(world) == []


def test_a_message_stays_until_it_is_acknowledged(world: AwsWorld) -> None:
    """A crash between poll and append loses nothing."""
    operator, queue = world.environment.operator, world.environment.interruptions
    operator.interrupt_spot("i-2")
    assert len(queue.poll()) == 1
    url = operator.queue_url
    attributes = operator.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "1"
    queue.acknowledge()
    attributes = operator.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
    queue.acknowledge()


def test_duplicates_are_passed_on_under_one_id(world: AwsWorld) -> None:
    detail = {"instance-id": "i-3", "instance-action": "terminate"}
    for _ in range(2):
        world.environment.operator.send_event("EC2 Spot Instance Interruption Warning", detail, id="twice")
    assert [seen.message for seen in messages(world)] == ["twice", "twice"]


def test_garbage_is_refused_and_takes_nothing_along(world: AwsWorld) -> None:
    operator = world.environment.operator
    operator.send("no json at all")
    operator.send(json.dumps({"version": 7}))
    operator.send_event("EC2 Instance Rebalance Recommendation", {"instance-id": "i-4"})
    operator.send_event("Something Else", {"instance-id": "i-5"})
    found = messages(world)
    assert [type(seen) for seen in found] == [InputRefused, InputRefused, InterruptionSeen]
    assert {seen.code for seen in found[:2]} == {"KERF350"}
    assert messages(world) == [], "unknown and bad messages are deleted too (A-344)"


class Sqs:
    """A queue with one batch, which comes back until it is deleted."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = list(messages)
        self.deleted: list[str] = []

    def get_queue_url(self, **_: Any) -> dict[str, Any]:
        return {"QueueUrl": f"https://queue.example.com/{CLUSTER}"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": [m for m in self.messages if m.get("ReceiptHandle") not in self.deleted]}

    def delete_message_batch(self, **parameters: Any) -> dict[str, Any]:
        self.deleted += [entry["ReceiptHandle"] for entry in parameters["Entries"]]
        return {}


def sent(number: int, body: Any) -> dict[str, Any]:
    return {"MessageId": f"m-{number}", "ReceiptHandle": f"r-{number}", "Body": body}


def warning(instance: str) -> str:
    head = {"version": "0", "id": instance, "source": "aws.ec2", "detail": {"instance-id": instance}}
    return json.dumps(head | {"detail-type": "EC2 Spot Instance Interruption Warning"})


def test_a_344_poison_takes_nothing_of_its_batch_along_and_is_deleted() -> None:
    """The first message of these ended the provider, and so the controller, each time that it came back."""
    deep = '{"x":' + "[" * 5_000 + "]" * 5_000 + "}"
    sqs = Sqs(sent(1, deep), sent(2, warning("i-2")), sent(3, '{"id":"\ud800"}'), sent(4, "{"), sent(5, warning("i-5")))
    queue = AwsInterruptions(sqs, CLUSTER, wait=0)
    seen = [observation.payload for observation in queue.poll()]
    assert [payload.object for payload in seen if isinstance(payload, InputRefused)] == ["m-1", "m-3", "m-4"]
    assert [payload.instance for payload in seen if isinstance(payload, InterruptionSeen)] == ["i-2", "i-5"]
    assert sqs.deleted == [], "not before they are recorded"
    queue.acknowledge()
    assert sqs.deleted == ["r-1", "r-2", "r-3", "r-4", "r-5"]


def test_a_344_a_message_that_meets_a_defect_is_told_once_and_left_in_the_queue(boundary: Boundary) -> None:
    """Bodies of another type than text never come from SQS: they stand for what nobody foresaw."""
    sqs = Sqs(sent(1, 7), sent(2, warning("i-2")))
    queue = AwsInterruptions(sqs, CLUSTER, wait=0)
    told: list[Any] = []
    for _ in range(3):
        told += [observation.payload for observation in queue.poll()]
        queue.acknowledge()
    assert [(payload.code, payload.object) for payload in told if isinstance(payload, InputRefused)] == [
        ("KERF605", "m-1")
    ]
    assert [payload.instance for payload in told if isinstance(payload, InterruptionSeen)] == ["i-2"]
    assert sqs.deleted == ["r-2"]
    boundary.problems.clear()


def test_a_message_without_a_handle_is_read_though_it_cannot_be_deleted() -> None:
    sqs = Sqs({"Body": warning("i-1")}, {"MessageId": "m-2"}, {})
    queue = AwsInterruptions(sqs, CLUSTER, wait=0)
    (seen,) = (observation.payload for observation in queue.poll())
    assert isinstance(seen, InterruptionSeen)
    assert seen.instance == "i-1"
    queue.acknowledge()
    assert sqs.deleted == []


def test_a_344_what_was_polled_and_not_recorded_is_not_deleted() -> None:
    sqs = Sqs(sent(1, warning("i-1")))
    queue = AwsInterruptions(sqs, CLUSTER, wait=0)
    queue.poll()
    sqs.messages = [sent(2, warning("i-2"))]
    queue.poll()
    queue.acknowledge()
    assert sqs.deleted == ["r-2"]


def test_a_deleted_queue_is_looked_for_until_it_is_there_again(world: AwsWorld) -> None:
    operator, name = world.environment.operator, world.environment.settings.interruption_queue
    queue = AwsInterruptions(operator.sqs, name, wait=0)
    queue.poll()
    operator.sqs.delete_queue(QueueUrl=operator.queue_url)
    for asked in ("receive_message", "get_queue_url", "get_queue_url"):
        with pytest.raises(AwsError, match=asked) as caught:
            queue.poll()
        assert (caught.value.code, caught.value.not_found) == ("KERF501", True)
    operator.sqs.create_queue(QueueName=name)
    event = operator.interrupt_spot("i-again")
    assert [observation.payload.message for observation in queue.poll()] == [event]  # type: ignore[attr-defined]
    queue.acknowledge()


def test_more_messages_than_one_batch(world: AwsWorld) -> None:
    for number in range(23):
        world.environment.operator.interrupt_spot(f"i-many-{number}")
    found = [seen.instance for _ in range(4) for seen in messages(world)]
    assert sorted(found) == sorted(f"i-many-{number}" for number in range(23))
