"""Decide a recorded provisioning pass again with the tracer on, to show how the instance types narrowed down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.errors import BlobMissing, RecordShortened
from kerf.engine.record.store import Store
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.scheduling.explain.funnel_tracer import ClassFunnel, Funnel, FunnelTracer, PoolAttempt, Refusal
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss, PricedType
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.errors import SubjectUnknown
from kerf.replay.record_names.named_entries import NamedEntries

MAX_TYPES_SHOWN = 5
"""At most this many of the remaining instance types are named."""


class PoolFunnel(Struct, frozen=True, kw_only=True):
    """One NodePool that was considered.

    Of its `types`, each of `cuts` ruled some out. `left` counts those that remain, `cheapest` are the first of these.
    `near` are single changes that would let more types through. If a node was opened here, `claim` is its name and
    `reason` is None. NodePools of more `weight` are asked first (S-63).
    """

    node_pool: str
    claim: str = ""
    types: int
    cuts: tuple[Cut, ...]
    left: int
    cheapest: tuple[PricedType, ...]
    near: tuple[NearMiss, ...]
    reason: Reason | None
    weight: int = 0


class RefusalCount(Struct, frozen=True):
    """`count` existing nodes or open claims were refused for `reason`; `example` is the first of them."""

    reason: Reason
    count: int
    example: str


class PlacementExplanation(Struct, frozen=True, kw_only=True):
    """How the decision at position `decision` placed one class of equal pods.

    `same`: whether today's engine comes to the recorded result; if not, this explains what today's engine would do.
    `rules` are the topology rules, each a kind and a key. `chosen` are the first types that the planned node may
    become, cheapest first; `chosen_types` counts all of them. `gave_up` are preferences of the pod that its place does
    not meet.
    """

    decision: int
    version: int
    same: bool
    pods: int
    requests: Resources
    requirements: tuple[str, ...]
    rules: tuple[tuple[str, str], ...] = ()
    refused: tuple[RefusalCount, ...]
    pools: tuple[PoolFunnel, ...]
    chosen: tuple[PricedType, ...]
    chosen_types: int
    reasons: tuple[Reason, ...]
    gave_up: tuple[RelaxedPreference, ...] = ()


class KindAsked(Struct, frozen=True, kw_only=True):
    """What each of `pods`, which are equal, asks for. `rules` as in PlacementExplanation."""

    pods: tuple[str, ...]
    requests: Resources
    requirements: tuple[str, ...]
    rules: tuple[tuple[str, str], ...] = ()


class Replan(Struct, frozen=True):
    """A provisioning decision: as recorded, and as today's engine decides it, with its funnel."""

    position: int
    recorded: Decision
    remade: ProvisionResult
    funnel: Funnel

    @property
    def same(self) -> bool:
        return self.recorded.result == self.remade and self.recorded.version == provisioning.VERSION


def decision_at(store: Store, position: int) -> Decision:
    """Return the decision at a position. Raises SubjectUnknown (KERF203) when something else stands there."""
    for entry in store.scan(position - 1, position):
        if isinstance(entry.payload, Decision):
            return entry.payload
        hint = "kerf log RECORD --all shows the positions of decisions"
        raise SubjectUnknown(f"the entry is no decision but {entry.type}", where=f"position {position}", hint=hint)
    raise SubjectUnknown("there is no such entry", where=f"position {position}", hint="See kerf log RECORD")


def replan(store: Store, position: int) -> Replan:
    """Decide the provisioning pass at `position` again, on the state that it looked at and at its `now`."""
    decision = decision_at(store, position)
    if not isinstance(decision.result, ProvisionResult):
        raise SubjectUnknown(f"the decision is one of {decision.decider!r}", where=f"position {position}")
    state = load(store, decision.looked_at)
    tracer = FunnelTracer(lambda digest: _shape(state, digest))
    outcome = provisioning.provision(state, decision.now, tracer)
    return Replan(position, decision, outcome.result, tracer.funnel)


def _shape(state: State, digest: str) -> PodShape | None:
    """Return a shape of the record, or None for one that the optimizer derived while it searched."""
    try:
        return state.indexes.blobs.shape(digest)
    except BlobMissing:
        return None


def replan_if_known(store: Store, position: int, named: NamedEntries | None = None) -> Replan | None:
    """Do as `replan`, but return None for a decision from before the record's base, whose state is not known any
    more. It is kept with `named`."""
    try:
        if named is None:
            return replan(store, position)
        return named.kept(("replan", position), partial(replan, store, position))
    except RecordShortened:
        return None


