"""Explanations as text."""

from __future__ import annotations

from itertools import groupby
from math import isfinite

from kerf.adapters.cli.render.node_reasons import came_for_text, left_text, methods_text, removal_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import quantities
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.state_table import TERMINATED
from kerf.engine.record.decisions import Offer, ProvisionResult
from kerf.engine.scheduling.explain.tracer import NearMiss, PricedType
from kerf.engine.scheduling.provision import VERSION
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.changes import WHAT_WOULD_FREE_IT
from kerf.projections.prose.drift import verdict_words as judged_words
from kerf.projections.prose.funnels import cut_sentence, given_up_sentence, near_miss_sentence
from kerf.projections.prose.reasons import requirement_words, sentence
from kerf.replay.explain.claim import ClaimExplanation, Launch, Staying
from kerf.replay.explain.decision import DecisionExplanation
from kerf.replay.explain.funnels import PlacementExplanation, PoolFunnel
from kerf.replay.explain.pod import PodExplanation
from kerf.replay.history.histories import PodDecision

MAX_DRAINED_PODS_SHOWN = 10
"""How many of the pods that hold up a drain are named."""
MAX_INSTANCE_TYPES = Settings().max_instance_types
"""How many types a NodeClaim names at most (S-162)."""

_CUT_SINCE = "the record was cut since: what else was considered then cannot be told any more"

_RESULTS = {
    "new-claim": "planned onto the new node {place}",
    "existing-node": "planned onto {place}",
    "no-place": "no place",
    "ignored": "not looked at",
    "not-reached": "not reached within the effort limit",
}


def pod_text(printer: Printer, explained: PodExplanation) -> None:
    printer.line(
        f"pod {explained.pod}: {_where(explained)}, as of position {explained.position} ({moment(explained.at)})",
        "title",
    )
    if explained.waited:
        printer.line(f"it was without a node for {duration(explained.waited)}")
    if explained.came_for is not None:
        printer.line(came_for_text(explained.came_for, explained.node))
    if explained.left is not None:
        printer.line(left_text(explained.left))
    _decisions(printer, explained.looks)
    if explained.look_again:
        printer.line(f"decision {explained.look_again} came to the same result again")
    if explained.expected:
        printer.line(f"the plan meant it for {explained.expected}: kube-scheduler chose {explained.node}", "warning")
    for reason in explained.reasons:
        printer.line(f"no place: {sentence(reason)}", "warning")
    if explained.how is not None:
        _placed(printer, explained.how)
    elif explained.shortened:
        printer.line(_CUT_SINCE)
    elif not explained.looks and explained.came_for is None:
        printer.line("no provisioning decision was about it" + _unasked(explained))
    if explained.launch is not None:
        _launch(printer, explained.launch)


def _decisions(printer: Printer, looks: tuple[PodDecision, ...]) -> None:
    """The decisions about the pod. Consecutive ones with the same result share a line."""
    for (result, place), alike in groupby(looks, key=lambda look: (look.result, look.place)):
        first, *rest = alike
        again = f" (and {count(len(rest), 'time')} more, last by decision {rest[-1].position})" if rest else ""
        printer.line(f"decision {first.position} at {moment(first.at)}: {_RESULTS[result].format(place=place)}{again}")


def _where(explained: PodExplanation) -> str:
    return f"{explained.status} to {explained.node}" if explained.status == "bound" else explained.status


def _unasked(explained: PodExplanation) -> str:
    if explained.status == "bound":
        return ": kube-scheduler found room on a node that was there"
    return ": the window may still be open" if explained.status == "waiting" else ""


