"""Find what may be mistyped in a scenario: its own fields are refused, names in its objects are noted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.mistyped import NOTES, mistyped, values_given, values_of
from kerf.engine.model.reasons import Reason
from kerf.replay.scenarios.errors import ScenarioError

FIELDS = (
    "name", "family", "now", "pods", "nodePools", "instanceTypes", "instanceTypesByNodePool", "nodes", "daemonSets",
    "namespaces", "pdbs", "schedulerConfig", "services", "workloads", "nodeOverlays", "capacityBuffers", "podTemplates",
    "resourceClaims", "deviceClasses", "resourceSlices", "pvcs", "pvs", "storageClasses", "csiNodes", "options",
)  # fmt: skip
OPTIONS = ("preferencePolicy", "minValuesPolicy", "ignoreDraRequests", "featureGates")
MIN_SIMILARITY = 0.85
"""How similar an unknown field must be to a known one to be taken for a typing error. Others are ignored."""

_TEXTS = {
    **NOTES,
    "no-types-given": "the scenario gives it no instance types. List them under instanceTypes.inline, or name a "
    "catalogue of --catalogues (docs/plan.md)",
}


def check_fields(scenario: Mapping[str, Any]) -> None:
    """Raise ScenarioError (KERF840) for a field or an option that is spelt nearly like a known one."""
    options = scenario.get("options")
    for path, fields, known in (("", scenario, FIELDS), ("options.", options, OPTIONS)):
        for name in fields if isinstance(fields, Mapping) else ():
            similar = _similar_field(str(name), known)
            if similar:
                raise ScenarioError(f"there is no field {name}", where=f"{path}{name}", hint=f"Is it {similar}?")


def _similar_field(name: str, known: Collection[str]) -> str:
    if name in known:
        return ""
    same = [field for field in known if field.lower() == name.lower()]
    return next(iter(same or did_you_mean(name, known, similarity=MIN_SIMILARITY)), "")


def typo_notes(offered: Iterable[tuple[NodePool, Catalogue]], shapes: Iterable[PodShape]) -> list[dict[str, Any]]:
    """Note NodePools without instance types, and labels and values of NodePools and pods that look mistyped.

    They are compared with the labels of the instance types and of NodePools, and the names of these. NodeClasses do not
    matter here.
    """
    pools = list(offered)
    known = {key: set(values) for key, values in values_given(pool for pool, _ in pools).items()}
    for catalogue in {id(pool): pool for _, pool in pools}.values():
        for key, values in values_of(catalogue).items():
            known.setdefault(key, set()).update(values)
    objects_and_notes = [
        (f"NodePool/{pool.name}", Reason("no-types-given")) for pool, catalogue in pools if not catalogue.types
    ]
    objects_and_notes += [(f"NodePool/{pool.name}", note) for pool, _ in pools for note in mistyped(pool, (), known)]
    objects_and_notes += [
        ("pods", note)
        for note in _without_repeats(note for shape in shapes for note in mistyped(shape, (shape,), known))
    ]
    return [
        {"object": about, "code": note.code, "params": note.params, "text": _TEXTS[note.code].format_map(_shown(note))}
        for about, note in objects_and_notes
        if not note.code.endswith("node-class")
    ]


def _without_repeats(reasons: Iterable[Reason]) -> Iterator[Reason]:
    seen: list[Reason] = []
    for reason in reasons:
        if reason not in seen:
            seen.append(reason)
            yield reason


def _shown(note: Reason) -> dict[str, Any]:
    return {key: ", ".join(param) if isinstance(param, list) else param for key, param in note.params.items()}
