"""The runtime: one synchronous turn takes observations in, records what follows, and gives the new intents out.

It is the only one that appends to the record. No append, no act: when the store fails, the turn is kept, nothing is
handed out, and the same entries are tried again with the next turn.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec
from msgspec.structs import replace

from kerf.engine.errors import KerfError
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepool_hash import VERSION as HASH_VERSION
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.labels import ON_DEMAND
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.aggregate import ClaimAggregates
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import DRAINING, TAINTED
from kerf.engine.record.decisions import (
    Decision,
    DeletePod,
    DisruptResult,
    FindInstance,
    Intent,
    LaunchInstance,
    LifecycleResult,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import EpochRefused, StoreError
from kerf.engine.record.observations import (
    ClocksAgree,
    ClocksDiffer,
    EffectAnswered,
    Imported,
    InstanceSeen,
    InstancesListed,
    Observation,
    OfficeTaken,
    RecordStarted,
    SettingsSeen,
    TaggedInstance,
    TimeSetBack,
)
from kerf.engine.record.store import Append, Store
from kerf.engine.runtime import carry_out
from kerf.engine.runtime.cluster_identity import settings_of_one_cluster
from kerf.engine.runtime.react import next_due, react
from kerf.engine.runtime.timekeeper import TOLERANCE
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state import snapshot
from kerf.engine.state.load import Progress, load
from kerf.engine.state.nodeclaims import adoption
from kerf.engine.state.nodeclaims.consistency import CONSISTENCY
from kerf.engine.state.nodeclaims.drift import reservation_in_question
from kerf.engine.state.state import Facts, State

SNAPSHOT_EVERY = 20_000  # entries
SNAPSHOT_DAILY = 1_000
"""So many entries are enough for one a day: retention cuts at snapshots, in a small cluster too."""
_DAY = 24 * 60 * 60 * 1000  # ms
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Runtime:
    """`state` is the fold of everything appended, and of the turn that waits to be (if any)."""

    def __init__(
        self,
        store: Store,
        *,
        holder: str,
        settings: Settings,
        record: str,
        engine: str,
        now: int,
        clocks: ClocksDiffer | None = None,
        epoch: int = 0,
        progress: Progress | None = None,
        imported: Imported | None = None,
    ) -> None:
        """Takes office: starts the record if it is empty (`record` is its random id), and fences older writers. A long
        record takes its time to be read: `progress` is told the position reached, and what it raises ends the reading.

        `now` is what the clocks say. If they do not agree (`clocks`), it is what the API server says, and a record goes
        on as `_believed` says. `epoch` is the Lease's transitions, where there is one. `imported` marks a new record
        as partial. Raises StoreError, and InputError (KERF345) when the record is of another cluster than `settings`
        says: nothing is appended then.
        """
        self.store = store
        self.state = load(store, progress=progress)
        self._aggregates = ClaimAggregates()
        self.error: KerfError | None = None
        self.new_entries: tuple[Entry, ...] = ()
        self._waiting: Append | None = None
        self._failed: KerfError | None = None
        self._backlog: list[Observation] = []
        self._held: list[tuple[str, Intent]] = []
        self._snapshot_at = latest[0] if (latest := store.snapshot(None, snapshot.SCHEMA)) is not None else 0
        self._snapshot_time = 0  # of this process: one that starts keeps one soon
        self._office = max(store.epoch(), epoch) + 1
        self._open(holder, settings, RecordStarted(record, engine, imported), now, clocks)

    def _open(
        self, holder: str, settings: Settings, beginning: RecordStarted, now: int, clocks: ClocksDiffer | None
    ) -> None:
        facts = self.state.facts
        settings = settings_of_one_cluster(facts.settings, settings)
        self.fresh = started = not facts.position
        now = now if clocks is None or started else _believed(facts.at, now, clocks)
        too_early = _forced_too_early(facts, now)
        asked = [(ref, asked.intent) for ref, asked in sorted(facts.intents.items()) if ref not in too_early]
        self._unanswered = [(ref, _to_reconcile(intent, self.state)) for ref, intent in asked]
        facts.epoch = self._office  # the entries of this turn are the first that carry it
        told = _told_of_clocks(facts, clocks, now)
        draft = self._draft(now)
        if started:
            draft.add(beginning)
        draft.add(OfficeTaken(self._office, holder))
        if told is not None:
            draft.add(told)
        for ref in too_early:
            draft.add(EffectAnswered(ref, ok=False, message="decided by a clock that was ahead"))
        if started or facts.settings != settings:
            draft.add(SettingsSeen(settings))
        react(draft)
        self.store.append(self._append(draft))
        self.new_entries = tuple(draft.entries)
        self._held = _intents(draft.entries)

    @property
    def ready(self) -> bool:
        """Whether kerf may act: the latest turn is stored, and no turn has failed."""
        return self._waiting is None and self._failed is None

    @property
    def record(self) -> str:
        return self.state.facts.record

    def turn(self, observations: Sequence[Observation], now: int) -> list[tuple[str, Intent]]:
        """Records the observations and all that follows from them at `now`, durably, in one transaction.

        Returns the intents that may be carried out now, as ("position.index", intent), in order. While the store fails
        that is nothing: the turn and all further observations are kept and tried again with the next call. Raises
        EpochRefused (KERF103) when another writer has taken office, and what the engine raises when it finds itself at
        fault (KERF7xx): this process must end, and a new one start from the record.
        """
        if self._failed is not None:
            raise self._failed
        self._backlog.extend(observations)
        self.new_entries = ()
        if self._waiting is not None and not self._stored():
            return []
        draft = self._drafted(now)
        self._held += _intents(draft.entries)
        if draft.entries:
            self._waiting = self._append(draft)
            if not self._stored():
                return []
        released, self._held = self._held, []
        return released

    def _drafted(self, now: int) -> TurnDraft:
        """The turn over what has come in. An error in between leaves the state half moved: nothing may build on it."""
        draft = self._draft(now)
        try:
            for observation in self._backlog:
                draft.add(observation.payload, blobs=observation.blobs)
            react(draft)
        except KerfError as error:
            self.error = self._failed = error
            raise
        self._backlog.clear()
        return draft

    def _draft(self, now: int) -> TurnDraft:
        """A turn at `now`. A record that is ahead of that by more than clocks may differ is set back, and says so; one
        that is ahead by less waits for the clock."""
        at = self.state.facts.at
        if now >= at - TOLERANCE:
            return TurnDraft(self.state, max(now, at), self._aggregates)
        draft = TurnDraft(self.state, now, self._aggregates)
        draft.add(TimeSetBack(at))
        return draft

    def _stored(self) -> bool:
        """Tries to append the turn that waits."""
        assert self._waiting is not None
        try:
            self.store.append(self._waiting)
        except EpochRefused as error:
            self.error = error
            raise
        except StoreError as error:
            self.error = error
            return False
        self.new_entries += self._waiting.entries
        self._waiting, self.error = None, None
        self._trim()
        self._keep_snapshot()
        return True

    def _trim(self) -> None:
        facts, blobs = self.state.facts, self.state.indexes.blobs
        if blobs.many:
            blobs.trim({pod.shape for pod in facts.pods.values()}, {*facts.catalogues.values()})

    def next_due(self) -> int | None:
        """When a turn is needed although nothing is seen (ms since the epoch)."""
        return next_due(self.state) or None

    def unanswered(self) -> list[tuple[str, Intent]]:
        """The intents that an earlier process left without an outcome: to be reconciled before anything else."""
        return self._unanswered

    def watched_instances(self) -> list[str]:
        """Instances that are being ended and not gone yet."""
        going = (c for c in self.state.facts.claims.values() if c.state in (TAINTED, DRAINING))
        return sorted(c.instance for c in going if (e := c.effect("terminate")) is not None and e.ok)

    def instances_in_question(self) -> list[str]:
        """Instances of which the cloud has to say whether they still run on their capacity reservation (A-338)."""
        facts = self.state.facts
        return sorted(c.instance for c in facts.claims.values() if reservation_in_question(facts, c))

    def is_news(self, claim: NodeClaimObject) -> bool:
        """Whether an object of the watch is to be given to a turn: of kerf's own claims only a deletion is. That of one
        which drains is kerf's own, or changes nothing any more (L-188)."""
        known = self.state.facts.claims.get(claim.name)
        drains = known is not None and known.state == DRAINING and not self.state.facts.settings.observe
        return not drains and adoption.is_news(self.state, claim)

    def listed(self, instances: Sequence[TaggedInstance] | None) -> list[Observation]:
        """Compare a listing of the cloud with the record: one observation for the next turn, or none if they agree.

        Call it only after a turn has had all NodeClaim objects, because instances without a claim are ended.
        """
        found = adoption.difference(self.state, instances) if instances is not None else None
        return [Observation(found)] if found is not None else []

    def moved(self) -> dict[str, NodeClaim | None]:
        """The claims that the latest turn has an event of, a verdict on drift or consistency, or made a hash anew of
        (D-128), as they are now; None for one that is over."""
        claims = self.state.facts.claims
        found: dict[str, NodeClaim | None] = {}
        for entry in self.new_entries:
            if entry.stream.startswith("nodeclaim/"):
                found[entry.payload.claim] = claims.get(entry.payload.claim)
            result = entry.payload.result if isinstance(entry.payload, Decision) else None
            if isinstance(result, DisruptResult):
                found |= {verdict.claim: claims.get(verdict.claim) for verdict in result.verdicts}
            elif isinstance(result, LifecycleResult) and entry.payload.decider == CONSISTENCY:
                found[result.claim] = claims.get(result.claim)
            elif isinstance(entry.payload, InstancesListed):
                of = self.state.indexes.claim_by_instance
                found |= {
                    of[instance]: claims.get(of[instance]) for instance in entry.payload.demoted if instance in of
                }
            elif isinstance(entry.payload, InstanceSeen) and entry.payload.capacity_type == ON_DEMAND:
                of = self.state.indexes.claim_by_instance
                found |= {name: claims.get(name) for name in filter(None, [of.get(entry.payload.instance)])}
            elif isinstance(entry.payload, NodePool) and entry.payload.hash_version != HASH_VERSION:
                found |= {c.name: c for c in claims.values() if c.node_pool == entry.payload.name}
        return found

    def token(self, ref: str) -> str:
        """The idempotency key of an intent that has no outcome yet."""
        intent = self.state.facts.intents[ref].intent
        return carry_out.token(self.record, carry_out.token_ref(ref, intent))

    def _append(self, draft: TurnDraft) -> Append:
        return Append(tuple(draft.entries), {digest: _encode(value) for digest, value in draft.blobs.items()})

    def _keep_snapshot(self) -> None:
        """A snapshot that cannot be kept is no harm: the state is the fold."""
        position, at = self.state.facts.position, self.state.facts.at
        enough = min(SNAPSHOT_DAILY, SNAPSHOT_EVERY) if at - self._snapshot_time >= _DAY else SNAPSHOT_EVERY
        if position - self._snapshot_at < enough:
            return
        self._snapshot_at, self._snapshot_time = position, at
        data, digest = snapshot.encode(self.state)
        try:
            self.store.put_snapshot(position, snapshot.SCHEMA, data, digest)
        except StoreError as error:
            self.error = error


