"""Time travel: where a position or a time is in the record, and what the state was there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_health import UNHEALTHY
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.engine.state.provisioning_window import closes_at
from kerf.engine.state.state import State
from kerf.projections.status.nodepool import DEPENDENTS, nodepool_status
from kerf.replay.errors import PositionUnknown

_HINT = (
    'Give a position ("1234"), a time ("2026-05-01T10:00:00Z"), "+2h" from the start, "-5m" before the end, or "end"'
)
_BEFORE_END = re.compile(r"-(?P<duration>[0-9a-zµ.]+)( from end)?")


def locate(store: Store, text: str) -> int:
    """The position that a text means: of a time, the last entry at or before it.

    Takes "1234", an RFC 3339 time, "+2h" after the first entry, "-5m" (or "-5m from end") before the last one, "start",
    and "end". Raises PositionUnknown (KERF202).
    """
    last = store.last_position()
    wanted = text.strip()
    if not last:
        raise PositionUnknown("the record is empty", where=text)
    if wanted == "end":
        return last
    if wanted == "start":
        return _first(store).position
    if wanted.isascii() and wanted.isdigit():
        return _checked(store, int(wanted), last, text)
    return _position_at(store, time_of(store, wanted), text)


def time_of(store: Store, text: str) -> int:
    """The time (ms since the epoch) that a text means; see `locate`. Raises PositionUnknown (KERF202)."""
    wanted = text.strip()
    try:
        if wanted.startswith("+"):
            return _first(store).at + parse_go_duration(wanted[1:])
        before_end = _BEFORE_END.fullmatch(wanted)
        if before_end:
            return _entry(store, store.last_position()).at - parse_go_duration(before_end["duration"])
        moment = datetime.fromisoformat(wanted)
    except InputError as error:
        raise PositionUnknown(f"{text!r}: {error.message}", hint=f"{error.hint}. {_HINT}") from error
    except ValueError as error:
        raise PositionUnknown(f"{text!r} is neither a position nor a time", hint=_HINT) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


class TooLate(Struct, frozen=True):
    """What was `asked` for (ms since the epoch) is later than the last entry, at `position`, of time `last`."""

    asked: int
    last: int
    position: int


def too_late(store: Store, text: str) -> TooLate | None:
    """That a time which `locate` takes is later than all that the record knows, which is answered as of its last entry:
    what waits for a time, such as the end of a budget's window, may be otherwise by then. None if it is not."""
    wanted, position = text.strip(), store.last_position()
    if not position or wanted in ("end", "start") or (wanted.isascii() and wanted.isdigit()):
        return None
    asked, last = time_of(store, wanted), _entry(store, position).at
    return TooLate(asked, last, position) if asked > last else None


def _checked(store: Store, position: int, last: int, text: str) -> int:
    first = _first(store).position
    if not first <= position <= last:
        raise PositionUnknown(f"position {text} is not in the record", where=f"positions {first} to {last}", hint=_HINT)
    return position


def _position_at(store: Store, time: int, text: str) -> int:
    """By bisection: times never go back from one position to the next. In what is kept of a record that was cut, one
    entry after another."""
    base = store.base()
    if base is not None and time < base.at:
        kept = [entry.position for entry in store.scan(0, base.position) if entry.at <= time]
        if not kept:
            raise PositionUnknown(f"the record begins after {text}", where=f"position {base.position}", hint=_HINT)
        return kept[-1]
    first = base.position + 1 if base is not None else _first(store).position
    last = store.last_position()
    found = bisect_right(range(first, last + 1), time, key=lambda position: _entry(store, position).at)
    if not found and base is not None:
        return base.position
    if not found:
        raise PositionUnknown(f"the record begins after {text}", where=f"position {first}", hint=_HINT)
    return first + found - 1


def _first(store: Store) -> Entry:
    return next(store.scan(0, None))