def claim_text(printer: Printer, explained: ClaimExplanation) -> None:
    node = f", node {explained.node}" if explained.node else ""
    printer.line(
        f"NodeClaim {explained.claim}{node}: {explained.state}, "
        f"as of position {explained.position} ({moment(explained.at)}), "
        f"{dollars(explained.cost)} {'in all' if explained.state == TERMINATED else 'so far'}",
        "title",
    )
    if explained.adopted:
        printer.line("it was found in the cluster without a record, and adopted")
    elif explained.launched_for:
        printer.line(f"launched for {some(explained.launched_for, MAX_NAMES_SHOWN)}, by decision {explained.decision}")
    elif explained.decider == "static":
        printer.line(
            f"launched so that NodePool {explained.node_pool} keeps its size, by decision {explained.decision}"
        )
    if explained.replaces:
        printer.line(f"it came in the place of {some(explained.replaces, MAX_NAMES_SHOWN)}")
    if explained.how is not None:
        _placed(printer, explained.how)
    elif explained.shortened:
        printer.line(_CUT_SINCE)
    if explained.launch is not None:
        _launch(printer, explained.launch)
    printer.line("its life:", "title")
    for step in explained.steps:
        detail = f" ({step.detail})" if step.detail else ""
        printer.line(f"  {moment(step.at)}  +{duration(step.took):<9} {step.position:>7}  {step.type}{detail}")
    if explained.waiting is not None:
        printer.line(f"it waits: {sentence(explained.waiting)}")
    _leaving(printer, explained)
    if explained.verdicts and not explained.methods:  # which have their own histories
        printer.line("what was found about removing it:", "title")
    for judged in () if explained.methods else explained.verdicts:
        verdict = judged.verdict
        text = f"{verdict.action}: {judged_words(verdict.reason, verdict.differences)}"
        printer.line(f"  {moment(judged.at)}             {judged.position:>7}  {text}")
    if explained.removal is not None:
        removal_text(printer, explained.removal, explained.removed)
    if explained.staying is not None:
        _staying(printer, explained.staying)
    methods_text(printer, explained.methods)


def _leaving(printer: Printer, explained: ClaimExplanation) -> None:
    """Print the pods that hold up a drain, why, and until when."""
    for each in explained.leaving[:MAX_DRAINED_PODS_SHOWN]:
        tries = f" ({count(each.attempts, 'attempt')})" if each.attempts > 1 else ""
        printer.line(f"  {each.pod}: {sentence(each.reason)}{tries}", "warning")
    if len(explained.leaving) > MAX_DRAINED_PODS_SHOWN:
        printer.line(f"  and {len(explained.leaving) - MAX_DRAINED_PODS_SHOWN} more", "warning")
    if explained.leaving and explained.forced_at:
        printer.line(f"  those still there are deleted by force, to be gone by {moment(explained.forced_at)}")
    elif explained.leaving:
        printer.line("  without a terminationGracePeriod it waits for as long as they stay")


def _staying(printer: Printer, staying: Staying) -> None:
    printer.line(f"it is still here: {sentence(staying.reason)}", "title")
    if staying.pods:
        more = f" and {staying.pods - len(staying.held_by)} more" if staying.pods > len(staying.held_by) else ""
        printer.line(f"  {count(staying.pods, 'pod')} on it to move: {', '.join(staying.held_by)}{more}")
    change = WHAT_WOULD_FREE_IT.get(staying.reason.code)
    if change is not None:
        printer.line(f"  it may go when {change}")
    if staying.due:
        printer.line(f"  it is looked at again at {moment(staying.due)} at the latest")


def decision_text(printer: Printer, explained: DecisionExplanation, lines: list[str]) -> None:
    printer.line(f"decision {explained.position} ({explained.decider}) at {moment(explained.now)}", "title")
    printer.line(
        f"it looked at the record up to position {explained.looked_at}; decision version {explained.version}, "
        f"today's is {explained.version_today}; {count(explained.intents, 'intent')}"
    )
    for line in lines:
        printer.line(f"  {line}")
    if not isinstance(explained.result, ProvisionResult):
        printer.line("kerf verify tells whether it would be decided so today")
    elif explained.shortened:
        printer.line(_CUT_SINCE)
    for plan in explained.plans:
        target = f"{plan.claim}: " if plan.claim else "no place: "
        printer.line(target + some(plan.pods, MAX_NAMES_SHOWN), "title")
        for reason in plan.reasons:
            printer.line(f"  {sentence(reason)}", "warning")
        if plan.how is not None:
            _placed(printer, plan.how)


# ── parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _placed(printer: Printer, how: PlacementExplanation) -> None:
    if not how.same:
        printer.line(f"  {_otherwise(how)}: what follows is its view, not the recorded one", "warning")
    asked = quantities({name: amount for name, amount in how.requests.items() if name != "pods"}) or "nothing"
    asks = [*map(requirement_words, how.requirements), *(f"{kind} over {key}" for kind, key in how.rules)]
    wants = f"; {', '.join(asks)}" if asks else ""
    printer.line(f"  {count(how.pods, 'pod')} of this kind: {asked} each{wants}")
    for gone in how.gave_up:
        printer.line(f"  it gave up {given_up_sentence(gone)}")
    for refused in how.refused:
        others = f" and {refused.count - 1} more" if refused.count > 1 else ""
        printer.line(f"  not on {refused.example}{others}: {sentence(refused.reason)}")
    for pool, before in zip(how.pools, (None, *how.pools), strict=False):
        if pool != before:  # asked again for each new node of the plan
            _pool(printer, pool)
    if how.chosen:
        _chosen(printer, how)


def _otherwise(how: PlacementExplanation) -> str:
    if how.version != VERSION:
        return f"today's engine decides by other rules (version {VERSION}, then {how.version})"
    return "today's engine decides otherwise"


def _pool(printer: Printer, pool: PoolFunnel) -> None:
    new = f" for the new node {pool.claim}" if pool.claim else ""
    printer.line(f"  NodePool {pool.node_pool}: {count(pool.types, 'instance type')} considered{new}")
    for cut in pool.cuts:
        printer.line(f"    -{cut.types:<5} {cut_sentence(cut)}")
    cheapest = ", ".join(map(_choice, pool.cheapest))
    printer.line(f"    ={pool.left:<5} left" + (f": {cheapest}" if cheapest else ""))
    if pool.reason is not None:
        _nearest(printer, pool.near)


def _nearest(printer: Printer, near: tuple[NearMiss, ...]) -> None:
    """Print the nearest miss, and the next one of another kind or of the other side."""
    if not near:
        printer.line("    no nearest miss: no single change would let a type through")
        return
    first, *others = near
    printer.line(f"    nearest miss: {near_miss_sentence(first)}")
    other = next((each for each in others if (each.what, each.side) != (first.what, first.side)), None)
    if other is not None:
        printer.line(f"              or: {near_miss_sentence(other)}")


def _chosen(printer: Printer, how: PlacementExplanation) -> None:
    first, *others = how.chosen
    left = next((pool.left for pool in how.pools if pool.reason is None), how.chosen_types)
    if left > how.chosen_types:
        dearer = (
            f", or dearer than the {MAX_INSTANCE_TYPES:,} cheapest" if how.chosen_types >= MAX_INSTANCE_TYPES else ""
        )
        printer.line(f"    -{left - how.chosen_types:<5} too small for all pods that share the node{dearer}")
    printer.line(
        f"  {first.instance_type} is the cheapest of the {count(how.chosen_types, 'type')} that can take all of them, "
        f"at {dollars(first.price)}/h"
    )
    if others:
        printer.line("  dearer: " + ", ".join(map(_choice, others)))


def _choice(choice: PricedType) -> str:
    """A type with its price. A type may be possible while nobody sells it, beside reserved capacity: then it has no
    price (S-164)."""
    price = f"{dollars(choice.price)}/h" if isfinite(choice.price) else "(none on offer)"
    return f"{choice.instance_type} {price}"


def _launch(printer: Printer, launch: Launch) -> None:
    offers = ", ".join(_offer(offer) for offer in launch.cheapest[:3])
    printer.line(
        f"  asked the cloud for {launch.capacity_type}, {count(launch.offers, 'pool')} of type and zone: {offers}"
    )
    if launch.attempts > 1:
        printer.line(f"  {count(launch.attempts, 'attempt')}")
    for error in launch.refused:
        printer.line(
            f"  refused: {error.instance_type} in {error.zone} ({error.capacity_type}): {error.code}", "warning"
        )
    if launch.error:
        printer.line(f"  nothing was started: {launch.error}", "warning")
    if launch.instance_type:
        printer.line(
            f"  started {launch.instance}, a {launch.instance_type} in {launch.zone}, at {dollars(launch.price)}/h "
            f"after {duration(launch.took)}"
        )
        if launch.cheaper:
            printer.line("  cheaper, and not given: " + ", ".join(_offer(offer) for offer in launch.cheaper))


def _offer(offer: Offer) -> str:
    return f"{offer.instance_type} in {offer.zone} {dollars(offer.price)}/h"
