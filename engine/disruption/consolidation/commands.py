"""The consolidation decision for given nodes: remove them, replace them by one cheaper node, or why they stay
(D-98…D-104, D-74)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.eligibility import Candidate, total_price
from kerf.engine.disruption.pricing import Market
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.requirements import Requirement, Requirements
from kerf.engine.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.plan import OpenedClaim

SPOT_OPTIONS = 15
"""How many cheaper spot types there must be to replace one spot node, so that it is not replaced over and over
(D-102)."""
LEAST_SAVING = 1e-6
"""What a replacement saves at least, in USD per hour: a cent a year. Reserved capacity is paid for anyway. It has a
ten-millionth of a price, so that it comes first, and one such price below another is no reason to move pods."""

NOT_BY_SPOT = (DisruptionCode.SPOT_TO_SPOT_OFF, DisruptionCode.TOO_FEW_SPOT_OPTIONS)
"""Why spot nodes are not replaced by a spot node (D-102)."""
NOT_CHEAPER = (DisruptionCode.NOTHING_CHEAPER, DisruptionCode.MIN_VALUES, *NOT_BY_SPOT)
"""Why nodes stay although their pods have a place on one new node: it may not replace them."""

DELETE, REPLACE = "delete", "replace"
ONLY_SPOT = Requirement(CAPACITY_TYPE, False, frozenset([SPOT]))


class Replacement(Struct, frozen=True):
    """The node to launch: the planned `claim`, narrowed to these types (cheapest first) and requirements.

    `price` is that of the cheapest available offering of the first type (USD per hour, D-82).
    """

    claim: OpenedClaim
    instance_types: tuple[str, ...]
    requirements: Requirements
    capacity_types: tuple[str, ...]
    price: float


class Command(Struct, frozen=True):
    """Candidates that go together, and what replaces them. `savings` is in USD per hour (D-82)."""

    reason: DisruptionReason
    candidates: tuple[Candidate, ...]
    replacements: tuple[Replacement, ...] = ()
    placements: tuple[Placement, ...] = ()
    savings: float = 0.0

    @property
    def decision(self) -> Literal["delete", "replace"]:
        return "replace" if self.replacements else "delete"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(candidate.name for candidate in self.candidates))

    @property
    def evictions(self) -> int:
        return sum(len(candidate.pods) for candidate in self.candidates)


def removal(candidates: Sequence[Candidate]) -> Command:
    """The command that removes empty nodes: without a simulation (D-60)."""
    return Command(DisruptionReason.EMPTY, tuple(candidates), savings=total_price(candidates))


class Cheaper(Struct, frozen=True):
    """The types, by NodePool, of which a replacement may be (numbers in the catalogue); and why nodes stay whose pods
    need another one."""

    types: Mapping[str, int]
    otherwise: Reason


WhatIsCheaper = Callable[[Sequence[Candidate], float], Cheaper]
"""What may replace these nodes, and costs less than so much (USD per hour)."""


def decide(simulator: Simulator, candidates: Sequence[Candidate]) -> Command | Reason:
    """The command for exactly these nodes, or the first reason why they stay (D-98)."""
    return _judged(simulator.without(candidate.name for candidate in candidates), simulator, candidates)


def decide_for_kerf(simulator: Simulator, candidates: Sequence[Candidate], cheaper: WhatIsCheaper) -> Command | Reason:
    """As `decide`, by kerf's own rules.

    What replaces nodes can be launched. Several nodes are not replaced by one of their own type (D-74). Of NodePools of
    equal weight the cheapest launches the replacement. A simulation ends as soon as the nodes certainly stay.
    """
    names = tuple(candidate.name for candidate in candidates)
    found = simulator.decided.get(names)
    if found is None:
        found = simulator.decided[names] = _cheapest(simulator, candidates, cheaper)
    return found


def _cheapest(simulator: Simulator, candidates: Sequence[Candidate], cheaper: WhatIsCheaper) -> Command | Reason:
    """The cheapest command with any of the NodePools of equal weight first. If there is none, the first answer says why
    the nodes stay.

    Where a spot node may not replace these (D-102), and would cost less than the best command's node, they stay, too.
    Else that spot node would replace the new node next, and the pods would move twice.
    """
    limit = total_price(candidates)
    first = best = _with_pool_first("", simulator, candidates, cheaper(candidates, limit))
    if not (best.replacements if isinstance(best, Command) else best.code in NOT_CHEAPER):
        return best
    for pool in simulator.other_pools_first:
        below = cheaper(candidates, limit if isinstance(best, Reason) else best.replacements[0].price)
        if not below.types.get(pool):
            continue
        other = _with_pool_first(pool, simulator, candidates, below)
        if isinstance(other, Command) and (isinstance(best, Reason) or other.savings > best.savings + LEAST_SAVING):
            best = other
    if isinstance(first, Reason) and first.code in NOT_BY_SPOT and isinstance(best, Command):
        return first if _spot_price(simulator, candidates) < best.replacements[0].price else best
    return best


def _spot_price(simulator: Simulator, candidates: Sequence[Candidate]) -> float:
    """What a spot node would cost that replaces these; infinity if there is none (USD per hour)."""
    claims = simulator.without(candidate.name for candidate in candidates).claims
    if len(claims) != 1:
        return math.inf
    market, requirements = simulator.market(claims[0].node_pool), Requirements(claims[0].constraints)
    on_spot = requirements.merged([ONLY_SPOT])
    return min((market.cheapest(name, on_spot) for name in claims[0].instance_types), default=math.inf)


def _with_pool_first(
    first_pool: str, simulator: Simulator, candidates: Sequence[Candidate], cheaper: Cheaper
) -> Command | Reason:
    names = (candidate.name for candidate in candidates)
    outcome = simulator.without(names, affordable=cheaper.types, first_pool=first_pool)
    if outcome.too_dear:
        return cheaper.otherwise
    command = _judged(outcome, simulator, candidates)
    if isinstance(command, Reason) or not command.replacements:
        return command
    market = simulator.market(command.replacements[0].claim.node_pool)
    command = _on_offer(command, market)
    return command if len(candidates) == 1 else without_same_type(command, market)


def _judged(outcome: SimulationOutcome, simulator: Simulator, candidates: Sequence[Candidate]) -> Command | Reason:
    if outcome.failure is not None:
        return outcome.failure
    total = total_price(candidates)
    if not outcome.claims:
        return Command(DisruptionReason.UNDERUTILIZED, tuple(candidates), (), outcome.placements, total)
    if len(outcome.claims) > 1:
        return Reason.of(DisruptionCode.SEVERAL_REPLACEMENTS, count=len(outcome.claims))
    claim = outcome.claims[0]
    market = simulator.market(claim.node_pool)
    chosen = _narrowed(claim, candidates, total, market, simulator.cluster.spot_to_spot)
    if isinstance(chosen, Reason):
        return chosen
    found = replacement(claim, *chosen, market)
    return Command(DisruptionReason.UNDERUTILIZED, tuple(candidates), (found,), outcome.placements, total - found.price)


def replacement(claim: OpenedClaim, names: tuple[str, ...], requirements: Requirements, market: Market) -> Replacement:
    price = market.cheapest(names[0], requirements)
    kinds = market.capacity_types(names, requirements)
    return Replacement(claim, names, requirements, kinds, price if math.isfinite(price) else 0.0)


Chosen = tuple[tuple[str, ...], Requirements]


def _narrowed(
    claim: OpenedClaim, candidates: Sequence[Candidate], total: float, market: Market, spot_to_spot: bool
) -> Chosen | Reason:
    """The types that the replacement may have, and the requirements that it is launched under (D-98, steps 4 to 8)."""
    requirements = Requirements(claim.constraints)
    kinds = requirements.get(CAPACITY_TYPE)
    if all(candidate.capacity_type == SPOT for candidate in candidates) and kinds.has(SPOT):
        if not spot_to_spot:
            return Reason.of(DisruptionCode.SPOT_TO_SPOT_OFF)
        return _spot_to_spot(claim, requirements.merged([ONLY_SPOT]), len(candidates), total, market)
    names = _cheaper(claim.instance_types, requirements, total, market)
    if isinstance(names, Reason):
        return names
    if kinds.has(SPOT) and kinds.has(ON_DEMAND):
        requirements = requirements.merged([ONLY_SPOT])
    return names, requirements


def _cheaper(
    names: Sequence[str], requirements: Requirements, limit: float, market: Market
) -> tuple[str, ...] | Reason:
    """The types whose launch price is below the limit (D-98 steps 6 and 7, S-207), by more than `LEAST_SAVING`."""
    prices = market.launch_prices(names, requirements)
    kept = tuple(name for name, price in zip(names, prices, strict=True) if price < limit - LEAST_SAVING)
    if not market.meets_min_values(kept, requirements):
        return Reason.of(DisruptionCode.MIN_VALUES, left=len(kept))
    return kept or Reason.of(DisruptionCode.NOTHING_CHEAPER, limit=limit)


def _spot_to_spot(
    claim: OpenedClaim, requirements: Requirements, count: int, total: float, market: Market
) -> Chosen | Reason:
    """Whether spot nodes may be replaced by a cheaper spot node, and by which types (D-102)."""
    priced = [(market.cheapest(name, requirements), name) for name in claim.instance_types]
    offered = [name for price, name in sorted(priced) if math.isfinite(price)]
    names = _cheaper(offered, requirements, total, market)
    if isinstance(names, Reason):
        return names
    if count > 1:
        return names, requirements
    if len(names) < SPOT_OPTIONS:
        return Reason.of(DisruptionCode.TOO_FEW_SPOT_OPTIONS, needed=SPOT_OPTIONS, found=len(names))
    least = SPOT_OPTIONS
    if requirements.min_values:
        ends = range(1, len(names) + 1)
        least = max(least, next(end for end in ends if market.meets_min_values(names[:end], requirements)))
    return names[:least], requirements


def _on_offer(command: Command, market: Market) -> Command:
    """The command with a replacement that can be launched.

    Step 8 of D-98 asks for spot although none may be on offer (D-100). Then the replacement is what the pods admit, all
    of which is cheaper as well.
    """
    (found,) = command.replacements
    if found.capacity_types:
        return command
    made = replacement(found.claim, found.instance_types, Requirements(found.claim.constraints), market)
    return _replaced_by(made, command)


def _replaced_by(found: Replacement, command: Command) -> Command:
    return replace(command, replacements=(found,), savings=total_price(command.candidates) - found.price)


def without_same_type(command: Command, market: Market) -> Command | Reason:
    """The command without types that one of the nodes already has, or dearer ones (D-74): several nodes are not
    replaced by one of their own type."""
    found = command.replacements[0]
    prices: dict[str, float] = {}
    for candidate in command.candidates:
        name = "" if candidate.instance_type is None else candidate.instance_type.name
        price = market.cheapest_at_all(name, Requirements.of_labels(candidate.node.labels))
        if price is not None:
            prices[name] = min(price, prices.get(name, math.inf))
        else:
            prices.setdefault(name, math.inf)
    shared = [prices[name] for name in found.instance_types if name in prices]
    limit = min((0.0 if math.isinf(price) else price for price in shared), default=math.inf)
    names = _cheaper(found.instance_types, found.requirements, limit, market)
    if isinstance(names, Reason):
        return names
    return _replaced_by(replacement(found.claim, names, found.requirements, market), command)


def placed(placements: Iterable[Placement], candidates: Iterable[Candidate]) -> tuple[Placement, ...]:
    """The placements of these candidates' pods only."""
    own = frozenset(pod.uid for candidate in candidates for pod in candidate.pods)
    there = [
        Placement(placement.node, placement.claim, tuple(uid for uid in placement.pods if uid in own))
        for placement in placements
    ]
    return tuple(placement for placement in there if placement.pods)
