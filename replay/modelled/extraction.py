"""Take the workload out of a record: fold the part that is asked for, and keep what kerf did not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model import labels as names
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.model.settings import Settings
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import (
    CatalogueSeen,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    ObjectGone,
    Observation,
    SettingsSeen,
)
from kerf.engine.record.store import Store
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.errors import ChangeRefused, NotModelled
from kerf.replay.modelled.arrivals import arrivals
from kerf.replay.modelled.capacity import Refusals
from kerf.replay.modelled.pace import PaceFold
from kerf.replay.modelled.pod_lives import PodLives
from kerf.replay.modelled.strikes import Strikes
from kerf.replay.modelled.workload import Asked, Comes, Gone, Put, Sells, Step, Timed, Workload
from kerf.replay.partial_records import require
from kerf.replay.what_if.changes import Applied, Change
from kerf.replay.what_if.next_decision import about, changed_state

_MADE_IN_THE_MODEL = ("pod", "node", "nodeclaim", "pv", "csinode", "volumeattachment", "resourceslice", "resourceclaim")
"""Kinds whose objects the model's own controllers make."""
_REPEATED = {kind.struct: kind.name for kind in WATCHED if kind.name not in _MADE_IN_THE_MODEL}
_REPEATED_KINDS = frozenset((*_REPEATED.values(), "nodeclass"))
_NEEDED = (Missing.PODS, Missing.NODES, Missing.POLICY, Missing.CATALOGUE)
_SIMULATED_INSTEAD = (
    "kerf import FILE --timeline makes of its workloads a file that kerf simulate runs under NodePools of yours"
)
Progress = Callable[[int], None]


class Window(Struct, frozen=True):
    """The part that is modelled: from `since`, after the entry at `position`, to `until` at `last`. Times are ms since
    the epoch."""

    position: int
    since: int
    last: int
    until: int


def first_listed(store: Store) -> int:
    """Return the position at which a record first knows what there is: its base, or the end of the first turn that
    lists objects. Raises StoreError."""
    base = store.base()
    if base is not None:
        return base.position
    turns, listed, position = 0, 0, 0
    for entry in store.scan():
        if listed and entry.turn != listed:
            return position
        turns += entry.turn != (listed or entry.turn)
        if not listed and (type(entry.payload) in _REPEATED or isinstance(entry.payload, Node | Pod)):
            listed = entry.turn
        position = entry.position
    return position


def workload_of_record(
    store: Store, window: Window, changes: Sequence[Change] = (), progress: Progress | None = None
) -> Workload:
    """Return what the model is to run, with the changes at its beginning.

    Raises ChangeRefused (KERF208), PartialRecord (KERF211), RecordShortened (KERF118), NotModelled (KERF213) for what
    cannot be modelled, and StoreError.
    """
    start, state = load(store, window.position), load(store, window.position)
    for missing in _NEEDED:
        require(start.facts.imported, missing, "what a model would do", _SIMULATED_INSTEAD)
    _require_what_is_needed(start)
    _, applied = changed_state(store, window.position, changes, now=window.since)
    fold = _Fold(store, start, window, changes, applied)
    for entry in store.scan(window.position, window.last):
        fold.apply(entry, state)
        evolve(state, entry)
        fold.after(entry, state)
        if progress is not None:
            progress(entry.position)
    return fold.workload()


def _require_what_is_needed(start: State) -> None:
    facts = start.facts
    if not facts.pools or not facts.catalogues:
        what = "NodePool" if not facts.pools else "catalogue of instance types"
        hint = "Begin later, with --from" if facts.imported is None else "docs/import.md says which format tells what"
        raise NotModelled(f"the record has no {what} at the beginning", hint=hint)


def _refuse_made_claims(shapes: dict[str, PodShape], settings: Settings) -> None:
    """A record has the ResourceClaims that were made for pods, and not the templates that they were made of."""
    made = any("@" in claim for shape in shapes.values() for claim in shape.resource_claims)
    if made and not settings.ignore_dra_requests:
        raise NotModelled("pods ask for devices by ResourceClaimTemplates, which are not in the record",
                          hint="Model a part without them, with --from and --until")  # fmt: skip


