"""Match label selectors as the API's controllers do."""

from __future__ import annotations

from kerf.adapters.simulation.scheduler.filters import expression_holds
from kerf.engine.model.kubernetes.pods import Selector


def selector_matches(selector: Selector | None, labels: dict[str, str]) -> bool:
    """Whether the selector matches the labels. None matches nothing, an empty selector everything (S-123)."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.labels.items()):
        return False
    return all(expression_holds(expression, labels) for expression in selector.expressions)
