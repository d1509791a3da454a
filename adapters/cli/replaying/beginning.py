"""Furnish a simulated world with what a record had at a moment: objects, nodes with their instances, and pods."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.adapters.cli.replaying.steps import Model
from kerf.adapters.simulation.cloud.boot import Boot
from kerf.adapters.simulation.cloud.cloud import Instance
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.adapters.simulation.cluster.node_changes import DISRUPTED
from kerf.adapters.simulation.cluster.nodeclaim_objects import claim_object
from kerf.engine.model import labels as names
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod, owned_by
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, TERMINATED
from kerf.engine.state.state import Facts
from kerf.replay.errors import NotModelled
from kerf.replay.modelled.extraction import is_karpenters
from kerf.replay.modelled.workload import Workload


def furnish(model: Model, workload: Workload) -> None:
    """Put everything in its place. kerf adopts what it finds there, as it does when its record is lost.

    Raises NotModelled (KERF213) for an instance of a type that no catalogue has.
    """
    facts, simulation = workload.start.facts, model.simulation
    api = simulation.cluster.api
    for objects in _kept_as_they_are(facts):
        for _, item in sorted(objects.items()):
            api.put(item)
    for objects in (facts.services, facts.workloads, facts.pod_templates, facts.node_classes):
        for _, item in sorted(objects.items()):
            model.put(item)
    for _, node in sorted(facts.nodes.items()):
        if not is_karpenters(node, workload.start):
            api.put(node)
    for _, claim in sorted(facts.claims.items(), key=lambda named: (named[1].launched, named[0])):
        if claim.instance and claim.state != TERMINATED and claim.instance_status not in ENDED:
            _instance(model, workload, claim)
    for _, pod in sorted(facts.pods.items()):
        if pod.uid not in workload.held:
            _pod(model, workload, pod)
    for _, daemon_set in sorted(facts.daemonsets.items()):
        model.put(daemon_set)
    for _, budget in sorted(facts.pdbs.items()):
        api.put(budget)


def _kept_as_they_are(facts: Facts) -> tuple[dict[str, Any], ...]:
    return (
        facts.namespaces, facts.pools, facts.storage_classes, facts.volumes, facts.volume_claims, facts.csi_nodes,
        facts.overlays, facts.buffers, facts.device_classes, facts.resource_claims,
    )  # fmt: skip


def _instance(model: Model, workload: Workload, claim: NodeClaim) -> None:
    simulation, facts = model.simulation, workload.start.facts
    ref = claim.node_class
    machine = Machine(
        instance=claim.instance,
        claim=claim.name,
        node_pool=claim.node_pool,
        provider_id=claim.provider_id,
        type=_type(model, claim, f"{ref.group}/{ref.kind}/{ref.name}"),
        zone=claim.zone,
        zone_id=claim.labels.get(names.ZONE_ID, ""),
        capacity_type=claim.capacity_type,
        labels=claim.labels,
        taints=(*claim.taints, *claim.startup_taints),
    )
    boot = Boot(claim.image, claim.subnet, claim.security_groups, claim.class_hash)
    token = f"recorded/{claim.name}"
    simulation.cloud.instances[claim.instance] = Instance(machine, token, claim.launched, boot)
    known = claim_object(claim, claim.tainted)  # kerf would keep a node of a move that it does not know
    simulation.cluster.claims[claim.name] = known
    node = facts.nodes.get(claim.node) or next(
        (facts.nodes[name] for name in workload.start.indexes.nodes_by_provider.get(claim.provider_id, ())), None
    )
    booted = max(0, claim.launched + simulation.timing.join - workload.since)
    simulation.cluster.adopt(machine, _as_it_stays(node, claim) if node is not None else None, booted=booted)


def _as_it_stays(node: Node, claim: NodeClaim) -> Node:
    """The node without the marks of a move that has not begun, and that nobody carries on."""
    stays = claim.state not in GOING
    taints = tuple(taint for taint in node.taints if not (stays and taint.same(DISRUPTED)))
    return replace(node, taints=taints, proposed=False)


def _type(model: Model, claim: NodeClaim, node_class: str) -> InstanceType:
    found = model.simulation.cloud.market.type(claim.instance_type, node_class)
    if found is None:
        raise NotModelled(
            f"no catalogue of the record has the instance type {claim.instance_type} of NodeClaim {claim.name}",
            hint="Begin later, with --from, when it is gone",
        )
    return found


def _pod(model: Model, workload: Workload, pod: Pod) -> None:
    cluster = model.simulation.cluster
    if owned_by(pod, NODE_OWNER):
        return
    shape = workload.start.indexes.blobs.shape(pod.shape)
    pod = replace(pod, shape=cluster.api.keep_shape(shape), nominated="")
    if owned_by(pod, DAEMONSET):
        if not pod.node:
            return
        cluster.workloads.adopt_daemon_pod(pod)
    cluster.api.put(pod)
