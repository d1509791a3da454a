"""Which fields of the state hold names: a bundle that begins in the middle of a record carries one. As pseudonym_rules.

What the fold makes of names is made of the pseudonyms here, so that deciding goes on as in the record.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.store.pseudonyms.fields import FIELDS
from kerf.adapters.store.pseudonyms.replacements import (
    BLOB,
    Keyed,
    Names,
    Rule,
    StructRule,
    difference,
    keep,
    key_map,
    kind,
    last_part,
    namespaced,
    pod_key,
    template,
    words,
)
from kerf.engine.model.content_digest import deviation
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodepool_health import PoolHealth
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.nodeclaim.claim import Effect, NodeClaim
from kerf.engine.state.objects.nodepool_health import spec_of
from kerf.engine.state.state import DaemonPod, Facts, Found, Orphan, StaticPool


def _made_from(found: dict[str, str], names: Names) -> dict[str, str]:
    """The fields of a NodePool or of a NodeClass."""
    if "nodeClassRef.name" not in found:
        return template(found, names)
    changed = {}
    for path, text in found.items():
        field, space, at = path.partition(" ")
        each = difference(Difference(field, at, text), names)
        assert isinstance(each, Difference)
        changed[field + space + each.key] = each.was or ""
    return changed


def _deletion(actor: str, names: Names) -> str:
    return actor if actor in ("", "unknown") else names.name("actor", actor)


def _health(health: PoolHealth, names: Names) -> Struct:
    """The message is kerf's own, or the cloud's."""
    said = words(health.message, names) if health.reason == "RegistrationFailed" else ""
    return replace(health, message=said)


def _stream(stream: str, names: Names) -> str:
    start, slash, name = stream.partition("/")
    return start + slash + (names.name("claim", name) if start == "nodeclaim" else name)


def _workload_key(value: str, names: Names) -> str:
    before, slash, rest = value.partition("/")
    return before + slash + namespaced("workload", rest, names)


def _in_namespace(name: str) -> Rule:
    def rule(value: str, names: Names) -> str:
        return namespaced(name, value, names)

    return rule


_CLAIM, _NODE, _POOL, _INSTANCE = kind("claim"), kind("node"), kind("nodepool"), kind("instance")
_CLASS_KEY = last_part("nodeclass")

STATE_FIELDS: dict[type[Struct], dict[str, Rule] | StructRule] = {
    **FIELDS,
    Facts: {
        "record": keep, "settings_digest": keep, "streams": Keyed(_stream, keep), "pods": Keyed(keep),
        "nodes": Keyed(_NODE), "claims": Keyed(_CLAIM), "pools": Keyed(_POOL), "node_classes": Keyed(_CLASS_KEY),
        "catalogues": Keyed(_CLASS_KEY, BLOB), "daemonsets": Keyed(keep),
        "reservations": Keyed(_CLASS_KEY), "daemon_pods": Keyed(keep), "pdbs": Keyed(keep),
        "namespaces": Keyed(kind("namespace")), "volume_claims": Keyed(_in_namespace("volume-claim")),
        "volumes": Keyed(kind("volume")), "storage_classes": Keyed(kind("storage-class")), "csi_nodes": Keyed(_NODE),
        "attachments": Keyed(kind("attachment")), "unavailable": keep, "launches": Keyed(_CLAIM),
        "intents": Keyed(keep), "orphans": Keyed(_INSTANCE), "found": Keyed(_CLAIM), "searches": Keyed(_CLAIM),
        "lone": Keyed(_NODE),
        "messages": Keyed(kind("message"), keep), "services": Keyed(_in_namespace("service")),
        "workloads": Keyed(_workload_key), "overlays": Keyed(kind("overlay")),
        "buffers": Keyed(_in_namespace("buffer")),
        "pod_templates": Keyed(_in_namespace("pod-template")),
        "resource_claims": Keyed(_in_namespace("resource-claim")), "device_classes": Keyed(kind("device-class")),
        "resource_slices": Keyed(kind("resource-slice")), "arrived": keep, "buffered": Keyed(words, keep),
        "targets": Keyed(keep, words), "nominations": Keyed(keep, _NODE), "rest": keep, "static": Keyed(_POOL),
        "plan_digest": keep, "moves": Keyed(keep), "holds": Keyed(_CLAIM), "health": Keyed(_POOL),
        "made_from": Keyed(keep, _made_from), "over": Keyed(_CLAIM, keep),
    },
    DaemonPod: {"uid": keep, "shape": BLOB},
    Orphan: {"claim": _CLAIM},
    Found: {},
    StaticPool: {"code": keep},
    PoolHealth: _health,
    Effect: {"ref": keep, "code": keep, "pod": pod_key},
    NodeClaim: {
        "name": _CLAIM, "state": keep, "before": keep, "node_pool": _POOL, "instance_types": keep, "requests": keep,
        "pods": keep, "labels": key_map, "annotations": key_map, "instance": _INSTANCE,
        "provider_id": last_part("instance"), "instance_type": keep, "zone": keep, "capacity_type": keep,
        "image": kind("image"), "class_hash": keep, "subnet": kind("subnet"),
        "security_groups": kind("security-group"), "capacity": keep, "allocatable": keep, "node": _NODE, "why": keep,
        "detail": words, "instance_status": keep, "effects": Keyed(keep), "deletion": _deletion, "interruption": keep,
        "repair": keep, "inconsistent": keep, "verdict": keep,
    },
}  # fmt: skip


def made_anew(facts: Facts, plan_digest: str) -> None:
    """What the fold makes of names, made of the pseudonyms that now stand there: digests of what was compared with the
    same in the record before. `plan_digest` is that of the latest plan's result."""
    facts.settings_digest = deviation(facts.settings)
    facts.plan_digest = plan_digest
    pools: Mapping[str, NodePool] = facts.pools
    facts.health = {
        name: replace(health, pool=spec_of(pools[name])) if name in pools else health
        for name, health in facts.health.items()
    }
