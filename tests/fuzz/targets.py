"""All fuzz targets, by name."""

from __future__ import annotations

from tests.fuzz import imports, manifests, records, scenarios, texts
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    **manifests.TARGETS,
    **scenarios.TARGETS,
    **records.TARGETS,
    **texts.TARGETS,
    **imports.TARGETS,
}
