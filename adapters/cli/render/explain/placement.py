"""How a pod found its place and what the cloud was asked for, as text. Explanations of pods, claims and decisions share
this."""

from __future__ import annotations

from math import isfinite

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import quantities
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Offer
from kerf.engine.scheduling.explain.tracer import NearMiss, PricedType
from kerf.engine.scheduling.provision import VERSION
from kerf.projections.prose.amounts import count, dollars, duration
from kerf.projections.prose.funnels import cut_sentence, given_up_sentence, near_miss_sentence
from kerf.projections.prose.reasons import requirement_words, sentence
from kerf.replay.explain.claim import Launch
from kerf.replay.explain.funnels import KindAsked, PlacementExplanation, PoolFunnel

MAX_INSTANCE_TYPES = Settings().max_instance_types
"""How many types a NodeClaim names at most (S-162)."""
CUT_SINCE = "the record was cut since: what else was considered then cannot be told any more"


def placement_text(printer: Printer, how: PlacementExplanation) -> None:
    """Print what pods of one kind asked for, what was ruled out, and what was chosen."""
    if not how.same:
        printer.line(f"  {_otherwise(how)}: what follows is its view, not the recorded one", "warning")
    printer.line(f"  {count(how.pods, 'pod')} of this kind: {asked_words(how, each=how.pods > 1)}")
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


def kind_words(kind: KindAsked) -> str:
    """Pods of one kind, and what each of them asks for."""
    return f"{some(kind.pods, MAX_NAMES_SHOWN)}: {asked_words(kind, each=len(kind.pods) > 1)}"


def is_kind(how: PlacementExplanation, kind: KindAsked) -> bool:
    """Return whether an explanation is about pods of a kind."""
    return (how.requests, how.requirements, how.rules) == (kind.requests, kind.requirements, kind.rules)


def asked_words(kind: PlacementExplanation | KindAsked, *, each: bool) -> str:
    """What pods of one kind ask for."""
    requests = quantities({name: amount for name, amount in kind.requests.items() if name != "pods"})
    asked = requests + (" each" if each else "") if requests else "no requests"
    asks = [*map(requirement_words, kind.requirements), *(f"{rule} over {key}" for rule, key in kind.rules)]
    return asked + (f"; {', '.join(asks)}" if asks else "")


def _otherwise(how: PlacementExplanation) -> str:
    if how.version != VERSION:
        return f"today's engine decides by other rules (version {VERSION}, then {how.version})"
    return "today's engine decides otherwise"


def _pool(printer: Printer, pool: PoolFunnel) -> None:
    new = f" for the new node {pool.claim}" if pool.claim else ""
    weight = f", of weight {pool.weight}" if pool.weight else ""
    printer.line(f"  NodePool {pool.node_pool}{weight}: {count(pool.types, 'instance type')} considered{new}")
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
    other = next((miss for miss in others if (miss.what, miss.side) != (first.what, first.side)), None)
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
        f"  {first.instance_type} is the {_of_how_many(how.chosen_types)} that can take all of them, "
        f"at {dollars(first.price)}/h"
    )
    if others:
        printer.line("  dearer: " + ", ".join(map(_choice, others)))


def _of_how_many(types: int) -> str:
    return "only type" if types == 1 else f"cheapest of the {count(types, 'type')}"


def _choice(choice: PricedType) -> str:
    """A type with its price. A type may be possible while nobody sells it, beside reserved capacity: then it has no
    price (S-164)."""
    price = f"{dollars(choice.price)}/h" if isfinite(choice.price) else "(none on offer)"
    return f"{choice.instance_type} {price}"


def launch_text(printer: Printer, launch: Launch) -> None:
    """Print which offerings the cloud was asked for, and what it answered."""
    shown = [_offer(offer) for offer in launch.cheapest[:3]]
    more = f" and {launch.offers - len(shown)} more" if launch.offers > len(shown) else ""
    pools = f"{count(launch.offers, 'pool')} of type and zone: {', '.join(shown)}{more}"
    printer.line(f"  asked the cloud for {launch.capacity_type}, {pools}")
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
