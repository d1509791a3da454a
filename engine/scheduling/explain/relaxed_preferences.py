"""What a pod has given up to find its place (S-31, S-33). It is for explanations only and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import AffinityTerm, NodeTerm, PodShape
from kerf.engine.model.labels import normalise
from kerf.engine.model.reasons import ReasonCode
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE


class RelaxationKind(ReasonCode):
    """What a pod may give up for a place, with its words."""

    REQUIRED_TERM = "required-term", "{asked}, the first of its alternatives"
    PREFERRED_TERM = "preferred-term", "its preference for {asked}"
    AFFINITY = "affinity", "its preference to be with other pods, over {key}"
    ANTI_AFFINITY = "anti-affinity", "its preference to be apart from other pods, over {key}"
    SPREAD = "spread", "its spread over {key}, which is ScheduleAnyway"
    SOFT_TAINTS = "soft-taints", "to keep off taints that are PreferNoSchedule"


class RelaxedPreference(Struct, frozen=True, omit_defaults=True):
    """One thing that a pod gave up. `what`: a `RelaxationKind`. `requirements`: what a term asked of nodes. `key`: of
    topology. `weight`: of a preference."""

    what: str
    requirements: tuple[str, ...] = ()
    key: str = ""
    weight: int = 0


def relaxed_preferences(before: PodShape, after: PodShape) -> tuple[RelaxedPreference, ...]:
    """What the shape has no more after it was relaxed, in the order of S-33."""
    relaxed = [
        RelaxedPreference(RelaxationKind.REQUIRED_TERM.value, _asked(term))
        for term in before.required_terms
        if term not in after.required_terms
    ]
    relaxed += _terms(RelaxationKind.AFFINITY.value, before.affinity, after.affinity)
    relaxed += _terms(RelaxationKind.ANTI_AFFINITY.value, before.anti_affinity, after.anti_affinity)
    relaxed += [
        RelaxedPreference(RelaxationKind.PREFERRED_TERM.value, _asked(preferred.term), weight=preferred.weight)
        for preferred in before.preferred_terms
        if preferred not in after.preferred_terms
    ]
    relaxed += [
        RelaxedPreference(RelaxationKind.SPREAD.value, key=normalise(constraint.topology_key))
        for constraint in before.spread
        if constraint not in after.spread
    ]
    if TOLERATES_PREFER_NO_SCHEDULE in after.tolerations and TOLERATES_PREFER_NO_SCHEDULE not in before.tolerations:
        relaxed.append(RelaxedPreference(RelaxationKind.SOFT_TAINTS.value))
    return tuple(relaxed)


def _terms(what: str, before: Iterable[AffinityTerm], after: Iterable[AffinityTerm]) -> list[RelaxedPreference]:
    kept = tuple(after)
    return [
        RelaxedPreference(what, key=normalise(term.topology_key), weight=term.weight)
        for term in before
        if term not in kept
    ]


def _asked(term: NodeTerm) -> tuple[str, ...]:
    return tuple(str(requirement) for requirement in Requirements.of_expressions(term.expressions))
