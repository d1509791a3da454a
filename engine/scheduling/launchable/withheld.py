"""What a NodePool launches nothing for, because several launches in a row did not give it (D-125)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kerf.engine.model.karpenter.nodepool_health import MAX_VAIN_LAUNCHES
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirement, Requirements
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.reasons import SchedulingCode, reason


def withheld_among(asked: Iterable[Requirement], withheld: tuple[RequirementSpec, ...]) -> tuple[Requirement, ...]:
    """Those of the requirements that nothing is launched for: all that they allow is among what was not given."""
    vain = _by_label(withheld)
    return tuple(
        requirement
        for requirement in asked
        if any(in_vain.allows_all_of(requirement) for in_vain in vain.get(requirement.key, ()))
    )


@lru_cache(maxsize=256)
def _by_label(withheld: tuple[RequirementSpec, ...]) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for spec in withheld:
        for requirement in Requirements.of_specs([spec]):
            found.setdefault(requirement.key, []).append(requirement)
    return found


def withheld_of_pool(pool: NodePool, withheld: tuple[RequirementSpec, ...]) -> tuple[str, ...]:
    """Those of the NodePool's own requirements that nothing is launched for, as messages show them."""
    return tuple(map(str, withheld_among(Requirements.of_specs(pool.requirements), withheld)))


def not_given(requirements: Iterable[Requirement], **about: str) -> Reason:
    """Why nothing is launched for these requirements."""
    shown = [str(requirement) for requirement in requirements]
    return reason(SchedulingCode.LABEL_NOT_GIVEN, requirements=shown, launches=MAX_VAIN_LAUNCHES, **about)
