"""Fill in what admission adds to a new pod: its priority, as the Priority admission plugin does."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.kubernetes.priority_classes import BUILT_IN, PriorityClass


def with_priority(shape: PodShape, classes: Mapping[str, PriorityClass]) -> PodShape:
    """Return the shape with the priority of the class that it names, or of the default class. A class that is not known
    gives none; no pod is refused for that here."""
    if shape.priority:
        return shape
    known = {priority_class.name: priority_class for priority_class in BUILT_IN} | dict(classes)
    usual = max((priority_class.value for priority_class in classes.values() if priority_class.default), default=0)
    named = known.get(shape.priority_class)
    priority = named.value if named is not None else 0 if shape.priority_class else usual
    return replace(shape, priority=priority)
