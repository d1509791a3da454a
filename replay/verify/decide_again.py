"""Decide recorded turns again, on a state that is kept as a live runtime keeps it between two turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType

from msgspec import Struct

from kerf.engine.disruption import disruption_pass
from kerf.engine.disruption.drift import detection
from kerf.engine.disruption.forced import forced_disruption
from kerf.engine.disruption.moves import execution
from kerf.engine.errors import KerfError
from kerf.engine.lifecycle import adoption as adopting
from kerf.engine.lifecycle import consistency, static_nodepools
from kerf.engine.lifecycle import launch_to_initialized as advancing
from kerf.engine.lifecycle.drain import draining, nodes_without_claim
from kerf.engine.nodeclaim.aggregate import NodeClaimAggregate
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.entry_types import OBSERVATIONS
from kerf.engine.record.errors import INCONSISTENT, BlobMissing
from kerf.engine.runtime.react import react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import State

DECIDERS: dict[str, ModuleType] = {
    "drift": detection,
    "provision": provisioning,
    "disrupt": forced_disruption,
    "adopt": adopting,
    "lone": nodes_without_claim,
    "moves": disruption_pass,
    "move": execution,
    "advance": advancing,
    "drain": draining,
    "consistency": consistency,
    "static": static_nodepools,
}
"""Decider → the module that has its VERSION."""

VERSIONS: dict[str, int] = {decider: module.VERSION for decider, module in DECIDERS.items()}
"""Decider → its decision version today."""

_OBSERVED = frozenset(t.name for t in OBSERVATIONS)


def is_observed(entry: Entry) -> bool:
    """Whether the entry is an observation. All other entries follow from observations."""
    return entry.type in _OBSERVED


def decide_again(state: State, turn: Sequence[Entry]) -> list[Entry]:
    """Decide one recorded turn again. `state` is the one before the turn, and becomes the one after it.

    Raises what the engine raises: BlobMissing, TransitionRefused (KERF701), UnendingTurn (KERF702). The state is then
    somewhere in between.
    """
    state.facts.epoch = turn[0].epoch
    draft = TurnDraft(state, turn[0].at)
    for entry in turn:
        if is_observed(entry):
            draft.add(entry.payload)
    react(draft)
    return draft.entries


def fold(state: State, turn: Sequence[Entry]) -> list[tuple[Entry, Exception]]:
    """Fold recorded entries as they are. Return those that cannot follow what stands before them, with the errors."""
    refused: list[tuple[Entry, Exception]] = []
    for entry in turn:
        try:
            evolve(state, entry)
        except (KerfError, *INCONSISTENT) as error:
            refused.append((entry, error))
            facts = state.facts
            facts.position, facts.at, facts.streams[entry.stream] = entry.position, entry.at, entry.version
            claim = facts.claims.get(entry.stream.removeprefix("nodeclaim/"))
            if claim is not None:
                claim.version = entry.version
    state.facts.epoch = turn[-1].epoch
    return refused


def copy(state: State) -> State:
    """Return another state with the same facts, settled."""
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    settle(twin)
    return twin


def settle(state: State) -> None:
    """Leave a state that was only folded as a turn would leave it.

    No claim is marked as touched, and for each it is known when to look at it again. What the deciders say on the way
    is thrown away: the record holds what was decided.
    """
    for name in state.facts.claims:
        state.indexes.touched[name] = state.facts.position
    with suppress(BlobMissing):  # who needs it is told so when it is needed
        react(_DiscardedTurn(state, state.facts.at))


class _DiscardedTurn(TurnDraft):
    """A turn of which nothing is kept: neither state nor aggregates move on."""

    def aggregate(self, claim: NodeClaim) -> NodeClaimAggregate:
        return NodeClaimAggregate.restored(claim)

    def add(
        self, payload: Struct, *, cause: int = 0, blobs: Mapping[str, Struct] | None = None, version: int = 0
    ) -> Entry:
        return self.made(payload, cause, version)


def why_unsupported(turn: Sequence[Entry], declared: Callable[[str, int], bool]) -> tuple[str, str] | None:
    """Say why this version cannot decide a turn again, as reason and detail of `UnsupportedTurns`. None if it can.

    `declared` says whether decisions of a decider's older version may be made otherwise today.
    """
    for entry in turn:
        payload = entry.payload
        if isinstance(payload, UnknownEntry):
            return "unknown-entry", f"{payload.type} schema {payload.schema}"
        if isinstance(payload, Decision) and not _decidable(payload, declared):
            return "decision-version", versions_differ(payload.decider, payload.version)
    return None


def _decidable(decision: Decision, declared: Callable[[str, int], bool]) -> bool:
    return decision.version == VERSIONS.get(decision.decider) or declared(decision.decider, decision.version)


def versions_differ(decider: str, version: int) -> str:
    today = VERSIONS.get(decider)
    known = f"today's is {today}" if today is not None else "which is not known today"
    return f"{decider} {version}, {known}"
