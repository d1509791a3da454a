"""Queue messages (A-344…A-350, A-464…A-466)."""

import json
import threading
from collections import deque
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from kerf.adapters.aws.call_listener import CallListener
from kerf.adapters.aws.interruption import MAX_INSTANCES, MAX_TOLD, AwsInterruptions, parse
from kerf.engine.record.observations import InputRefused, InterruptionSeen


def event(detail_type: str, detail: dict[str, Any] | None, **fields: Any) -> str:
    head = {"version": "0", "id": "e-1", "detail-type": detail_type, "source": "aws.ec2", "account": "1"}
    return json.dumps(
        {**head, "time": "2026-08-01T00:00:01Z", "region": "r", "resources": [], "detail": detail} | fields
    )


SENT = 1_785_542_401_000


@pytest.mark.parametrize(
    ("detail_type", "detail", "kind"),
    [
        pytest.param("EC2 Spot Instance Interruption Warning", {}, "spot_interrupted", id="A-346"),
        pytest.param("EC2 Instance Rebalance Recommendation", {}, "rebalance_recommendation", id="A-347"),
        pytest.param("EC2 Instance State-change Notification", {"state": "stopping"}, "instance_stopped", id="A-348"),
        pytest.param("EC2 Instance State-change Notification", {"state": "stopped"}, "instance_stopped", id="A-348 b"),
        pytest.param(
            "EC2 Instance State-change Notification", {"state": "terminated"}, "instance_terminated", id="A-348 c"
        ),
        pytest.param(
            "EC2 Instance State-change Notification", {"state": "STOPPED"}, "instance_terminated", id="A-348 quirk"
        ),
        pytest.param(
            "EC2 Capacity Reservation Instance Interruption Warning",
            {},
            "capacity_reservation_interrupted",
            id="A-350",
        ),
    ],
)
def test_kinds(detail_type: str, detail: dict[str, Any], kind: str) -> None:
    assert parse("m-1", event(detail_type, {"instance-id": "i-1"} | detail)).news == (
        InterruptionSeen("e-1", kind, "i-1", SENT),
    )


def health(category: str = "scheduledChange", service: str = "EC2") -> str:
    entities = [{"entityValue": f"i-{n}"} for n in range(3)]
    detail = {"service": service, "eventTypeCategory": category, "affectedEntities": entities}
    return event("AWS Health Event", detail, source="aws.health")


def test_a_464_a_health_event_tells_of_each_instance_under_an_id_of_its_own() -> None:
    found = parse("m-1", health()).news
    assert [(seen.message, seen.kind, seen.instance) for seen in found if isinstance(seen, InterruptionSeen)] == [
        (f"e-1#i-{n}", "scheduled_change", f"i-{n}") for n in range(3)
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="empty"),
        pytest.param(
            event("EC2 Instance State-change Notification", {"instance-id": "i", "state": "running"}), id="A-465"
        ),
        pytest.param(health(category="issue"), id="A-349 category"),
        pytest.param(health(service="RDS"), id="A-349 service"),
        pytest.param(event("Something", {}), id="unknown type"),
        pytest.param(
            event("CloudWatch Alarm State Change", {"state": {"value": "ALARM"}}, source="aws.cloudwatch"),
            id="a detail of another make",
        ),
        pytest.param('{"detail": []}', id="no type"),
        pytest.param(event("AWS Health Event", None, source="aws.health"), id="no detail"),
        pytest.param(event("EC2 Spot Instance Interruption Warning", {"instance-id": "i"}, version="1"), id="version"),
        pytest.param(event("EC2 Spot Instance Interruption Warning", {"instance-id": "i"}, source="x"), id="source"),
    ],
)
def test_a_345_events_that_are_none_of_ours(body: str) -> None:
    read = parse("m-1", body)
    assert (read.kind, read.news) == ("no_op", ())


@pytest.mark.parametrize("body", ["garbage", "[]", '{"version": 3}', event("x", {}, time="yesterday")])
def test_a_344_what_does_not_decode_is_refused_with_its_message_id(body: str) -> None:
    (refused,) = parse("m-1", body).news
    assert isinstance(refused, InputRefused)
    assert (refused.code, refused.source, refused.object) == ("KERF350", "queue", "m-1")


def nested(levels: int) -> str:
    return '{"x":' + "[" * levels + "]" * levels + "}"


