"""What must hold while clocks differ: nothing goes by the time alone, and pods that come to wait are planned for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, MoveStepResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer, ObjectGone, OfficeTaken, TimeSetBack

BY_TIME = ("expired", "unhealthy")
PLANNED_WITHIN = 60_000
"""A pod that kube-scheduler has refused is planned for within this (ms): the longest batch, and a margin."""
LONGEST_STEP = 15_000
"""Of the time between two entries so much counts: the store may not be writable, no process may run, or a clock is
set."""


@dataclass
class ClockRules:
    """Reads entries, one after the other. `in_doubt`: the record says that the clocks differ.

    `ahead`: by how much the time of a process that began in doubt is ahead (ms), where two of its three times were: the
    record's and the wall clock's. It believes the one in the middle, and nothing tells it that this is wrong (ADR 9).
    """

    in_doubt: bool = False
    ahead: int = 0
    office: int = 0  # the position at which a process has taken office last
    before: int = 0  # the record's time before that turn, by the entry itself or by what was set back
    seen: set[str] = field(default_factory=set)  # pods that wait
    waiting: dict[str, int] = field(default_factory=dict)  # pods that came to wait in doubt, by uid → for how long (ms)
    last: int = 0

    def see(self, entry: Entry, true: int) -> Iterator[tuple[str, str]]:
        """`true` is the entry's time by a clock that is right."""
        payload = entry.payload
        self._begin(entry, true)
        if isinstance(payload, ClocksDiffer | ClocksAgree):
            self.in_doubt = isinstance(payload, ClocksDiffer)
        elif isinstance(payload, Pod):
            self._pod(payload)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self._settled(payload.key)
        elif isinstance(payload, Decision):
            yield from self._decided(payload)
        elif isinstance(payload, ev.Tainted | ev.ReasonRaised) and self.in_doubt and payload.why in BY_TIME:
            yield "nothing by the clock while clocks differ", f"{payload.claim} is {payload.why}"
        yield from self._pass_time(entry.at)

    def _begin(self, entry: Entry, true: int) -> None:
        payload = entry.payload
        if isinstance(payload, TimeSetBack):
            self.before = payload.was
        elif isinstance(payload, OfficeTaken):
            self.before, self.office = max(self.before, self.last), entry.position
        elif isinstance(payload, ClocksDiffer) and entry.position == self.office + 1:
            both = self.before > true and payload.skew > 0
            self.ahead = max(0, entry.at - true) if both else 0
        if isinstance(payload, OfficeTaken | ClocksAgree):
            self.ahead = 0
        if not isinstance(payload, TimeSetBack | OfficeTaken):
            self.before = 0

    def _pass_time(self, now: int) -> Iterator[tuple[str, str]]:
        passed, self.last = min(LONGEST_STEP, max(0, now - self.last)), now
        self.waiting = {uid: waited + passed for uid, waited in self.waiting.items()}
        for uid in [uid for uid, waited in self.waiting.items() if waited > PLANNED_WITHIN]:
            del self.waiting[uid]
            yield "pods get nodes while clocks differ", f"{uid} waits for over {PLANNED_WITHIN / 1000:g} s, and no pass"

    def _pod(self, pod: Pod) -> None:
        own = pod.owner is not None and pod.owner.kind in (DAEMONSET, NODE_OWNER)
        if own or pod.node or pod.deleting or not pod.unschedulable:
            self._settled(pod.uid)
        elif pod.nominated:  # where the nomination is taken back, the pass that did so has just asked for the pod
            self.waiting.pop(pod.uid, None)
        elif pod.uid not in self.seen:
            self.seen.add(pod.uid)
            if self.in_doubt:
                self.waiting[pod.uid] = 0

    def _settled(self, uid: str) -> None:
        self.seen.discard(uid)
        self.waiting.pop(uid, None)

    def _decided(self, decision: Decision) -> Iterator[tuple[str, str]]:
        if decision.decider == "provision":
            self.waiting.clear()
        elif self.in_doubt and isinstance(decision.result, MoveStepResult) and decision.result.step == "started":
            yield "nothing by the clock while clocks differ", f"{decision.result.move} starts"
