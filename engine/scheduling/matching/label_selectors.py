"""Which pods a label selector selects, in which namespaces (S-123…S-125)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pods import AffinityTerm, Expression, PodShape, Selector, SpreadConstraint

METADATA_NAME = "kubernetes.io/metadata.name"


class PodSelector(Struct, frozen=True, cache_hash=True):
    """A selector of pods in some namespaces. Entries are distinct and sorted, so equal selectors are equal values.
    `nothing`: a nil selector, which selects no pod (S-123)."""

    namespaces: frozenset[str]
    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Expression, ...] = ()
    nothing: bool = False

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (
            not self.nothing
            and namespace in self.namespaces
            and all(labels.get(key) == value for key, value in self.labels)
            and all(expression_matches(expression, labels) for expression in self.expressions)
        )


def expression_matches(expression: Expression, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy one expression: In, NotIn, Exists or DoesNotExist. A missing label satisfies the negative
    ones."""
    value = labels.get(expression.key)
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "NotIn":
        return value not in expression.values
    return (value is not None) == (expression.operator == "Exists")


def selector_matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches these labels, in whatever namespace."""
    return _selector(frozenset([""]), selector, ()).selects("", labels)


def spread_selector(constraint: SpreadConstraint, namespace: str, labels: Mapping[str, str]) -> PodSelector:
    """The pods that a spread constraint counts, for a pod with these labels (S-124, S-125)."""
    return _selector(
        frozenset([namespace]), constraint.selector, _label_expressions("In", constraint.match_label_keys, labels)
    )


def term_selector(
    term: AffinityTerm, namespace: str, labels: Mapping[str, str], namespaces: Iterable[Namespace]
) -> PodSelector:
    """The pods that an affinity term is about, for a pod with these labels (S-124)."""
    named = frozenset(term.namespaces)
    if term.namespace_selector is not None:
        named |= frozenset(
            namespace.name for namespace in namespaces if selector_matches(term.namespace_selector, namespace.labels)
        )
    elif not named:
        named = frozenset([namespace])
    more = [
        *_label_expressions("In", term.match_label_keys, labels),
        *_label_expressions("NotIn", term.mismatch_label_keys, labels),
    ]
    return _selector(named, term.selector, more)


def shape_selectors(shape: PodShape, namespace: str, namespaces: Iterable[Namespace]) -> tuple[PodSelector, ...]:
    """The selectors of all spread constraints and affinity terms of such a pod."""
    spreads = (spread_selector(constraint, namespace, shape.labels) for constraint in shape.spread)
    terms = (*shape.affinity, *shape.anti_affinity)
    return (*spreads, *(term_selector(term, namespace, shape.labels, namespaces) for term in terms))


def required_affinity_selectors(shape: PodShape, namespace: str, namespaces: Iterable[Namespace]) -> list[PodSelector]:
    """For each required affinity term, the pods that such a pod must be with."""
    return [term_selector(term, namespace, shape.labels, namespaces) for term in shape.affinity if not term.weight]


def _label_expressions(operator: str, keys: Iterable[str], labels: Mapping[str, str]) -> list[Expression]:
    return [Expression(key, operator, (labels[key],)) for key in keys if key in labels]


def _selector(namespaces: frozenset[str], selector: Selector | None, more: Iterable[Expression]) -> PodSelector:
    if selector is None:
        return PodSelector(namespaces, nothing=True)
    distinct = {
        (expression.key, expression.operator, tuple(sorted(frozenset(expression.values))))
        for expression in (*selector.expressions, *more)
    }
    return PodSelector(
        namespaces, tuple(sorted(selector.labels.items())), tuple(Expression(*entry) for entry in sorted(distinct))
    )