POISON = {
    "5,000 levels in a field that kerf does not read": nested(5_000),
    "5,000 levels in the detail": '{"detail":{"x":' + '{"a":' * 5_000 + "1" + "}" * 5_000 + "}}",
    "a surrogate, which UTF-8 cannot hold": '{"id":"\ud800"}',
    "an escaped surrogate": event("EC2 Instance Rebalance Recommendation", {"instance-id": "i"}, id="\ud800"),
    "256 KB in the time": event("x", {}, time="9" * 262_144),
    "256 KB in the id": event("EC2 Instance Rebalance Recommendation", {"instance-id": "i"}, id="x" * 262_144),
    "256 KB in the instance": event("EC2 Instance Rebalance Recommendation", {"instance-id": "i" * 262_144}),
    "wrong types": event("EC2 Instance Rebalance Recommendation", {"instance-id": ["i-1"]}),
    "no object at all": "[" * 5_000 + "]" * 5_000,
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON)
def test_a_344_poison_is_refused_in_few_words(body: str) -> None:
    """Each of these raised, or brought its 256 KB into the record."""
    (refused,) = parse("m-1", body).news
    assert isinstance(refused, InputRefused)
    assert (refused.code, refused.object) == ("KERF350", "m-1")
    assert len(refused.message) <= MAX_TOLD
    refused.message.encode()


def test_a_344_null_is_as_good_as_nothing() -> None:
    """Go, and so Karpenter, reads it so."""
    assert parse("m-1", event("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1", "state": None})).news
    entities = [None, {"entityValue": None}, {"entityValue": "i-1"}]
    detail: dict[str, Any] = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": entities}
    (seen,) = parse("m-1", event("AWS Health Event", detail, source="aws.health", id=None)).news
    assert isinstance(seen, InterruptionSeen)
    assert (seen.message, seen.instance) == ("m-1", "i-1")
    detail["affectedEntities"] = None
    assert parse("m-1", event("AWS Health Event", detail, source="aws.health")).news == ()


@pytest.mark.parametrize("missing", ["version", "detail-type", "source", "detail"])
def test_a_345_a_message_without_a_field_is_none_of_ours(missing: str) -> None:
    fields = json.loads(event("EC2 Instance Rebalance Recommendation", {"instance-id": "i"}))
    del fields[missing]
    assert parse("m-1", json.dumps(fields)).news == ()


def test_a_349_a_small_message_does_not_make_a_large_record() -> None:
    """Ten thousand times one instance is one; each of many instances repeats the event's id, which is short."""
    same = [{"entityValue": "i-1"}] * 10_000
    detail = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": same}
    assert len(parse("m-1", event("AWS Health Event", detail, source="aws.health")).news) == 1
    detail["affectedEntities"] = [{"entityValue": f"i-{number}"} for number in range(MAX_INSTANCES + 1)]
    (refused,) = parse("m-1", event("AWS Health Event", detail, source="aws.health")).news
    assert isinstance(refused, InputRefused)
    assert (refused.code, refused.field) == ("KERF350", "detail")


