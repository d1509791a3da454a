"""What happened to nodes and pods lately: a state says what is, and not that it comes again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, DeletePod, EvictPod
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.engine.record.observations import ControllerDecided, ControllerSaid, EffectAnswered
from kerf.projections.cluster_status.structs import Recent
from kerf.projections.cluster_status.trouble import TroubleFold
from kerf.projections.figures.evictions import EVICTED, FORCED, GONE_ALREADY

VANISHED = "vanished"
_NODES = (ev.Launched, ev.LaunchFailed, ev.LaunchTimedOut, ev.Terminated, ev.InstanceVanished)
_PODS = (Decision, EffectAnswered, ControllerSaid, ev.PodEvicted, ev.PodForced)
READ = frozenset(NAME_OF[kind] for kind in (*_NODES, *_PODS, ControllerDecided))
"""The types of the entries that count."""


def recent_of(entries: Iterable[Entry], since: int, now: int) -> Recent:
    """Count what the entries between two times (ms since the epoch) tell. An instance that vanished is gone, and not
    again when its claim ends."""
    counts: Counter[type[Struct]] = Counter()
    gone: dict[str, str] = {}  # by claim: why
    evictions, trouble = _Evictions(), TroubleFold()
    for entry in entries:
        payload = entry.payload
        trouble.apply(entry)
        if isinstance(payload, ev.InstanceVanished):
            gone[payload.claim] = VANISHED
        elif isinstance(payload, ev.Terminated):
            gone.setdefault(payload.claim, payload.why)
        else:
            counts[type(payload)] += 1
            evictions.apply(entry)
    what = Counter(what for _, what in evictions.counted)
    return Recent(
        since=since,
        launched=counts[ev.Launched],
        failed=counts[ev.LaunchFailed] + counts[ev.LaunchTimedOut],
        gone=dict(sorted(Counter(gone.values()).items())),
        evicted=what[EVICTED],
        forced=what[FORCED],
        trouble=trouble.found(now),
    )


class _Evictions:
    """Counts as `kerf evictions` does: once the API has granted it, and where its answer is not there by the claim's
    event."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, str]] = {}  # by intent
        self.counted: dict[tuple[str, str], None] = {}  # a pod's uid, and what happened to it

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Decision):
            for index, intent in enumerate(payload.intents):
                if isinstance(intent, EvictPod | DeletePod):
                    what = EVICTED if isinstance(intent, EvictPod) else FORCED
                    self._asked[f"{entry.position}.{index}"] = intent.uid, what
        elif isinstance(payload, EffectAnswered):
            asked = self._asked.pop(payload.intent, None)
            if asked is not None and payload.ok and payload.code != GONE_ALREADY:
                self.counted[asked] = None
        elif isinstance(payload, ev.PodEvicted | ev.PodForced):
            self.counted[payload.uid, EVICTED if isinstance(payload, ev.PodEvicted) else FORCED] = None
        elif isinstance(payload, ControllerSaid) and payload.eviction:
            self.counted[payload.uid or payload.pods[0], payload.eviction] = None
