"""The names in the latest entries of a record, read without a fold."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct, field

from kerf.adapters.cli.completion.latest_entries import Raw, latest_entries
from kerf.engine.model.kubernetes.pods import Owner
from kerf.projections.prose.amounts import moment
from kerf.projections.workload_names import owner_name

MAX_DECISIONS = 20


def _kinds() -> dict[str, dict[str, None]]:
    kinds = ("nodeclaim", "node", "nodepool", "workload", "pod", "instance", "poddisruptionbudget", "nodeclass")
    return {kind: {} for kind in kinds}


class Known(Struct):
    """Names by kind: of what can be explained, and of objects that can be deleted; and the latest decisions, by
    position, the last one first."""

    subjects: dict[str, dict[str, None]] = field(default_factory=_kinds)
    objects: dict[str, dict[str, None]] = field(default_factory=dict)
    decisions: dict[str, str] = field(default_factory=dict)
    pools: dict[str, Raw] = field(default_factory=dict)

    def add(self, entry: Raw) -> None:
        kind, _, what = entry.type.partition(".")
        payload = entry.payload
        if kind == "claim":
            self._name("nodeclaim", payload.get("claim", ""))
            self._name("instance", payload.get("instance", ""))
        elif kind == "decision" and len(self.decisions) < MAX_DECISIONS:
            at = entry.at if isinstance(entry.at, str) else moment(entry.at)
            self.decisions[str(entry.position)] = f"{payload.get('decider', '')} at {at}"
        elif what == "seen" and "name" in payload:
            self._object(kind, payload, entry)

    def _object(self, kind: str, payload: dict[str, str], entry: Raw) -> None:
        name = "/".join(filter(None, (payload.get("namespace", ""), payload["name"])))
        self.objects.setdefault(kind, {})[name] = None
        if kind in self.subjects:
            self._name(kind, name)
        if kind == "pdb":
            self._name("poddisruptionbudget", name)
        if kind == "nodepool":
            self.pools.setdefault(name, entry)
        if kind == "pod" and "owner" in payload:
            owner = msgspec.convert(payload["owner"], Owner)
            self._name("workload", owner_name(payload.get("namespace", ""), owner).key)

    def _name(self, kind: str, name: str) -> None:
        if name:
            self.subjects[kind][name] = None

    def fields(self) -> Iterator[tuple[str, str]]:
        """Yields the fields of NodePools as `kerf whatif --set` names them, with their values."""
        from kerf.engine.model.karpenter.nodepools import NodePool
        from kerf.projections.differences.field_changes import flat
        from kerf.projections.differences.node_pool_document import node_pool_document

        for name, entry in sorted(self.pools.items()):
            spec = node_pool_document(msgspec.convert(entry.payload, NodePool))["spec"]
            yield from ((f"nodepool/{name}.{path}", value) for path, value in flat({"spec": spec}).items())


def known_of(record: str) -> Known:
    """Returns the names of a record in a file or folder. Raises what reading it does."""
    known = Known()
    for entry in latest_entries(record):
        known.add(entry)
    return known
