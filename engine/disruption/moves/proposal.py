"""Proposing moves: the recorded form of the commands that consolidation chose, in the order in which they may start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import BALANCED, Totals, pool_totals, scores
from kerf.engine.disruption.consolidation.commands import Command, Replacement, removal
from kerf.engine.disruption.eligibility import NodeEligibility, find_candidates
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from kerf.engine.record.decisions import Move, PlannedClaim

NO_TOTALS: Mapping[str, Totals] = MappingProxyType({})


def proposed_moves(
    cluster: Cluster, commands: Iterable[Command], waves: tuple[int, ...], known: NodeEligibility | None
) -> list[Move]:
    """One move for each command; `waves` and `known` as for `move_of` and `find_candidates`."""
    commands = list(commands)
    totals = _balanced_totals(cluster, commands, known)
    return [move_of(command, waves, totals) for command in _in_starting_order(commands)]


def move_of(command: Command, waves: tuple[int, ...] = (), totals: Mapping[str, Totals] = NO_TOTALS) -> Move:
    """The move for a command.

    `waves` are the eviction waves in which the pods leave if its nodes go together with others'. `totals` belong to the
    NodePools that score the move (D-84).
    """
    empty = command.reason == DisruptionReason.EMPTY
    return Move(
        why=command.reason.value,
        claims=tuple(sorted(candidate.node.place.claim for candidate in command.candidates)),
        replacements=tuple(map(_planned, command.replacements)),
        placements=command.placements,
        savings=command.savings,
        turns=() if empty else waves,
        scores=scores(command, totals) if totals and not empty else (),
    )


def _in_starting_order(commands: Iterable[Command]) -> list[Command]:
    """Those that save most for each node first: they get what the budgets leave. Each empty node is a command of its
    own, so that none waits for another."""
    single: list[Command] = []
    for command in commands:
        empty = command.reason == DisruptionReason.EMPTY
        single += [removal([candidate]) for candidate in command.candidates] if empty else [command]
    return sorted(
        single,
        key=lambda command: (
            round(-command.savings / len(command.candidates), 9),
            command.evictions,
            command.names,
        ),
    )


def _balanced_totals(
    cluster: Cluster, commands: Iterable[Command], known: NodeEligibility | None
) -> Mapping[str, Totals]:
    """What Balanced NodePools score these commands by; nothing where no candidate is of such a NodePool."""
    pools = (candidate.pool for command in commands for candidate in command.candidates)
    if not any(pool.consolidation_policy == BALANCED for pool in pools):
        return NO_TOTALS
    return pool_totals(cluster, find_candidates(cluster, eligibility.consolidation, known=known).eligible)


def _planned(new: Replacement) -> PlannedClaim:
    """The claim as it will be launched (S-164)."""
    capacity_types = new.capacity_types
    min_values = new.requirements.get(INSTANCE_TYPE).min_values
    requirements = new.requirements.without([INSTANCE_TYPE]).merged(
        [
            Requirement(INSTANCE_TYPE, False, frozenset(new.instance_types), min_values=min_values),
            Requirement(CAPACITY_TYPE, False, frozenset(capacity_types)),
        ]
    )
    return PlannedClaim(
        name="",
        node_pool=new.claim.node_pool,
        pods=new.claim.pods,
        instance_types=new.instance_types,
        requirements=tuple(spec for requirement in requirements for spec in requirement.specs()),
        requests=new.claim.requests,
        price=new.price,
        capacity_types=capacity_types,
        labels=new.claim.labels,
        min_values_relaxed=new.claim.min_values_relaxed,
        overlaid=new.claim.overlaid,
        drivers=new.claim.drivers,
    )
