"""Sum up the state at a position of a record: what `kerf at` shows."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_health import UNHEALTHY
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state import snapshot
from kerf.engine.state.nodeclaims.unavailable import avoided
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import State
from kerf.projections.cluster_status.cluster_status import pods_by_phase
from kerf.projections.status.nodepool import DEPENDENTS, nodepool_status


class ClaimLine(Struct, frozen=True, kw_only=True):
    """One NodeClaim in one line. `age` in ms since it was requested; `pods` are bound to its node."""

    name: str
    state: str
    node_pool: str
    node: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float
    age: int
    pods: int
    why: str
    verdict: str


class PoolLine(Struct, frozen=True, kw_only=True):
    """One NodePool in one line.

    `wrong` says why it is not ready, `registration` why nodes do not register; both are empty when all is well.
    `drifted` counts its drifted NodeClaims.
    """

    name: str
    nodes: int
    drifted: int
    ready: bool
    wrong: tuple[str, ...]
    registration: str


class InFlight(Struct, frozen=True):
    """An effect that has no outcome yet."""

    ref: str
    effect: str
    claim: str
    age: int


class StateSummary(Struct, frozen=True, kw_only=True):
    """The state at a position.

    `window_closes` is when the open provisioning window closes (ms since the epoch), 0 when none is open; `unavailable`
    maps what is avoided (see `avoided`) to the time until which it is. `lacks`: what an imported record does
    not know (codes of `Missing`).
    """

    position: int
    at: int
    record: str
    epoch: int
    digest: str
    claims: tuple[ClaimLine, ...]
    claim_states: dict[str, int]
    price: float
    nodes: int
    unmanaged_nodes: int
    pods: dict[str, int]
    node_pools: tuple[str, ...]
    pools: tuple[PoolLine, ...]
    window_closes: int
    without_place: bool
    unavailable: dict[str, int]
    in_flight: tuple[InFlight, ...]
    orphans: tuple[str, ...]
    unknown_entries: int
    lacks: tuple[str, ...] = ()


def summarize(state: State, now: int = 0) -> StateSummary:
    """Sum up a state in structs, for people and for JSON: ages are those at the time `now`, at the earliest that of the
    last entry."""
    now = max(now, state.facts.at)
    facts, indexes = state.facts, state.indexes
    claims = [facts.claims[name] for name in sorted(facts.claims)]
    running = [claim for claim in claims if claim.launched]
    return StateSummary(
        position=facts.position,
        at=now,
        record=facts.record,
        epoch=facts.epoch,
        digest=snapshot.digest(state),
        claims=tuple(_claim_line(claim, state, now) for claim in claims),
        claim_states=dict(sorted(Counter(claim.state for claim in claims).items())),
        price=round(sum(claim.price for claim in running), 6),
        nodes=len(facts.nodes),
        unmanaged_nodes=sum(name not in indexes.claim_by_node for name in facts.nodes),
        pods=pods_by_phase(state),
        node_pools=tuple(sorted(facts.pools)),
        pools=tuple(_pool_line(state, name) for name in sorted(facts.pools)),
        window_closes=window_closes_at(facts) if facts.batch_opened else 0,
        without_place=facts.unplaced,
        unavailable=avoided(facts, now),
        in_flight=tuple(
            InFlight(ref, type(asked.intent).__struct_config__.tag, asked.intent.claim, now - asked.at)  # type: ignore[arg-type]
            for ref, asked in sorted(facts.intents.items(), key=lambda item: (item[1].at, item[0]))
        ),
        orphans=tuple(sorted(facts.orphans)),
        unknown_entries=facts.unknown,
        lacks=facts.imported.lacks if facts.imported is not None else (),
    )


def _claim_line(claim: NodeClaim, state: State, now: int) -> ClaimLine:
    return ClaimLine(
        name=claim.name,
        state=claim.state,
        node_pool=claim.node_pool,
        node=claim.node,
        instance_type=claim.instance_type,
        zone=claim.zone,
        capacity_type=claim.capacity_type,
        price=claim.price if claim.launched else 0.0,
        age=now - claim.created,
        pods=len(state.indexes.pods_by_node.get(claim.node, {})),
        why=claim.why,
        verdict=claim.verdict,
    )


def _pool_line(state: State, name: str) -> PoolLine:
    status = nodepool_status(state, name)
    claims = [claim for claim in state.facts.claims.values() if claim.node_pool == name]
    registration = status.condition("NodeRegistrationHealthy")
    return PoolLine(
        name=name,
        nodes=status.nodes,
        drifted=sum(bool(claim.drifted_since) for claim in claims),
        ready=status.ready,
        wrong=tuple(_condition_text(c) for c in status.conditions if c.type in DEPENDENTS and c.status != "True"),
        registration=_condition_text(registration) if registration.status == UNHEALTHY else "",
    )


def _condition_text(condition: Condition) -> str:
    return f"{condition.reason}: {condition.message}" if condition.message else condition.reason
