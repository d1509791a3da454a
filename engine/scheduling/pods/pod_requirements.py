"""What a pod's shape asks of nodes, and what it gives up when it finds no place (S-27…S-37)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import NEGATIVE, Requirement, Requirements, requirement
from kerf.engine.model.kubernetes.pods import AffinityTerm, Expression, PodShape, SpreadConstraint
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE

HARD_SPREAD = "DoNotSchedule"


def hard_spreads(shape: PodShape) -> list[SpreadConstraint]:
    """The spreads that kube-scheduler must keep."""
    return [spread for spread in shape.spread if spread.when_unsatisfiable == HARD_SPREAD]


def spread_keys(shape: PodShape) -> frozenset[str]:
    """The labels that the pod is spread over, whether it must be or not."""
    return frozenset([normalise(constraint.topology_key) for constraint in shape.spread])


def topology_keys(shape: PodShape) -> frozenset[str]:
    """The labels that its spreads and its affinity look at."""
    terms = (*shape.affinity, *shape.anti_affinity)
    return spread_keys(shape).union([normalise(term.topology_key) for term in terms])


def requirements_of(shape: PodShape, preferences: bool = True) -> Requirements:
    """What a pod asks of a node's labels: its nodeSelector, the first required term and, with
    `preferences`, the heaviest preferred one (S-27, S-28)."""
    return Requirements(_asked(shape, preferences))


def mentions(shape: PodShape, key: str) -> bool:
    """Whether a pod asks for a label in any way, be it in a term that it would give up."""
    terms = (*shape.required_terms, *(preferred.term for preferred in shape.preferred_terms))
    keys = (*shape.node_selector, *(expression.key for term in terms for expression in term.expressions))
    return any(normalise(asked) == key for asked in keys)


def contradictions(shape: PodShape, preferences: bool = True) -> tuple[str, ...]:
    """The labels of which the pod asks what no value can meet. Merged, such requirements read DoesNotExist (S-4, S-10);
    a node without the label would satisfy that, but none of what the pod asked for (unlike S-17)."""
    asked = _asked(shape, preferences)
    there = {requirement.key for requirement in asked if requirement.operator not in NEGATIVE}
    return tuple(
        requirement.key
        for requirement in Requirements(asked)
        if requirement.operator == "DoesNotExist" and requirement.key in there
    )


def _asked(shape: PodShape, preferences: bool) -> list[Requirement]:
    asked = [requirement(key, "In", (value,)) for key, value in shape.node_selector.items()]
    expressions: tuple[Expression, ...] = ()
    if preferences and shape.preferred_terms:
        heaviest = max(shape.preferred_terms, key=lambda term: term.weight)  # the first of equals
        expressions += heaviest.term.expressions
    if shape.required_terms:
        expressions += shape.required_terms[0].expressions
    return asked + [requirement(expression.key, expression.operator, expression.values) for expression in expressions]


def _without_heaviest(terms: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
    """The terms without the heaviest preferred one; all of them if none is preferred. (Required terms have weight
    0.)"""
    heaviest = max(terms, key=lambda term: term.weight, default=None)
    if heaviest is None or heaviest.weight == 0:
        return terms
    index = terms.index(heaviest)
    return terms[:index] + terms[index + 1 :]


def _without_soft_spread(spread: tuple[SpreadConstraint, ...]) -> tuple[SpreadConstraint, ...]:
    """The constraints without the first ScheduleAnyway one. The last of the list takes its place (S-34)."""
    for index, constraint in enumerate(spread):
        if constraint.when_unsatisfiable != HARD_SPREAD:
            rest = list(spread)
            last = rest.pop()
            if index < len(rest):
                rest[index] = last
            return tuple(rest)
    return spread


def relaxed_shape(shape: PodShape, soft_taints: bool) -> PodShape | None:
    """The shape after the first step of S-33 that changes something; None if nothing is left to give up.

    `soft_taints`: some NodePool has a PreferNoSchedule taint, so that tolerating these is a step too.
    """
    if len(shape.required_terms) > 1:
        return replace(shape, required_terms=shape.required_terms[1:])
    affinity = _without_heaviest(shape.affinity)
    if affinity != shape.affinity:
        return replace(shape, affinity=affinity)
    anti_affinity = _without_heaviest(shape.anti_affinity)
    if anti_affinity != shape.anti_affinity:
        return replace(shape, anti_affinity=anti_affinity)
    if shape.preferred_terms:
        heaviest = max(range(len(shape.preferred_terms)), key=lambda i: (shape.preferred_terms[i].weight, -i))
        kept = tuple(preferred for i, preferred in enumerate(shape.preferred_terms) if i != heaviest)
        return replace(shape, preferred_terms=kept)
    spread = _without_soft_spread(shape.spread)
    if spread != shape.spread:
        return replace(shape, spread=spread)
    if soft_taints and TOLERATES_PREFER_NO_SCHEDULE not in shape.tolerations:
        return replace(shape, tolerations=(*shape.tolerations, TOLERATES_PREFER_NO_SCHEDULE))
    return None


def hard_keys(shape: PodShape) -> frozenset[str]:
    """The labels that the pod must be spread over, without the hostname, which every node has."""
    hard = hard_spreads(shape)
    return frozenset(normalise(constraint.topology_key) for constraint in hard) - {HOSTNAME}


def required_terms_again(original_shape: PodShape, shape: PodShape) -> PodShape | None:
    """The last step, for a pod that gave up more than required terms: its shape as it is now, with the required terms
    that it gave up first. None if these were tried like this before."""
    last = original_shape.required_terms[-1:]
    others = tuple(term for term in original_shape.required_terms if (term,) != last)
    if not others or shape.required_terms != last or _preferences(shape) == _preferences(original_shape):
        return None
    return replace(shape, required_terms=others)


def _preferences(shape: PodShape) -> tuple[object, ...]:
    return shape.affinity, shape.anti_affinity, shape.preferred_terms, shape.spread, shape.tolerations


def alternatives_of(shape: PodShape) -> tuple[Requirements, ...]:
    """What the pod asks of a node, once for each of its required terms (S-122)."""
    own = Requirements.of_labels(shape.node_selector)
    if not shape.required_terms:
        return (own,)
    return tuple(own.merged(Requirements.of_expressions(term.expressions)) for term in shape.required_terms)
