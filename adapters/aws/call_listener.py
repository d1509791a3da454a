"""Tells somebody of each call to AWS (how often it was sent, how long it took, what came back; L-433), of each method
of the port `Cloud` (L-413), of what goes out in one call (L-428), and of each interruption message (L-429, L-430)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import Struct

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class CallListener:
    """Is told of calls by many threads at once; this one takes no notice. `service` and `action` are AWS's names, such
    as EC2 and DescribeSubnets. `status` is that of the HTTP answer; 0 where none came."""

    def attempted(self, service: str, action: str, status: int, seconds: float) -> None:
        """A request was answered or given up so many seconds after it was sent."""

    def called(self, service: str, action: str, status: int, seconds: float, retries: int) -> None:
        """A call has ended. The seconds are all that its caller waited: for its turn, and through all retries."""

    def answered(self, controller: str, method: str, seconds: float) -> None:
        """A method of the port has ended, whatever came of it; both names are Karpenter's."""

    def batched(self, batcher: str, seconds: float, size: int) -> None:
        """So many things are asked in one call. The first of them has waited so many seconds for that."""

    def received(self, kind: str) -> None:
        """A message of the interruption queue was read; one without effect is "no_op" (A-344, A-345)."""

    def handled(self, seconds: float) -> None:
        """A message of the interruption queue is deleted, so many seconds after its event was sent."""


def told_as(
    controller: str, method: str
) -> Callable[[Callable[Concatenate[Any, Asked], Answer]], Callable[Concatenate[Any, Asked], Answer]]:
    """Tell the `listener` of an object how long a method of it took (L-413)."""

    def of(work: Callable[Concatenate[Any, Asked], Answer]) -> Callable[Concatenate[Any, Asked], Answer]:
        @wraps(work)
        def told(self: Any, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
            began = time.monotonic()
            try:
                return work(self, *args, **kwargs)
            finally:
                self.listener.answered(controller, method, time.monotonic() - began)

        return told

    return of


class _Call(Struct):
    began: float
    sent: float
    attempts: int = 0


class CallHooks:
    """Hears of one client's calls. A call begins and ends on one thread. `clock` is in seconds."""

    def __init__(self, listener: CallListener, service: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener, self._service, self._clock = listener, service, clock
        self._of_thread = threading.local()

    def hold(self, client: Any) -> None:
        events = client.meta.events
        events.register_first("before-call", self._begun)
        events.register_last("before-send", self._sent)  # after what keeps it waiting
        events.register_first("response-received", self._received)
        events.register_first("after-call", self._ended)
        events.register_first("after-call-error", self._failed)

    def _begun(self, **_: Any) -> None:
        now = self._clock()
        self._of_thread.call = _Call(now, now)

    def _sent(self, **_: Any) -> None:
        self._of_thread.call.sent = self._clock()

    def _received(self, event_name: str, response_dict: dict[str, Any] | None, **_: Any) -> None:
        now, call = self._clock(), self._of_thread.call
        status = response_dict["status_code"] if response_dict is not None else 0
        self._listener.attempted(self._service, _action(event_name), status, now - call.sent)
        call.attempts += 1
        call.sent = now

    def _ended(self, event_name: str, http_response: Any, **_: Any) -> None:
        self._tell(event_name, http_response.status_code)

    def _failed(self, event_name: str, **_: Any) -> None:
        self._tell(event_name, 0)

    def _tell(self, event_name: str, status: int) -> None:
        call = self._of_thread.call
        retries = max(0, call.attempts - 1)
        self._listener.called(self._service, _action(event_name), status, self._clock() - call.began, retries)


def _action(event_name: str) -> str:
    return event_name.rpartition(".")[2]
