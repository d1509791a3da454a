"""A provisioning decision made again with the tracer on: how the types narrowed down, and why these were left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, PlannedClaim, ProvisionResult
from kerf.engine.record.errors import BlobMissing, RecordShortened
from kerf.engine.record.store import Store
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.scheduling.explain.funnel_tracer import ClassFunnel, Funnel, FunnelTracer, PoolAttempt, Refusal
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Candidate, Cut, NearMiss
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.errors import SubjectUnknown

SHOWN = 5
"""So many types are named of those that are left."""


class PoolFunnel(Struct, frozen=True, kw_only=True):
    """One NodePool considered: of `types` each cut ruled some out; `left` remain, of which `cheapest` are the first.
    `reason` is None if a node was opened here, `claim` is its name. `near` are single changes that would let more types
    through."""

    node_pool: str
    claim: str = ""
    types: int
    cuts: tuple[Cut, ...]
    left: int
    cheapest: tuple[Candidate, ...]
    near: tuple[NearMiss, ...]
    reason: Reason | None


class Refused(Struct, frozen=True):
    """So many existing nodes or open claims were refused for this reason; `example` is the first."""

    reason: Reason
    count: int
    example: str


class Placed(Struct, frozen=True, kw_only=True):
    """How one class of equal pods was dealt with by the decision at `decision`. `rules` of topology are each a kind and
    a key.

    `same` says whether today's engine comes to the recorded result; if not, this explains what today's would do.
    `chosen` are the types that the planned node may become, cheapest first, `chosen_types` how many; `gave_up` is what
    the pod asked for besides, and its place does not give.
    """

    decision: int
    version: int
    same: bool
    pods: int
    requests: Resources
    requirements: tuple[str, ...]
    rules: tuple[tuple[str, str], ...] = ()
    refused: tuple[Refused, ...]
    pools: tuple[PoolFunnel, ...]
    chosen: tuple[Candidate, ...]
    chosen_types: int
    reasons: tuple[Reason, ...]
    gave_up: tuple[RelaxedPreference, ...] = ()


class Replan(Struct, frozen=True):
    """A provisioning decision, as recorded and made again with its funnel."""

    position: int
    recorded: Decision
    remade: ProvisionResult
    funnel: Funnel

    @property
    def same(self) -> bool:
        return self.recorded.result == self.remade and self.recorded.version == provisioning.VERSION


def decision_at(store: Store, position: int) -> Decision:
    """Raises SubjectUnknown (KERF203) when something else stands there."""
    for entry in store.scan(position - 1, position):
        if isinstance(entry.payload, Decision):
            return entry.payload
        hint = "kerf log RECORD --all shows the positions of decisions"
        raise SubjectUnknown(f"the entry is no decision but {entry.type}", where=f"position {position}", hint=hint)
    raise SubjectUnknown("there is no such entry", where=f"position {position}", hint="See kerf log RECORD")


def replan(store: Store, position: int) -> Replan:
    """Makes the provisioning decision at `position` again, on the state that it looked at and at its `now`."""
    decision = decision_at(store, position)
    if not isinstance(decision.result, ProvisionResult):
        raise SubjectUnknown(f"the decision is one of {decision.decider!r}", where=f"position {position}")
    state = load(store, decision.looked_at)
    tracer = FunnelTracer(lambda digest: _shape(state, digest))
    outcome = provisioning.provision(state, decision.now, tracer)
    return Replan(position, decision, outcome.result, tracer.funnel)


def _shape(state: State, digest: str) -> PodShape | None:
    """None for one that a search for a cheaper plan has made of another."""
    try:
        return state.ix.blobs.shape(digest)
    except BlobMissing:
        return None


def replan_if_known(store: Store, position: int) -> Replan | None:
    """As `replan`; None for a decision from before the record's base: what it looked at is not known any more."""
    try:
        return replan(store, position)
    except RecordShortened:
        return None


def placed(found: Replan, uid: str) -> Placed | None:
    """How a pod was dealt with; None when the decision made again does not know it."""
    for each in found.funnel.classes:
        if uid in each.unplaced or any(uid in pods for _, pods in each.placed):
            place = next((place for place, pods in each.placed if uid in pods), None)
            return _placed(found, each, place, next((r.gave_up for r in each.relaxed if uid in r.pods), ()))
    return None


def opened(found: Replan, claim: str) -> Placed | None:
    """How a new node came to be: the class of pods for which it was opened; None when it is not in the plan now."""
    names = [planned.name for planned in found.remade.claims]
    if claim not in names:
        return None
    index = found.funnel.claims[names.index(claim)].claim
    users = [each for each in found.funnel.classes if any(place == index for place, _ in each.placed)]
    opener = next((each for each in users if any(look.claim == index for look in each.pools)), None)
    return _placed(found, opener or users[0], index) if users else None


def _placed(
    found: Replan, each: ClassFunnel, place: str | int | None, gave_up: tuple[RelaxedPreference, ...] = ()
) -> Placed:
    left: tuple[Candidate, ...] = ()
    if isinstance(place, int):
        left = next((c.left for c in found.funnel.claims if c.claim == place), ())
    names = {c.claim: made.name for c, made in zip(found.funnel.claims, found.remade.claims, strict=True)}
    return Placed(
        decision=found.position,
        version=found.recorded.version,
        same=found.same,
        pods=sum(len(pods) for _, pods in each.placed) + len(each.unplaced),
        requests=each.requests,
        requirements=each.requirements,
        rules=each.rules,
        refused=_refused([r for r in each.refused if r.place != place], names),
        pools=tuple(_pool(look, names) for look in (*found.funnel.dropped, *_before(each.pools, place))),
        chosen=left[:SHOWN],
        chosen_types=len(left),
        reasons=each.reasons,
        gave_up=gave_up,
    )


def _before(looks: Sequence[PoolAttempt], place: str | int | None) -> list[PoolAttempt]:
    """What was considered until the node at `place` was opened; nodes that the class got besides left out. All, where
    it has no new node."""
    if not isinstance(place, int):
        return list(looks)
    end = next((n for n, look in enumerate(looks) if look.claim == place), None)
    if end is None:  # it was opened for another class
        return [look for look in looks if look.reason is not None]
    return [look for look in looks[:end] if look.reason is not None] + [looks[end]]


def _refused(refused: Sequence[Refusal], names: Mapping[int, str]) -> tuple[Refused, ...]:
    """By reason, most frequent first."""
    counts = Counter(repr(refusal.reason) for refusal in refused)
    first = {repr(refusal.reason): refusal for refusal in reversed(refused)}
    return tuple(
        Refused(first[key].reason, number, _place(first[key].place, names))
        for key, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _place(place: str | int, names: Mapping[int, str]) -> str:
    return place if isinstance(place, str) else f"the new node {names.get(place, place + 1)}"


def _pool(look: PoolAttempt, names: Mapping[int, str]) -> PoolFunnel:
    funnel = look.funnel
    return PoolFunnel(
        node_pool=funnel.node_pool,
        claim=names.get(look.claim, "") if look.claim is not None else "",
        types=funnel.types,
        cuts=funnel.cuts,
        left=len(funnel.left),
        cheapest=funnel.left[:SHOWN],
        near=funnel.near,
        reason=look.reason,
    )


def planned_claim(decision: Decision, claim: str) -> PlannedClaim | None:
    """The claim as the recorded plan has it."""
    result = decision.result
    claims = result.claims if isinstance(result, ProvisionResult) else ()
    return next((each for each in claims if each.name == claim), None)
