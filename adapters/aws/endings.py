"""TerminateInstances for many instances at once (A-288)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from kerf.adapters.aws.session import AwsError, Clients, call

MOST = 500  # instances in one call
_ENDED = ("shutting-down", "terminated")
MALFORMED = "InvalidInstanceID.Malformed"
"""EC2's code for what is no instance id, such as the last part of a Fargate node's provider id."""

_Outcome = AwsError | None


class Endings:
    """Ends instances for many threads. Who comes while a call is under way is taken along by the next one; nobody
    waits for others to come."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._calling, self._lock = threading.Lock(), threading.Lock()
        self._waiting: dict[str, tuple[Future[_Outcome], float]] = {}  # with the time (s) at which they came

    def end(self, instance: str) -> _Outcome:
        """Terminate an instance. Returns what EC2 has against it, or how its answer was lost; None for nothing."""
        with self._lock:
            asked, _ = self._waiting.setdefault(instance, (Future(), time.monotonic()))
        with self._calling:
            while not asked.done():
                self._end_waiting()
        return asked.result()

    def _end_waiting(self) -> None:
        with self._lock:
            waiting = {name: self._waiting.pop(name) for name in list(self._waiting)[:MOST]}
        taken = {name: asked for name, (asked, _) in waiting.items()}
        try:
            waited = time.monotonic() - min(since for _, since in waiting.values())
            self._clients.listener.batched("terminate_instances", waited, len(taken))
            outcomes = self._outcomes(list(taken))
        except Exception as defect:
            for asked in taken.values():
                asked.set_exception(defect)
        else:
            for name, asked in taken.items():
                asked.set_result(outcomes[name])

    def _outcomes(self, names: Sequence[str]) -> dict[str, _Outcome]:
        """The outcome for each. One instance may be the cause of a refusal, by which EC2 ends none: each half is asked
        for by itself, until what is refused is alone. So is at once what an answer leaves out."""
        try:
            answer = call(self._clients.ec2.terminate_instances, InstanceIds=list(names))
        except AwsError as error:
            if len(names) == 1 or error.of_anything:
                return dict.fromkeys(names, error)
            half = len(names) // 2
            return self._outcomes(names[:half]) | self._outcomes(names[half:])
        told = answer.get("TerminatingInstances", ())
        ended = {entry["InstanceId"] for entry in told if entry["CurrentState"]["Name"] in _ENDED}
        if len(names) == 1:
            ended.update(names)
        found: dict[str, _Outcome] = dict.fromkeys(ended & set(names))
        for name in names:
            if name not in found:
                found |= self._outcomes([name])
        return found
