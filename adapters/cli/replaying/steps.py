"""Carry out the steps of a recorded workload on a simulation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.cli.replaying.catalogues import RecordedCatalogues
from kerf.adapters.simulation.cloud.market import OfferingSelector
from kerf.adapters.simulation.cluster.controllers.recorded_pods import ReplicaGroup, Slot
from kerf.adapters.simulation.cluster.controllers.workloads import PodTemplate
from kerf.adapters.simulation.errors import NoSuchTargetError
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline import timeline as t
from kerf.adapters.simulation.timeline.perform import perform_action, selected_instances
from kerf.engine.model.durations import format_duration
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.kubernetes.volumes import VolumeClaim
from kerf.engine.record.entry_types import blob_of
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.observations import NodeClassSeen
from kerf.replay.modelled import workload as w

_STRIKES: dict[str, Callable[..., t.OnInstances]] = {
    "interrupt": t.Interrupt,
    "rebalance": t.Rebalance,
    "maintenance": t.Maintenance,
    "reclaim": t.Reclaim,
    "vanish": t.Vanish,
    "cordon": t.Cordon,
    "uncordon": t.Uncordon,
    "node-notready": t.NodeNotReady,
    "delete": partial(t.Delete, kind="NodeClaim"),
}


class Model:
    """A simulation in which a recorded workload runs. `missed` counts what hit no instance, since the model has none of
    that offering."""

    def __init__(self, simulation: Simulation, workload: w.Workload, catalogues: RecordedCatalogues) -> None:
        self.simulation, self._catalogues = simulation, catalogues
        self.missed = 0
        self._blobs = workload.start.indexes.blobs
        self._pods = simulation.cluster.workloads.recorded
        for group in workload.groups:
            self._pods.add_group(group.workload, ReplicaGroup(group.owner_uid, group.owner_name, group.pods))

    def perform(self, step: w.Step) -> None:
        """Carry out one step now."""
        _PERFORM[type(step)](self, step)

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _replicas(self, step: w.Replicas) -> None:
        self._pods.scale(step.workload, step.count)

    def _comes(self, step: w.Comes) -> None:
        pod = step.pod
        self._pods.come(
            step.slot,
            Slot(
                pod=pod, runs=step.runs, phase=step.phase, kept=step.kept, again=step.again, named=step.named,
                uid=pod.uid,
            ),
        )  # fmt: skip

    def _leaves(self, step: w.Leaves) -> None:
        self._pods.leave(step.slot)

    # ── objects ─────────────────────────────────────────────────────────────────────────────────────────────

    def _put(self, step: w.Put) -> None:
        self.put(step.observation.payload, step.observation.blobs)

    def put(self, item: Any, blobs: dict[str, Struct] | None = None) -> None:
        """Let an object be as it is here, with the status that the model has given it."""
        api, workloads = self.simulation.cluster.api, self.simulation.cluster.workloads
        if isinstance(item, NodeClassSeen):
            self._put_node_class(item, blobs or {})
            return
        digest = blob_of(item)
        if digest:
            known = (blobs or {}).get(digest)
            shape = known if isinstance(known, PodShape) else self._blobs.shape(digest)
            item = replace(item, shape=api.keep_shape(shape))
        if isinstance(item, DaemonSet):
            workloads.apply_daemon_set(item, PodTemplate(api.shapes[item.shape]))
        elif isinstance(item, PodDisruptionBudget) and item.uid in api.budgets:
            known = api.budgets[item.uid]
            api.put(
                replace(
                    item, disruptions_allowed=known.disruptions_allowed, expected_pods=known.expected_pods,
                    desired_healthy=known.desired_healthy,
                )
            )  # fmt: skip
        elif isinstance(item, VolumeClaim):
            if item.key not in api.claims:
                api.put(replace(item, volume=""))
        else:
            api.put(item)

    def _put_node_class(self, seen: NodeClassSeen, blobs: dict[str, Struct]) -> None:
        if seen.kind == "EC2NodeClass" and seen.digest and seen.digest not in blobs:
            with suppress(BlobMissing):  # a bundle with pseudonyms leaves it out
                data = self._blobs.source(seen.digest)
                blobs = {seen.digest: msgspec.msgpack.decode(data, type=EC2NodeClass)}
        self.simulation.cloud.put_node_class(seen, blobs)

    def _gone(self, step: w.Gone) -> None:
        cluster, api = self.simulation.cluster, self.simulation.cluster.api
        if step.kind == "nodeclass":
            self.simulation.cloud.drop_node_class(step.key.rpartition("/")[2])
        elif step.kind == "pvc":
            cluster.volumes.delete_claim(step.key)
        elif step.kind == "node":
            cluster.ask_node_deletion(step.key, "kubectl")
        elif (item := api.table(step.kind).get(step.key)) is not None:
            if isinstance(item, Pod):
                api.delete_pod(item)
            elif isinstance(item, DaemonSet):
                cluster.workloads.delete_daemon_set(item)
            else:
                api.remove(item)

    # ── the cloud ───────────────────────────────────────────────────────────────────────────────────────────

    def _sells(self, step: w.Sells) -> None:
        if self._catalogues.sell(self.simulation.cloud.market, step):
            self.simulation.cloud.catalogue_changed(step.node_class)

    def _lacks(self, step: w.Lacks) -> None:
        offering, market = step.offering, self.simulation.cloud.market
        piece = OfferingSelector(offering.capacity_type, offering.instance_type, offering.zone)
        if step.back:
            market.restore(piece)
        else:
            market.exhaust(piece)

    def _strike(self, step: w.Strike) -> None:
        offering = step.offering
        action = _STRIKES[step.kind](
            at="0s",
            instance_type=offering.instance_type,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            count=0,
        )
        try:
            alive = selected_instances(self.simulation, action)
        except NoSuchTargetError:
            self.missed += 1
            return
        struck = alive[min(step.rank, len(alive) - 1)]
        action = replace(action, claim=struck.machine.claim, count=1)
        if isinstance(action, t.NodeNotReady) and step.lasts:
            action = replace(action, duration=format_duration(step.lasts))
        with suppress(NoSuchTargetError):  # it has no node yet
            perform_action(self.simulation, action)

    def _asked(self, step: w.Asked) -> None:
        self.simulation.cluster.ask_claim_deletion(step.claim, step.actor)


_PERFORM: dict[type, Callable[[Model, Any], None]] = {
    w.Put: Model._put,
    w.Gone: Model._gone,
    w.Sells: Model._sells,
    w.Lacks: Model._lacks,
    w.Strike: Model._strike,
    w.Asked: Model._asked,
    w.Replicas: Model._replicas,
    w.Comes: Model._comes,
    w.Leaves: Model._leaves,
}