class _Fold:
    def __init__(
        self, store: Store, start: State, window: Window, changes: Sequence[Change], applied: Sequence[Applied]
    ) -> None:
        self._store, self._start, self._window = store, start, window
        self._changes, self._applied = changes, applied
        self._lives = PodLives(start, window.since)
        self._strikes, self._refusals, self._pace = Strikes(), Refusals(), PaceFold()
        self._steps: list[Timed] = []
        observations = [observation for found in applied for observation in found.observations]
        self._changed = {key for observation in observations if (key := about(observation.payload)) != ("", "")}
        self._left_out: Counter[str] = Counter()

    def apply(self, entry: Entry, before: State) -> None:
        payload, at = entry.payload, entry.at
        self._lives.apply(payload, at, before)
        self._strikes.apply(payload, at, before)
        self._refusals.apply(payload, at)
        self._pace.apply(payload, at, entry.position, before)
        step = self._step(payload, before)
        if step is not None:
            self._steps.append(Timed(at, step, changed=False if about(payload) in self._changed else None))
        if isinstance(payload, SettingsSeen) and payload.settings != self._start.facts.settings:
            self._left_out["later changes of the controller's settings"] += 1

    def after(self, entry: Entry, state: State) -> None:
        """What was changed at the beginning stays changed when the record changes it, too."""
        if isinstance(entry.payload, CatalogueSeen) or type(entry.payload) in _REPEATED:
            key = about(entry.payload)
            if key in self._changed:
                for observation in _made_again(self._changes, state):
                    if about(observation.payload) == key:
                        self._steps += [Timed(entry.at, step, changed=True) for step in _steps_of(observation)]

    def workload(self) -> Workload:
        window, start = self._window, self._start
        settings = replace(start.facts.settings, observe=False)
        deletions = [applied.takes for applied in self._applied if applied.takes is not None]
        found = arrivals(self._lives, window.since, window.until, deletions)
        steps = [
            *self._change_steps(),
            *self._steps,
            *found.steps,
            *self._strikes.steps(),
            *self._refusals.steps(window.since, settings.unavailable_for),
        ]
        inside = [timed for timed in steps if window.since <= timed.at <= window.until]
        inside.sort(key=lambda timed: timed.at)
        pods = [pod for group in found.groups for pod in group.pods]
        pods += [timed.step.pod for timed in inside if isinstance(timed.step, Comes)]
        blobs = start.indexes.blobs
        shapes = {pod.shape: blobs.shape(pod.shape) for pod in pods}
        _refuse_made_claims(shapes, settings)
        self._left_out.update(found.left_out)
        if self._refusals.unnamed:
            self._left_out["refusals of capacity that name no offering"] += self._refusals.unnamed
        return Workload(
            start=start,
            since=window.since,
            until=window.until,
            position=window.position,
            steps=tuple(inside),
            groups=found.groups,
            shapes=shapes | self._new_shapes(),
            pace=self._pace.pace(),
            settings=settings,
            changed_settings=self._changed_settings(settings),
            held=found.held,
            changes=tuple(applied.said for applied in self._applied),
            left_out=dict(sorted(self._left_out.items())),
        )

    def _step(self, payload: Struct, before: State) -> Step | None:
        """What an observation is as a step; None for what the model does by itself."""
        if isinstance(payload, CatalogueSeen):
            return Sells(payload.node_class, payload.digest)
        if isinstance(payload, PodDisruptionBudget) and _is_status(payload, before.facts.pdbs.get(payload.uid)):
            return None
        if isinstance(payload, NodeClassSeen) or type(payload) in _REPEATED:
            return Put(Observation(payload))
        if isinstance(payload, Node):
            return Put(Observation(payload)) if not is_karpenters(payload, before) else None
        if not isinstance(payload, ObjectGone):
            return None
        if payload.kind in _REPEATED_KINDS:
            return Gone(payload.kind, payload.key)
        node = before.facts.nodes.get(payload.key) if payload.kind == "node" else None
        return Gone("node", payload.key) if node is not None and not is_karpenters(node, before) else None

    def _change_steps(self) -> Iterator[Timed]:
        for applied in self._applied:
            gone = any(_is_gone(observation.payload, "node") for observation in applied.observations)
            for observation in applied.observations:
                if gone and (isinstance(observation.payload, Pod) or _is_gone(observation.payload, "pod")):
                    continue  # the model's own controllers see to the pods of a node that is gone
                for step in _steps_of(observation):
                    yield Timed(self._window.since, step, changed=True)

    def _changed_settings(self, settings: Settings) -> Settings:
        for applied in self._applied:
            for observation in applied.observations:
                if isinstance(observation.payload, SettingsSeen):
                    settings = replace(observation.payload.settings, observe=False)
        return settings

    def _new_shapes(self) -> dict[str, PodShape]:
        return {
            digest: blob
            for applied in self._applied
            for observation in applied.observations
            for digest, blob in observation.blobs.items()
            if isinstance(blob, PodShape)
        }


def _steps_of(observation: Observation) -> Iterator[Step]:
    payload = observation.payload
    if isinstance(payload, SettingsSeen):
        return
    if isinstance(payload, CatalogueSeen):
        catalogue = observation.blobs[payload.digest]
        assert isinstance(catalogue, Catalogue)
        yield Sells(payload.node_class, payload.digest, catalogue)
    elif isinstance(payload, NodeClaimDeletionSeen):
        yield Asked(payload.claim, payload.actor)
    elif isinstance(payload, ObjectGone):
        yield Gone(payload.kind, payload.key)
    elif isinstance(payload, Pod):
        yield Comes(slot=payload.uid, pod=payload, again=payload.owner is not None)
    elif not (isinstance(payload, Node) and payload.deleting):
        yield Put(observation)


def _made_again(changes: Iterable[Change], state: State) -> list[Observation]:
    """Make the changes on what the record has now. One that does not apply any more is left."""
    facts = replace(state.facts, pools=dict(state.facts.pools), catalogues=dict(state.facts.catalogues))
    scratch = State(facts, state.indexes.blobs)
    found: list[Observation] = []
    for change in changes:
        try:
            observations = change(scratch).observations
        except ChangeRefused:
            continue
        for observation in observations:
            payload = observation.payload
            if isinstance(payload, CatalogueSeen):
                scratch.indexes.blobs.offer(payload.digest, observation.blobs[payload.digest])
                facts.catalogues[payload.node_class] = payload.digest
            elif isinstance(payload, NodePool):
                facts.pools[payload.name] = payload
        found += observations
    return found


def _is_status(seen: PodDisruptionBudget, known: PodDisruptionBudget | None) -> bool:
    """Whether only that is new which the model's own controller says."""
    return known is not None and seen == replace(
        known, disruptions_allowed=seen.disruptions_allowed, expected_pods=seen.expected_pods,
        desired_healthy=seen.desired_healthy,
    )  # fmt: skip


def _is_gone(payload: Struct, kind: str) -> bool:
    return isinstance(payload, ObjectGone) and payload.kind == kind


def is_karpenters(node: Node, state: State) -> bool:
    """Return whether a node is one of a NodeClaim, which the model launches itself."""
    known = node.provider_id in state.indexes.claim_by_provider or node.name in state.indexes.claim_by_node
    return known or names.NODEPOOL in node.labels or any(t.key == names.UNREGISTERED_TAINT for t in node.taints)
