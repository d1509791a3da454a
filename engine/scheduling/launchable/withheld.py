"""What a NodePool launches nothing for, because several launches in a row did not give it (D-125)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.karpenter.nodepool_health import MAX_VAIN_LAUNCHES
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.requirements import Requirement, Requirements
from kerf.engine.scheduling.reasons import SchedulingCode, reason


def withheld_among(asked: Iterable[Requirement], withheld: Iterable[RequirementSpec]) -> tuple[Requirement, ...]:
    """Those of the requirements that nothing is launched for. One that asks for less than what was not given may be
    met, and is tried."""
    vain = [Requirements.of_specs([spec]).get(spec.key) for spec in withheld]
    return tuple(
        requirement
        for requirement in asked
        if any(each.key == requirement.key and each.allows_all_of(requirement) for each in vain)
    )


def withheld_of_pool(pool: NodePool, withheld: Iterable[RequirementSpec]) -> tuple[str, ...]:
    """Those of the NodePool's own requirements that nothing is launched for, as messages show them."""
    return tuple(map(str, withheld_among(Requirements.of_specs(pool.requirements), withheld)))


def not_given(requirements: Iterable[Requirement], **about: str) -> Reason:
    """Why nothing is launched for these requirements."""
    shown = [str(requirement) for requirement in requirements]
    return reason(SchedulingCode.LABEL_NOT_GIVEN, requirements=shown, launches=MAX_VAIN_LAUNCHES, **about)