def test_without_an_event_id_the_message_is_known_by_sqs_own() -> None:
    (seen,) = parse("m-1", event("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, id="")).news
    assert isinstance(seen, InterruptionSeen)
    assert seen.message == "m-1"


@given(
    st.text(st.characters())
    | st.recursive(st.none() | st.integers() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(json.dumps)
)
def test_no_body_ever_raises(body: str) -> None:
    assert all(isinstance(seen, InterruptionSeen | InputRefused) for seen in parse("m", body).news)


BROKEN = '{"version": "0", "detail": 7'


class Queue:
    """A queue of so many messages, and of others whose name begins with poison; its requests from the second one on
    that `fails` names are refused."""

    def __init__(self, messages: int, fails: tuple[int, ...] = (), poison: tuple[str, ...] = ()) -> None:
        self._messages = deque([*poison, *(str(number) for number in range(messages))])
        self._lock, self._fails = threading.Lock(), fails
        self.waits: list[int] = []
        self.deleted: list[str] = []
        self.hidden: set[int] = set()

    def get_queue_url(self, **_: Any) -> dict[str, Any]:
        return {"QueueUrl": "https://queue.example.com"}

    def receive_message(
        self,
        MaxNumberOfMessages: int,  # noqa: N803
        WaitTimeSeconds: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        with self._lock:
            self.hidden.add(VisibilityTimeout)
            self.waits.append(WaitTimeSeconds)
            if len(self.waits) in self._fails:
                refused = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
                raise ClientError(refused, "ReceiveMessage")
            taken = [self._messages.popleft() for _ in range(min(MaxNumberOfMessages, len(self._messages)))]
        bodies = [
            BROKEN
            if name.startswith("poison")
            else event("EC2 Spot Instance Interruption Warning", {"instance-id": f"i-{name}"}, id=name)
            for name in taken
        ]
        return {
            "Messages": [{"MessageId": n, "ReceiptHandle": n, "Body": b} for n, b in zip(taken, bodies, strict=True)]
        }

    def delete_message_batch(self, Entries: list[dict[str, str]], **_: Any) -> dict[str, Any]:  # noqa: N803
        assert len({entry["Id"] for entry in Entries}) == len(Entries) <= 10
        with self._lock:
            self.deleted += [entry["ReceiptHandle"] for entry in Entries]
        return {}


@pytest.mark.parametrize(("messages", "requests"), [(0, 1), (9, 1), (10, 10), (95, 10), (250, 10)])
def test_many_messages_are_received_at_once_and_deleted_once_they_are_recorded(messages: int, requests: int) -> None:
    queue = Queue(messages)
    interruptions = AwsInterruptions(queue, "q")
    polled = [found.payload for found in interruptions.poll()]
    seen = {found.message for found in polled if isinstance(found, InterruptionSeen)}
    assert len(seen) == min(messages, 100)
    assert queue.waits == [20] + [0] * (requests - 1)
    assert queue.hidden == {20}, "A-343: what is not recorded by then comes back"
    assert queue.deleted == []
    interruptions.acknowledge()
    assert sorted(queue.deleted) == sorted(seen)


def test_what_arrived_beside_a_refused_request_is_not_lost() -> None:
    queue = Queue(100, fails=(4,))
    interruptions = AwsInterruptions(queue, "q")
    assert len(interruptions.poll()) == 90
    interruptions.acknowledge()
    assert len(queue.deleted) == 90


def test_a_344_thousands_of_poison_messages_hold_no_event_back_and_are_refused_once_each() -> None:
    poison = tuple(f"poison-{number}" for number in range(3_000))
    queue = Queue(50, poison=poison + poison[:100])  # a hundred come again before they are deleted
    interruptions, found = AwsInterruptions(queue, "q"), list[Any]()
    for _ in range(32):
        found += [observation.payload for observation in interruptions.poll()]
        interruptions.acknowledge()
    refused = [told.object for told in found if isinstance(told, InputRefused)]
    assert sorted(refused) == sorted(poison), "in any order: they are received in parallel"
    assert {seen.message for seen in found if isinstance(seen, InterruptionSeen)} == {str(n) for n in range(50)}
    assert len(queue.deleted) == 3_150


class Listener(CallListener):
    """Keeps what it is told of messages."""

    def __init__(self) -> None:
        self.kinds, self.ages = list[str](), list[float]()

    def received(self, kind: str) -> None:
        self.kinds.append(kind)

    def handled(self, seconds: float) -> None:
        self.ages.append(seconds)


class Sent(Queue):
    """A queue of one batch with these bodies."""

    def __init__(self, bodies: list[str]) -> None:
        super().__init__(0)
        self._bodies = bodies

    def receive_message(self, *_: Any, **__: Any) -> dict[str, Any]:
        taken, self._bodies = self._bodies, []
        return {
            "Messages": [{"MessageId": f"m-{n}", "ReceiptHandle": f"m-{n}", "Body": b} for n, b in enumerate(taken)]
        }


def test_a344_each_message_counts_once_by_its_kind_and_by_its_age_when_it_is_handled() -> None:
    """One about several instances is one message, and one without effect is one, too; what cannot be read is none."""
    bodies = [
        event("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}),
        health(),
        event("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": "running"}),
        event("Something", {}),
        "",
        "garbage",
    ]
    queue, listener = Sent(bodies), Listener()
    interruptions = AwsInterruptions(queue, "q", listener=listener, clock=lambda: SENT + 4_000)
    assert len(interruptions.poll()) == 1 + 3 + 1, "the health event names three instances"
    assert listener.kinds == ["spot_interrupted", "scheduled_change", "no_op", "no_op", "no_op"]
    assert listener.ages == [], "not before they are recorded"
    interruptions.acknowledge()
    assert listener.ages == [4.0] * 4, "an empty one does not say when it was sent"
    interruptions.acknowledge()
    assert len(listener.ages) == 4
