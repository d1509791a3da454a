"""The interruption queue (A-343…A-350): EventBridge messages on SQS become observations.

Nothing is deleted before `acknowledge`: a message whose record failed comes back after its visibility
timeout. Duplicates and messages out of order are passed on; the engine knows a message by its id.

Each message is read for itself. One that is no event is refused (KERF350), and deleted once the refusal is recorded: it
would read the same for ever. One that a defect of kerf keeps from being read (KERF605) stays in the queue: a kerf
without the defect may still read it, and until then the queue's own policy decides how long it is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.aws.call_listener import CallListener
from kerf.adapters.aws.session import AwsError, Client, call
from kerf.engine.errors import InputError, fault_of
from kerf.engine.model.durations import parse_time
from kerf.engine.record.observations import InputRefused, InterruptionSeen, Observation

BATCH = 10
PARALLEL = 10  # requests at a time, where there are many messages
VISIBILITY = 20  # seconds
MAX_ID = 256  # characters of the ids that an event may bring along; AWS' own have 36 at most
MAX_INSTANCES = 10_000  # of one event: more than AWS' own events have room for
MAX_TOLD = 300  # characters of what is wrong with a message
KNOWN = 10_000  # messages whose refusal is remembered
NO_OP = "no_op"  # the kind of an event that does not concern kerf
_STOPPED = ("stopping", "stopped")
_ENDED = ("shutting-down", "terminated")


_Text = str | None
"""A text of a message: null is none, as it is to Karpenter."""


class _Entity(Struct):
    entity_value: _Text = msgspec.field(name="entityValue", default="")


class _Detail(Struct):
    instance: _Text = msgspec.field(name="instance-id", default="")
    state: _Text = ""
    service: _Text = ""
    category: _Text = msgspec.field(name="eventTypeCategory", default="")
    affected: list[_Entity | None] | None = msgspec.field(name="affectedEntities", default=None)


class _Event(Struct):
    """An event. Its detail is read once it is known to concern kerf: others may have anything there."""

    version: _Text = ""
    id: _Text = ""
    detail_type: _Text = msgspec.field(name="detail-type", default="")
    source: _Text = ""
    time: _Text = ""
    detail: msgspec.Raw = msgspec.Raw(b"null")


class QueueMessage(Struct, frozen=True):
    """What one message says: its kind, "" if it is refused; when its event was sent (ms since the epoch; 0: it does not
    say); and what is to be recorded of it."""

    kind: str
    sent: int = 0
    news: tuple[InterruptionSeen | InputRefused, ...] = ()


class _Polled(Struct, frozen=True):
    """A message that was received: the handle by which it is deleted, when its event was sent (0: it does not say), and
    the instances that it is about."""

    handle: str
    sent: int
    about: frozenset[str]


_decoder = msgspec.json.Decoder(_Event)
_detail_decoder = msgspec.json.Decoder(_Detail | None)


def _with_kind(kind: str) -> Callable[[_Detail], tuple[str, tuple[str, ...]]]:
    return lambda detail: (kind, (detail.instance,) if detail.instance else ())


def _state_change(detail: _Detail) -> tuple[str, tuple[str, ...]]:
    """The kind of a state change, and its instance (A-348). Whether the state counts is asked regardless of its case;
    which kind it is, with regard to it."""
    if (detail.state or "").lower() not in _STOPPED + _ENDED or not detail.instance:
        return "", ()
    return ("instance_stopped" if detail.state in _STOPPED else "instance_terminated"), (detail.instance,)


def _scheduled_change(detail: _Detail) -> tuple[str, tuple[str, ...]]:
    """The instances that an announced change by EC2 concerns (A-349)."""
    if detail.service != "EC2" or detail.category != "scheduledChange":
        return "", ()
    return "scheduled_change", tuple(e.entity_value for e in detail.affected or () if e and e.entity_value)


_KINDS: dict[tuple[_Text, _Text], Callable[[_Detail], tuple[str, tuple[str, ...]]]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _with_kind("spot_interrupted"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _with_kind("rebalance_recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.health", "AWS Health Event"): _scheduled_change,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _with_kind(
        "capacity_reservation_interrupted"
    ),
}


EVENTS = frozenset(_KINDS)
"""What the queue has to be sent: (source, detail type) of EventBridge events."""


def parse(message: str, body: str) -> QueueMessage:
    """Read one queue message. An event that does not concern kerf brings nothing to record (A-345).

    An observation is known by the id of its event, so that a duplicate has the same one. Each instance of a health
    event gets an id of its own. Whatever the body is, it is read or refused (A-344): it may be nested too deeply, be no
    text that UTF-8 can hold, or bring ids along that would make a large record of a small message.
    """
    if not body.strip():
        return QueueMessage(NO_OP)
    try:
        event = _decoder.decode(body)
        sent = parse_time(event.time) if event.time else 0
        reader = _KINDS.get((event.source, event.detail_type)) if event.version == "0" else None
        if reader is None:
            return QueueMessage(NO_OP, sent)
        kind, named = reader(_detail_decoder.decode(event.detail) or _Detail())
    except InputError:  # it shows the text, which a stranger wrote
        return _refused(message, "time", "it is not a time as RFC 3339 has it")
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return _refused(message, "", str(error))
    instances, known_as = tuple(dict.fromkeys(named)), event.id or message
    if len(known_as) > MAX_ID or any(len(instance) > MAX_ID for instance in instances):
        return _refused(message, "", f"an id has over {MAX_ID} characters")
    if len(instances) > MAX_INSTANCES:
        return _refused(message, "detail", f"{len(instances)} instances; {MAX_INSTANCES} are read at most")
    news = tuple(
        InterruptionSeen(
            message=known_as if len(instances) == 1 else f"{known_as}#{instance}",
            kind=kind,
            instance=instance,
            sent=sent,
        )
        for instance in instances
    )
    return QueueMessage(kind or NO_OP, sent, news)


def _refused(message: str, field: str, why: str) -> QueueMessage:
    text = f"not an EventBridge event: {why}"
    refused = InputRefused(code="KERF350", source="queue", object=message, field=field, message=text[:MAX_TOLD])
    return QueueMessage("", news=(refused,))


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


class AwsInterruptions:
    """The port `Interruptions` on SQS. `wait` is the long poll in seconds (A-343: 20 in production). The `listener` is
    told of each message, by the `clock` in ms since the epoch."""

    def __init__(
        self,
        sqs: Client,
        queue: str,
        *,
        wait: int = 20,
        listener: CallListener | None = None,
        clock: Callable[[], int] = _wall_clock,
    ) -> None:
        self._sqs = sqs
        self._queue = queue
        self._wait = wait
        self._url = ""
        self._listener, self._clock = listener or CallListener(), clock
        self._polled: list[_Polled] = []
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="messages")
        self._told: dict[str, None] = {}

    def poll(self) -> list[Observation]:
        """The messages of one request; after a full one, also what further requests get at once, so that a hundred
        messages take one turn. Asks for the queue's address until it is known. Raises `AwsError`."""
        self._polled.clear()  # what was polled before and is not recorded comes back
        if not self._url:
            self._url = call(self._sqs.get_queue_url, QueueName=self._queue)["QueueUrl"]
        try:
            messages = self._received(self._wait)
        except AwsError as error:
            if error.not_found:
                self._url = ""  # a queue that was deleted may be made again elsewhere
            raise
        if len(messages) >= BATCH:
            further = [self._pool.submit(self._received, 0) for _ in range(PARALLEL - 1)]
            messages += [message for more in further if more.exception() is None for message in more.result()]
        return [Observation(seen) for message in messages for seen in self._read(message)]

    def _received(self, wait: int) -> list[dict[str, Any]]:
        answer = call(
            self._sqs.receive_message,
            QueueUrl=self._url,
            MaxNumberOfMessages=BATCH,
            VisibilityTimeout=VISIBILITY,
            WaitTimeSeconds=wait,
        )
        return list(answer.get("Messages") or ())

    def _read(self, message: dict[str, Any]) -> list[InterruptionSeen | InputRefused]:
        """The news in one message, which `acknowledge` deletes. A message that comes back is refused once."""
        known_as = str(message.get("MessageId", ""))
        seen: tuple[InterruptionSeen | InputRefused, ...]
        try:
            read = parse(known_as, message.get("Body") or "")
            seen = read.news
            if read.kind:  # it could be read
                self._listener.received(read.kind)
            about = frozenset(news.instance for news in seen if isinstance(news, InterruptionSeen))
            self._polled.append(_Polled(message.get("ReceiptHandle") or "", read.sent if read.kind else 0, about))
        except Exception as error:  # a defect met by one message must not keep the others from being handled
            fault = fault_of(error, "interruption queue")
            seen = (InputRefused(fault.code, "queue", known_as, message=str(fault)[:MAX_TOLD]),)
        return [news for news in seen if isinstance(news, InterruptionSeen) or self._is_news(known_as)]

    def _is_news(self, message: str) -> bool:
        if message in self._told:
            return False
        if len(self._told) >= KNOWN:
            self._told.clear()
        self._told[message] = None
        return True

    def acknowledge(self, waiting: Collection[str] = ()) -> None:
        """Delete what was polled, but what is about `waiting` instances. A message that is not deleted comes back; if
        it was recorded, its id says that it is known."""
        done, self._polled = [each for each in self._polled if each.about.isdisjoint(waiting)], []
        handles = [each.handle for each in done if each.handle]
        batches = [handles[start : start + BATCH] for start in range(0, len(handles), BATCH)]
        for deleted in [self._pool.submit(self._delete, batch) for batch in batches]:
            deleted.result()
        for each in done:
            if each.sent:
                self._listener.handled(max(0, self._clock() - each.sent) / 1000)

    def _delete(self, handles: Sequence[str]) -> None:
        entries = [{"Id": str(index), "ReceiptHandle": handle} for index, handle in enumerate(handles)]
        call(self._sqs.delete_message_batch, QueueUrl=self._url, Entries=entries)