def _entry(store: Store, position: int) -> Entry:
    return next(store.scan(position - 1, position))


def state_at(store: Store, position: int) -> State:
    """The state after the entry at `position`, by the latest usable snapshot. Raises StoreError."""
    return load(store, position)


# ── the summary ────────────────────────────────────────────────────────────────────────────────────────────────────


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
    """One NodePool: `wrong` are the reasons why it is not ready, and `registration` what is said of nodes that do not
    register; empty when all is well. `drifted` of its NodeClaims are not as it asks for."""

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


class Summary(Struct, frozen=True, kw_only=True):
    """The state at a position. `window_closes` is when the open provisioning window closes (ms since the epoch), 0 when
    none is open; `unavailable` maps "capacity type|instance type|zone" to the time until which it is avoided."""

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


def summary(state: State) -> Summary:
    """What there was, as structs for people and for JSON."""
    facts, ix = state.facts, state.ix
    claims = [facts.claims[name] for name in sorted(facts.claims)]
    running = [claim for claim in claims if claim.launched]
    return Summary(
        position=facts.position,
        at=facts.at,
        record=facts.record,
        epoch=facts.epoch,
        digest=snapshot.digest(state),
        claims=tuple(_line(claim, state) for claim in claims),
        claim_states=dict(sorted(Counter(claim.state for claim in claims).items())),
        price=round(sum(claim.price for claim in running), 6),
        nodes=len(facts.nodes),
        unmanaged_nodes=sum(name not in ix.claim_by_node for name in facts.nodes),
        pods=_pods(state),
        node_pools=tuple(sorted(facts.pools)),
        pools=tuple(_pool(state, name) for name in sorted(facts.pools)),
        window_closes=closes_at(facts) if facts.batch_opened else 0,
        without_place=facts.unplaced,
        unavailable={key: until for key, until in sorted(facts.unavailable.items()) if until > facts.at},
        in_flight=tuple(
            InFlight(ref, type(asked.intent).__struct_config__.tag, asked.intent.claim, facts.at - asked.at)  # type: ignore[arg-type]
            for ref, asked in sorted(facts.intents.items(), key=lambda item: (item[1].at, item[0]))
        ),
        orphans=tuple(sorted(facts.orphans)),
        unknown_entries=facts.unknown,
    )


def _line(claim: NodeClaim, state: State) -> ClaimLine:
    return ClaimLine(
        name=claim.name,
        state=claim.state,
        node_pool=claim.node_pool,
        node=claim.node,
        instance_type=claim.instance_type,
        zone=claim.zone,
        capacity_type=claim.capacity_type,
        price=claim.price if claim.launched else 0.0,
        age=state.facts.at - claim.created,
        pods=len(state.ix.pods_by_node.get(claim.node, {})),
        why=claim.why,
        verdict=claim.verdict,
    )


def _pool(state: State, name: str) -> PoolLine:
    found = nodepool_status(state, name)
    claims = [claim for claim in state.facts.claims.values() if claim.node_pool == name]
    registration = found.condition("NodeRegistrationHealthy")
    return PoolLine(
        name=name,
        nodes=found.nodes,
        drifted=sum(bool(claim.drifted_since) for claim in claims),
        ready=found.ready,
        wrong=tuple(_told(c) for c in found.conditions if c.type in DEPENDENTS and c.status != "True"),
        registration=_told(registration) if registration.status == UNHEALTHY else "",
    )


def _told(condition: Condition) -> str:
    return f"{condition.reason}: {condition.message}" if condition.message else condition.reason


def _pods(state: State) -> dict[str, int]:
    """How many pods there are, by what they do."""
    total: Counter[str] = Counter()
    for uid, pod in state.facts.pods.items():
        if pod.deleting:
            total["terminating"] += 1
        elif uid in state.ix.pending:
            total["waiting"] += 1
        else:
            total[pod.phase.lower()] += 1
    return dict(sorted(total.items()))