def kinds_among(replan: Replan, uids: Sequence[str]) -> tuple[KindAsked, ...]:
    """Return the kinds of the pods, in the plan's order; their `pods` are uids. Pods that the decision, made again,
    does not know, are left out."""
    found = list[KindAsked]()
    for pod_class in replan.funnel.classes:
        known = {*pod_class.unplaced, *(uid for _, pods in pod_class.placed for uid in pods)}
        own = tuple(uid for uid in uids if uid in known)
        if own:
            asked = KindAsked(
                pods=own,
                requests=pod_class.requests,
                requirements=pod_class.requirements,
                rules=pod_class.rules,
            )
            found.append(asked)
    return tuple(found)


def explain_placement(replan: Replan, uid: str) -> PlacementExplanation | None:
    """Explain how a pod was placed. Return None if the decision, made again, does not know the pod."""
    for pod_class in replan.funnel.classes:
        if uid in pod_class.unplaced or any(uid in pods for _, pods in pod_class.placed):
            place = next((place for place, pods in pod_class.placed if uid in pods), None)
            return _placement(
                replan, pod_class, place, next((r.gave_up for r in pod_class.relaxed if uid in r.pods), ())
            )
    return None


def explain_new_node(replan: Replan, claim: str) -> PlacementExplanation | None:
    """Explain why a new node was opened, by the class of pods that opened it. Return None if it is not in the plan
    now."""
    names = [planned.name for planned in replan.remade.claims]
    if claim not in names:
        return None
    index = replan.funnel.claims[names.index(claim)].claim
    users = [pod_class for pod_class in replan.funnel.classes if any(place == index for place, _ in pod_class.placed)]
    opener = next((pod_class for pod_class in users if any(look.claim == index for look in pod_class.pools)), None)
    return _placement(replan, opener or users[0], index) if users else None


def _placement(
    replan: Replan, pod_class: ClassFunnel, place: str | int | None, gave_up: tuple[RelaxedPreference, ...] = ()
) -> PlacementExplanation:
    left: tuple[PricedType, ...] = ()
    if isinstance(place, int):
        left = next((c.left for c in replan.funnel.claims if c.claim == place), ())
    names = {c.claim: made.name for c, made in zip(replan.funnel.claims, replan.remade.claims, strict=True)}
    return PlacementExplanation(
        decision=replan.position,
        version=replan.recorded.version,
        same=replan.same,
        pods=sum(len(pods) for _, pods in pod_class.placed) + len(pod_class.unplaced),
        requests=pod_class.requests,
        requirements=pod_class.requirements,
        rules=pod_class.rules,
        refused=_refusal_counts([r for r in pod_class.refused if r.place != place], names),
        pools=tuple(
            _pool_funnel(look, names) for look in (*replan.funnel.dropped, *_looks_before(pod_class.pools, place))
        ),
        chosen=left[:MAX_TYPES_SHOWN],
        chosen_types=len(left),
        reasons=pod_class.reasons,
        gave_up=gave_up,
    )


def _looks_before(looks: Sequence[PoolAttempt], place: str | int | None) -> list[PoolAttempt]:
    """Return what was considered until the node at `place` was opened, without the other nodes that the class opened.
    Return all where the class opened no node."""
    if not isinstance(place, int):
        return list(looks)
    end = next((n for n, look in enumerate(looks) if look.claim == place), None)
    if end is None:  # it was opened for another class
        return [look for look in looks if look.reason is not None]
    return [look for look in looks[:end] if look.reason is not None] + [looks[end]]


def _refusal_counts(refused: Sequence[Refusal], names: Mapping[int, str]) -> tuple[RefusalCount, ...]:
    """Count the refusals by reason, most frequent first."""
    counts = Counter(repr(refusal.reason) for refusal in refused)
    first = {repr(refusal.reason): refusal for refusal in reversed(refused)}
    return tuple(
        RefusalCount(first[key].reason, number, _place_name(first[key].place, names))
        for key, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _place_name(place: str | int, names: Mapping[int, str]) -> str:
    return place if isinstance(place, str) else f"the new node {names.get(place, place + 1)}"


def _pool_funnel(look: PoolAttempt, names: Mapping[int, str]) -> PoolFunnel:
    funnel = look.funnel
    return PoolFunnel(
        node_pool=funnel.node_pool,
        claim=names.get(look.claim, "") if look.claim is not None else "",
        types=funnel.types,
        cuts=funnel.cuts,
        left=len(funnel.left),
        cheapest=funnel.left[:MAX_TYPES_SHOWN],
        near=funnel.near,
        reason=look.reason,
        weight=funnel.weight,
    )
