"""The interruption queue (A-343…A-350): EventBridge messages on SQS become observations.

Nothing is deleted before `acknowledge`: a message whose record failed comes back after its visibility
timeout. Duplicates and messages out of order are passed on; the engine knows a message by its id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.aws.session import Client, call
from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_time
from kerf.engine.record.observations import InputRefused, InterruptionSeen, Observation

BATCH = 10
VISIBILITY = 20  # seconds
_STOPPED = ("stopping", "stopped")
_ENDED = ("shutting-down", "terminated")


class _Entity(Struct):
    entity_value: str = msgspec.field(name="entityValue", default="")


class _Detail(Struct):
    instance: str = msgspec.field(name="instance-id", default="")
    state: str = ""
    service: str = ""
    category: str = msgspec.field(name="eventTypeCategory", default="")
    affected: list[_Entity] = msgspec.field(name="affectedEntities", default_factory=list)


class _Event(Struct):
    version: str = ""
    id: str = ""
    detail_type: str = msgspec.field(name="detail-type", default="")
    source: str = ""
    time: str = ""
    detail: _Detail = msgspec.field(default_factory=_Detail)


_decoder = msgspec.json.Decoder(_Event)


def _with_kind(kind: str) -> Callable[[_Detail], tuple[str, tuple[str, ...]]]:
    return lambda detail: (kind, (detail.instance,) if detail.instance else ())


def _state_change(detail: _Detail) -> tuple[str, tuple[str, ...]]:
    """The kind of a state change, and its instance (A-348). Whether the state counts is asked regardless of its case;
    which kind it is, with regard to it."""
    if detail.state.lower() not in _STOPPED + _ENDED or not detail.instance:
        return "", ()
    return ("instance_stopped" if detail.state in _STOPPED else "instance_terminated"), (detail.instance,)


def _scheduled_change(detail: _Detail) -> tuple[str, tuple[str, ...]]:
    """The instances that an announced change by EC2 concerns (A-349)."""
    if detail.service != "EC2" or detail.category != "scheduledChange":
        return "", ()
    return "scheduled_change", tuple(e.entity_value for e in detail.affected if e.entity_value)


_KINDS: dict[tuple[str, str], Callable[[_Detail], tuple[str, tuple[str, ...]]]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _with_kind("spot_interrupted"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _with_kind("rebalance_recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.health", "AWS Health Event"): _scheduled_change,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _with_kind(
        "capacity_reservation_interrupted"
    ),
}


def parse(message: str, body: str) -> tuple[InterruptionSeen | InputRefused, ...]:
    """The observations in one queue message; none for an event that does not concern kerf (A-345).

    An observation is known by the id of its event, so that a duplicate has the same one. Each instance of a health
    event gets an id of its own.
    """
    if not body.strip():
        return ()
    try:
        event = _decoder.decode(body)
        sent = parse_time(event.time) if event.time else 0
    except (msgspec.DecodeError, InputError) as error:
        return (
            InputRefused(
                code="KERF350",
                source="queue",
                object=message,
                field="time" if isinstance(error, InputError) else "",
                message=f"not an EventBridge event: {error}",
            ),
        )
    reader = _KINDS.get((event.source, event.detail_type)) if event.version == "0" else None
    if reader is None:
        return ()
    kind, instances = reader(event.detail)
    known_as = event.id or message
    return tuple(
        InterruptionSeen(
            message=known_as if len(instances) == 1 else f"{known_as}#{instance}",
            kind=kind,
            instance=instance,
            sent=sent,
        )
        for instance in instances
    )


class AwsInterruptions:
    """The port `Interruptions` on SQS. `wait` is the long poll in seconds (A-343: 20 in production)."""

    def __init__(self, sqs: Client, queue: str, *, wait: int = 20) -> None:
        self._sqs = sqs
        self._queue = queue
        self._wait = wait
        self._url = ""
        self._handles: list[str] = []

    def poll(self) -> list[Observation]:
        """Up to ten messages. Asks for the queue's address until it is known. Raises `AwsError`."""
        if not self._url:
            self._url = call(self._sqs.get_queue_url, QueueName=self._queue)["QueueUrl"]
        answer = call(
            self._sqs.receive_message,
            QueueUrl=self._url,
            MaxNumberOfMessages=BATCH,
            VisibilityTimeout=VISIBILITY,
            WaitTimeSeconds=self._wait,
        )
        observations: list[Observation] = []
        for message in answer.get("Messages", ()):
            self._handles.append(message["ReceiptHandle"])
            observations += [Observation(seen) for seen in parse(message["MessageId"], message.get("Body", ""))]
        return observations

    def acknowledge(self) -> None:
        """Delete what was polled. A message that cannot be deleted comes back, and its id says that it is known."""
        handles, self._handles = self._handles, []
        for start in range(0, len(handles), BATCH):
            entries: list[dict[str, Any]] = [
                {"Id": str(index), "ReceiptHandle": handle}
                for index, handle in enumerate(handles[start : start + BATCH])
            ]
            call(self._sqs.delete_message_batch, QueueUrl=self._url, Entries=entries)
