"""Which nodes of a scenario a method may take at all, and what they cost: from the scenario's JSON, sharing no code
with what decides (D-10…D-15, D-30…D-39, D-49…D-51, D-59, D-67, D-78…D-80)."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool
from tests.support.judges.budgets import allowed

Document = dict[str, Any]
NODEPOOL, TYPE, ZONE = "karpenter.sh/nodepool", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
CAPACITY_TYPE, DO_NOT_DISRUPT = "karpenter.sh/capacity-type", "karpenter.sh/do-not-disrupt"
DISRUPTED = "karpenter.sh/disrupted"
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def duration(text: str) -> float | None:
    """A Go duration in seconds; None for what is none."""
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+", text):
        return None
    sign = -1.0 if text.startswith("-") else 1.0
    return sign * sum(
        float(number) * UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d*)?)(ns|us|µs|ms|s|m|h)", text)
    )


class PodView:
    """One bound pod of a scenario."""

    def __init__(self, document: Document, now: str) -> None:
        self.document = document
        metadata, status = document["metadata"], document.get("status") or {}
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "default")
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.annotations: dict[str, str] = metadata.get("annotations") or {}
        self.phase: str = status.get("phase", "Running")
        self.deleting = bool(metadata.get("deletionTimestamp"))
        self.started = seconds(status.get("startTime", metadata.get("creationTimestamp", now)))
        owners = metadata.get("ownerReferences") or []
        self.owners = {f"{owner['apiVersion']}/{owner['kind']}" for owner in owners}
        conditions = status.get("conditions")
        self.ready = conditions is None or any(
            condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
        )

    @property
    def active(self) -> bool:
        return not self.deleting and self.phase not in ("Failed", "Succeeded")

    @property
    def reschedulable(self) -> bool:
        own = bool(self.owners & {"apps/v1/DaemonSet", "v1/Node"})
        stateful = self.deleting and "apps/v1/StatefulSet" in self.owners and self.phase not in ("Failed", "Succeeded")
        return (self.active or stateful) and not own

    def protected(self, now: float) -> bool:
        """Whether do-not-disrupt is in force for the pod (D-12)."""
        text = self.annotations.get(DO_NOT_DISRUPT, "")
        if text == "true":
            return True
        length = duration(text)
        return length is not None and length > 0 and now - self.started < length

    @property
    def at_home(self) -> bool:
        """Tolerates the disrupted taint (D-11)."""
        for toleration in self.document["spec"].get("tolerations") or []:
            if toleration.get("effect", "") in ("", "NoSchedule") and toleration.get("key", "") in ("", DISRUPTED):
                exists = toleration.get("operator") == "Exists"
                if exists or (toleration.get("key") == DISRUPTED and not toleration.get("value")):
                    return True
        return False

    @property
    def cost(self) -> float:
        """What it costs to evict the pod (D-36)."""
        text = self.annotations.get("controller.kubernetes.io/pod-deletion-cost", "0")
        deletion = int(text) if re.fullmatch(r"[+-]?\d+", text) else 0
        priority = self.document["spec"].get("priority") or 0
        return max(-10.0, min(10.0, 1.0 + deletion / 2**27 + priority / 2**25))


class NodeView:
    """One entry of `nodes`."""

    def __init__(self, entry: Document, now: str) -> None:
        self.entry = entry
        self.node: Document | None = entry.get("node")
        self.claim: Document | None = entry.get("nodeClaim")
        of_node = (self.node or {}).get("metadata") or {}
        of_claim = (self.claim or {}).get("metadata") or {}
        self.registered = self.claim is None or (of_node.get("labels") or {}).get("karpenter.sh/registered") == "true"
        shown = of_node if self.node and self.registered else of_claim
        self.name: str = shown.get("name", "")
        self.labels: dict[str, str] = shown.get("labels") or {}
        self.annotations: dict[str, str] = of_node.get("annotations") or {}
        self.initialized = self.claim is None or (of_node.get("labels") or {}).get("karpenter.sh/initialized") == "true"
        self.terminating = self._true("InstanceTerminating")
        self.marked = bool(
            entry.get("markedForDeletion")
            or of_claim.get("deletionTimestamp")
            or self.terminating
            or (self.claim is None and of_node.get("deletionTimestamp"))
        )
        self.pool: str = self.labels.get(NODEPOOL, "")
        self.pods = [PodView(pod, now) for pod in entry.get("pods") or []]
        self.consolidatable = self._true("Consolidatable")
        ready = ((self.node or {}).get("status") or {}).get("conditions") or []
        self.ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in ready)

    def _true(self, kind: str) -> bool:
        conditions = ((self.claim or {}).get("status") or {}).get("conditions") or []
        return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)

    @property
    def quiet_since(self) -> float:
        """D-56: T."""
        status = (self.claim or {}).get("status") or {}
        if status.get("lastPodEventTime"):
            return seconds(status["lastPodEventTime"])
        since = [
            condition["lastTransitionTime"]
            for condition in status.get("conditions") or []
            if condition["type"] == "Initialized"
        ]
        return seconds(since[0]) if since else 0.0


class Rules:
    """A scenario before the rules. `pools` and `catalogues`: the NodePools and what they may launch, by name."""

    def __init__(self, scenario: Document, pools: Mapping[str, NodePool], catalogues: Mapping[str, Catalogue]) -> None:
        self.scenario, self.pools, self.catalogues = scenario, pools, catalogues
        self.now = seconds(scenario["now"])
        self.nodes = {view.name: view for view in (NodeView(node, scenario["now"]) for node in scenario["nodes"])}
        self.pdbs: list[Document] = scenario.get("pdbs") or []

    # ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def evictable(self, pod: PodView) -> bool:
        return pod.active and not pod.at_home and "v1/Node" not in pod.owners and not pod.protected(self.now)

    def budgets_of(self, pod: PodView) -> list[Document]:
        """D-13; of the selectors that scenarios have: matchLabels."""
        if not self.evictable(pod):
            return []
        found = []
        for pdb in self.pdbs:
            wanted = ((pdb["spec"].get("selector") or {}).get("matchLabels")) or {}
            if pdb["metadata"].get("namespace", "default") == pod.namespace and wanted.items() <= pod.labels.items():
                found.append(pdb)
        return found

    def _blocked(self, pod: PodView, *, for_good: bool) -> bool:
        found = self.budgets_of(pod)
        if len(found) != 1:
            return len(found) > 1
        spec = found[0]["spec"]
        if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and not pod.ready:
            return False
        if for_good:
            return str(spec.get("maxUnavailable")) in ("0", "0%") or spec.get("minAvailable") == "100%"
        return not (found[0].get("status") or {}).get("disruptionsAllowed", 0)

    def moves(self, pod: PodView) -> bool:
        """Currently reschedulable."""
        held = pod.active and pod.protected(self.now)
        return pod.reschedulable and not held and not self._blocked(pod, for_good=True)

    # ── nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def excluded(self, name: str) -> str:
        """The code of what excludes a node from every method (D-30), "" for nothing."""
        node = self.nodes[name]
        checks = {
            "not-managed": node.claim is None,
            "no-node": node.node is None,
            "not-initialized": not node.initialized,
            "going": node.marked,
            "nominated": bool(node.entry.get("nominated")),
            "do-not-disrupt": node.annotations.get(DO_NOT_DISRUPT) == "true",
            "no-nodepool-label": NODEPOOL not in node.labels,
            "no-nodepool": node.pool not in self.pools,
            "no-instance-types": node.pool in self.pools and not self.catalogues[node.pool].types,
            "pod-do-not-disrupt": any(pod.active and pod.protected(self.now) for pod in node.pods),
            "pod-budgets": any(self._blocked(pod, for_good=False) for pod in node.pods),
        }
        return next((code for code, holds in checks.items() if holds), "")

    def refused(self, name: str, reason: str) -> str:
        """The code of what excludes a node from a method, "" for nothing."""
        why = self.excluded(name)
        if why:
            return why
        node, pool = self.nodes[name], self.pools[self.nodes[name].pool]
        empty = self.cost(name) <= 1.0
        underutilized = reason == "Underutilized"
        checks = {
            "static-nodepool": pool.replicas is not None,
            "unknown-instance-type": underutilized and self.type_of(node) is None,
            "missing-label": underutilized and not (CAPACITY_TYPE in node.labels and ZONE in node.labels),
            "consolidate-after-never": pool.consolidate_after is None,
            "has-pods": not underutilized and not empty,
            "empty": underutilized and empty,
            "policy-when-empty": underutilized and pool.consolidation_policy == "WhenEmpty",
            "not-consolidatable": not node.consolidatable,
        }
        return next((code for code, holds in checks.items() if holds), "")

    def type_of(self, node: NodeView) -> InstanceType | None:
        catalogue = self.catalogues.get(node.pool)
        wanted = node.labels.get(TYPE, "")
        return next(
            (instance_type for instance_type in (catalogue.types if catalogue else ()) if instance_type.name == wanted),
            None,
        )

    def price(self, name: str) -> float:
        """The price of the first offering of a node's type, zone and capacity type, else 0 (D-34)."""
        node = self.nodes[name]
        found = self.type_of(node)
        wanted = node.labels.get(ZONE), node.labels.get(CAPACITY_TYPE)
        prices = [
            offering.price
            for offering in (found.offerings if found else ())
            if (offering.zone, offering.capacity_type) == wanted
        ]
        return prices[0] if prices and not math.isnan(prices[0]) else 0.0

    def cost(self, name: str) -> float:
        """What it costs to disrupt a node (D-38)."""
        return 1.0 + math.fsum(max(0.0, pod.cost) for pod in self.nodes[name].pods if pod.reschedulable)

    def settling(self, name: str) -> bool:
        """D-93: no destination for pods that move."""
        node = self.nodes[name]
        pool = self.pools.get(node.pool)
        if pool is None or pool.replicas is not None or not pool.ready or not pool.consolidate_after:
            return False
        if node.claim is None or not node.initialized:
            return False
        return self.now - node.quiet_since < pool.consolidate_after / 1000

    # ── budgets ────────────────────────────────────────────────────────────────────────────────────────────────────

    def room(self, pool: str, reason: str, going: Collection[str] = ()) -> int:
        """How many nodes of a NodePool may still go, for a reason (D-51); those that are `going` are not counted yet,
        though they may not be ready."""
        counted = [
            node
            for node in self.nodes.values()
            if node.claim is not None and node.initialized and not node.terminating and node.pool == pool
        ]
        used = sum(node.marked or not node.ready for node in counted if node.name not in going)
        return max(0, allowed(self.pools[pool], reason, len(counted), int(self.now * 1000)) - used)

    # ── Balanced ───────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _totals(self) -> dict[str, tuple[float, float]]:
        """D-78: what the nodes of a NodePool cost, and to disrupt them all."""
        return {pool: self._total(pool) for pool in self.pools}

    def _total(self, pool: str) -> tuple[float, float]:
        own = [name for name, node in self.nodes.items() if node.pool == pool]
        tracked = math.fsum(
            self.price(name)
            for name in own
            if self.nodes[name].claim is not None and {TYPE, CAPACITY_TYPE, ZONE} <= self.nodes[name].labels.keys()
        )
        eligible = [name for name in own if not self.excluded(name)]
        cost = tracked if tracked > 0 else math.fsum(map(self.price, eligible))
        return cost, math.fsum(self.cost(name) if name in eligible else self._own_cost(name) for name in own)

    def _own_cost(self, name: str) -> float:
        counted = (
            pod
            for pod in self.nodes[name].pods
            if "apps/v1/DaemonSet" not in pod.owners and pod.phase not in ("Failed", "Succeeded")
        )
        return 1.0 + math.fsum(max(0.0, pod.cost) for pod in counted)

    def worth_it(self, names: list[str], savings: float) -> Iterator[str]:
        """D-80, D-81: the Balanced NodePools that refuse a command of these nodes."""
        source = math.fsum(map(self.price, names))
        pools = sorted({self.nodes[name].pool for name in names})
        for pool in pools:
            if self.pools[pool].consolidation_policy != "Balanced":
                continue
            own = [name for name in names if self.nodes[name].pool == pool]
            share = math.fsum(map(self.price, own)) / source if len(pools) > 1 and source > 0 else 1.0
            cost, disruption = self._totals[pool]
            gained, lost = savings * share / cost if cost > 0 else 0.0, math.fsum(map(self.cost, own)) / disruption
            if gained <= 0 or gained / lost < 0.5 - 1e-9:
                yield pool