def as_asked(seen: InstanceSeen, in_question: Container[str]) -> InstanceSeen:
    """The answer of the cloud as it is recorded. What an instance runs as counts where that was in question before the
    cloud was asked: an earlier answer may be of a time before its reservation ended (A-338)."""
    return seen if seen.instance in in_question else replace(seen, capacity_type="")


def _to_reconcile(intent: Intent, state: State) -> Intent:
    """A launch of a claim that is over is looked for, never repeated."""
    if isinstance(intent, LaunchInstance) and intent.claim not in state.facts.claims:
        return FindInstance(intent.claim, intent)
    return intent


def _forced_too_early(facts: Facts, now: int) -> list[str]:
    """The intents of pods that were to go by force, at a time which is set back: their node's deadline is not near."""
    ahead = now + TOLERANCE
    return [
        ref for ref, asked in sorted(facts.intents.items()) if isinstance(asked.intent, DeletePod) and asked.at > ahead
    ]


def _told_of_clocks(facts: Facts, clocks: ClocksDiffer | None, now: int) -> ClocksDiffer | ClocksAgree | None:
    """What a process that begins at `now` tells of its clocks. A record whose clocks differed may have been behind by
    all the time from its latest entry on: nothing tells that from time in which nobody wrote."""
    since, moved = facts.clocks_differ, max(0, now - facts.at)
    if not since:
        return clocks
    return ClocksAgree(moved, since if moved else 0) if clocks is None else replace(clocks, moved=moved)


def _believed(record: int, server: int, clocks: ClocksDiffer) -> int:
    """The time to begin with while clocks differ: of record, API server and wall clock the one in the middle.
    So none is believed against the two others.

    If that is the record's, nobody wrote for a while. The later clock is right about that where it is the nearer one
    (ADR 9)."""
    earliest, middle, latest = sorted((record, server, server + clocks.skew))
    return latest if middle == record and latest - record < record - earliest else middle


def _intents(entries: Sequence[Entry]) -> list[tuple[str, Intent]]:
    return [
        (f"{entry.position}.{index}", intent)
        for entry in entries
        if isinstance(entry.payload, Decision)
        for index, intent in enumerate(entry.payload.intents)
    ]
