"""`AwsInterruptions` through boto3 against moto's SQS."""

from __future__ import annotations

import json
from typing import Any

from kerf.engine.record.observations import InputRefused, InterruptionSeen
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


def test_more_messages_than_one_batch(world: AwsWorld) -> None:
    for number in range(23):
        world.environment.operator.interrupt_spot(f"i-many-{number}")
    found = [seen.instance for _ in range(4) for seen in messages(world)]
    assert sorted(found) == sorted(f"i-many-{number}" for number in range(23))
