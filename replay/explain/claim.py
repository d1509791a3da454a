"""Why a NodeClaim or Node was launched, became this type, took so long, and was removed or is still there."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.disruption import disruption_pass
from kerf.engine.disruption.forced.finding import Finding
from kerf.engine.disruption.forced.forced_disruption import judge, registration_timeout
from kerf.engine.lifecycle.drain.draining import drain
from kerf.engine.lifecycle.launch_to_initialized import advance
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, INITIALIZED, LAUNCHED, REGISTERED
from kerf.engine.record.claim_events import (
    Adopted,
    InstanceVanished,
    Launched,
    Terminated,
)
from kerf.engine.record.decisions import Offer
from kerf.engine.record.observations import LaunchAnswered, LaunchError
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.errors import SubjectUnknown
from kerf.replay.explain.draining_pods import Leaving, leaving
from kerf.replay.explain.funnels import Placed, opened, replan_if_known
from kerf.replay.explain.method_verdicts import MethodVerdict, verdicts_of
from kerf.replay.history.histories import ClaimLinks, Judged, links_of
from kerf.replay.history.removal import Removal, removal_of
from kerf.replay.subject_names import unknown
from kerf.replay.time_travel.record_beginning import NO_TURN

SHOWN = 5
PROVISION = "provision"
"""The decider whose decisions are plans. Replacements come from moves."""


class Launch(Struct, frozen=True, kw_only=True):
    """What was asked of the cloud and what it gave. `offers` pools of (type, zone) were asked for, of which `cheapest`
    are the first; `refused` were without capacity. `price` is that of what was started, USD per hour; `cheaper` are the
    offers below it that were not given, though asked for."""

    claim: str
    capacity_type: str
    offers: int
    cheapest: tuple[Offer, ...]
    attempts: int
    refused: tuple[LaunchError, ...]
    instance: str
    instance_type: str
    zone: str
    price: float
    took: int
    cheaper: tuple[Offer, ...]
    error: str


class LifeStep(Struct, frozen=True):
    """One event of the claim. `took` is the time since the step before, ms."""

    position: int
    at: int
    type: str
    took: int
    detail: str = ""


class Staying(Struct, frozen=True, kw_only=True):
    """Why it is still there: the finding as of the position, when that may change by itself (`due`, 0 for never), and
    the pods that hold it (at most some; `pods` says how many)."""

    method: str
    reason: Reason
    due: int
    pods: int
    held_by: tuple[str, ...]


class ClaimExplanation(Struct, frozen=True, kw_only=True):
    """`state` is "terminated" once it is over. `decider` made the `decision` to launch; `launched_for` are the pods of
    its plan, `replaces` the claims whose place it was to take. `removed` is why it had to go, in short, `removed_at`
    where that stands (0 for not), `removal` how that came about. `staying` is None unless it is to stay; `methods` is
    what each disruption method says of it then. `leaving` are the pods that its drain waits for, which are deleted by
    force by `forced_at` (0 for never). `cost` USD so far."""

    claim: str
    node: str
    node_pool: str
    position: int
    at: int
    state: str
    decision: int
    decider: str
    launched_for: tuple[str, ...]
    replaces: tuple[str, ...]
    adopted: bool
    how: Placed | None
    launch: Launch | None
    steps: tuple[LifeStep, ...]
    verdicts: tuple[Judged, ...]
    removed: str
    removed_at: int
    removal: Removal | None
    staying: Staying | None
    methods: tuple[MethodVerdict, ...]
    waiting: Reason | None
    leaving: tuple[Leaving, ...]
    forced_at: int
    cost: float
    shortened: bool = False


def explain_node(store: Store, name: str, position: int | None = None) -> ClaimExplanation:
    """As `explain_claim`, by the name of the Node: the latest claim that had it. The name of a NodeClaim does as well,
    for not every claim comes to have a Node. Raises SubjectUnknown (KERF203)."""
    links = links_of(store, position)
    claims = links.claims_of_node.get(name)
    if not claims:
        if name in links.claims and links.claims[name].events:
            return explain_claim(store, name, position)
        if name in links.nodes:
            hint = (
                "kerf neither launched nor adopted it, and removes it only if somebody deletes it: it is room for pods"
            )
            raise SubjectUnknown("the node belongs to no NodeClaim", where=f"node {name}", hint=hint)
        raise unknown(f"the record knows no node {name!r}", name, links.nodes, where=f"node {name}")
    return explain_claim(store, claims[-1], position)


def explain_claim(store: Store, name: str, position: int | None = None) -> ClaimExplanation:
    """Why the claim was launched, why as this type, what happened to it, and why it went or stays, as of a position.

    Raises SubjectUnknown (KERF203).
    """
    links = links_of(store, position)
    found = links.claims.get(name)
    if found is None or not found.events:
        named = (each.name for each in links.claims.values() if each.events)
        raise unknown(f"the record knows no NodeClaim {name!r}", name, named)
    state = load(store, position)
    claim = state.facts.claims.get(name)
    planned = links.decisions.get(found.decision) == PROVISION
    plan = replan_if_known(store, found.decision) if planned else None
    removal = removal_of(store, links, found)
    stays = claim is not None and removal is None
    methods = verdicts_of(claim, state, found.verdicts) if stays and claim is not None else ()
    return ClaimExplanation(
        claim=name,
        node=found.node,
        node_pool=found.node_pool,
        position=state.facts.position,
        at=state.facts.at,
        state=claim.state if claim is not None else "terminated",
        decision=found.decision,
        decider=links.decisions.get(found.decision, ""),
        launched_for=tuple(links.pod(uid) for uid in found.pods),
        replaces=links.moves[found.replaces].move.claims if found.replaces else (),
        adopted=isinstance(found.events[0].payload, Adopted) and found.events[0].turn != NO_TURN,
        shortened=(planned and plan is None) or found.events[0].turn == NO_TURN,
        how=opened(plan, name) if plan is not None else None,
        launch=launch_of(found),
        steps=_steps(found),
        verdicts=tuple(found.verdicts),
        removed=_in_short(removal) if removal is not None else "",
        removed_at=removal.position if removal is not None else 0,
        removal=removal,
        staying=_staying(claim, state, found, methods) if stays and claim is not None else None,
        methods=methods,
        waiting=_waiting(claim, state) if claim is not None else None,
        leaving=leaving(claim, state) if claim is not None else (),
        forced_at=(claim.deadline or 0) if claim is not None else 0,
        cost=_cost(found, claim, state),
    )


def launch_of(found: ClaimLinks) -> Launch | None:
    """None for a claim that was adopted, or whose plan is not in the record."""
    if not found.orders:
        return None
    order = found.orders[0][1]
    answer = found.answers[-1][1] if found.answers else None
    launched = next((e.payload for e in found.events if isinstance(e.payload, Launched)), None)
    price = launched.price if launched is not None else 0.0
    given = (launched.instance_type, launched.zone) if launched is not None else ("", "")
    return Launch(
        claim=found.name,
        capacity_type=order.capacity_type,
        offers=len(order.offers),
        cheapest=order.offers[:SHOWN],
        attempts=len(found.orders),
        refused=tuple(error for _, each in found.answers for error in each.errors),
        instance=found.instance,
        instance_type=given[0],
        zone=given[1],
        price=price,
        took=launched.took if launched is not None else 0,
        cheaper=tuple(o for o in order.offers if o.price < price)[:SHOWN] if launched is not None else (),
        error="" if answer is None or answer.instance else _error(answer),
    )


def _error(answer: LaunchAnswered) -> str:
    if answer.kind == "not-found":
        return "an instance was looked for by its tag, and there is none"
    return answer.message or answer.code or answer.kind


def _steps(found: ClaimLinks) -> tuple[LifeStep, ...]:
    steps: list[LifeStep] = []
    for entry in found.events:
        took = entry.at - steps[-1].at if steps else 0
        steps.append(
            LifeStep(entry.position, entry.at, entry.type.removeprefix("claim."), took, _detail(entry.payload))
        )
    return tuple(steps)


def _detail(event: Struct) -> str:
    parts = (getattr(event, name, "") for name in ("why", "detail", "pod", "kind", "code", "message", "status"))
    return ", ".join(str(part) for part in parts if part)


def _in_short(removal: Removal) -> str:
    detail = removal.reason.params.get("detail", "")
    return f"{removal.why} ({detail})" if detail else removal.why


_SAID_BETTER = {
    "budget": ("bad-budget", "budget"),
    "move-proposed": ("waits-for-budget", "move-proposed"),
    "not-looked-at": ("waits-for-budget", "move-proposed"),
}
"""What the latest pass said → what its method says of it now."""


def _staying(claim: NodeClaim, state: State, found: ClaimLinks, methods: tuple[MethodVerdict, ...]) -> Staying:
    """What excludes it from all moves now, or else what the latest disruption pass came to."""
    finding = judge(claim, state, state.facts.at)
    if not finding.remove and claim.state == INITIALIZED:
        said = next((each.verdict.reason for each in reversed(found.verdicts) if each.verdict.action == "keep"), None)
        why = disruption_pass.why_it_stays(claim, state, state.facts.at) or said or Reason("not-looked-at")
        why = next((each.reason for each in methods if each.reason.code in _SAID_BETTER.get(why.code, ())), why)
        finding = Finding(disruption_pass.METHOD, why, due=soonest(finding.due, disruption_pass.due_at(state)))
    elif not finding.remove and claim.state == LAUNCHED:
        finding = registration_timeout(claim, state, state.facts.at)
    elif not finding.remove and claim.state == REGISTERED:
        finding = Finding(finding.method, Reason("not-initialized"), due=finding.due)
    uids = state.ix.pods_by_node.get(claim.node, {})
    holding = sorted(pod.key for uid in uids if is_reschedulable(pod := state.facts.pods[uid]))
    return Staying(
        method=finding.method,
        reason=finding.reason,
        due=finding.due,
        pods=len(holding),
        held_by=tuple(holding[:SHOWN]),
    )


def _waiting(claim: NodeClaim, state: State) -> Reason | None:
    """What the lifecycle decider waits for, while the claim is not in service."""
    reason = (drain if claim.state in GOING else advance)(claim, state, state.facts.at).reason
    return None if reason.code == "in-service" else reason


def _cost(found: ClaimLinks, claim: NodeClaim | None, state: State) -> float:
    ended = next((e.payload for e in found.events if isinstance(e.payload, Terminated | InstanceVanished)), None)
    if ended is not None:
        return ended.cost
    if claim is None or not claim.launched:
        return 0.0
    return round(claim.price * (state.facts.at - claim.launched) / 3_600_000, 6)
