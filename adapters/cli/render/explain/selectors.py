"""Label selectors in words."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Expression, Selector


def selector_words(selector: Selector | None, *, everything: str = "all pods of its namespace") -> str:
    """The selector as kubectl writes one. `everything` is what an empty one selects."""
    if selector is None:
        return "no pod, since it has no selector"
    labels = [f"{key}={value}" for key, value in sorted(selector.labels.items())]
    asked = labels + [_expression_words(expression) for expression in selector.expressions]
    return f"pods with {', '.join(asked)}" if asked else everything


def _expression_words(expression: Expression) -> str:
    values = ", ".join(expression.values)
    words = {"In": f"{expression.key} in ({values})", "NotIn": f"{expression.key} notin ({values})"}
    return words.get(expression.operator, f"{'!' if expression.operator == 'DoesNotExist' else ''}{expression.key}")
