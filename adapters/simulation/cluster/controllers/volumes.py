"""Storage of the virtual cluster: claims get their volumes, volumes are attached where pods run and detached behind
them.

Three controllers in one: the provisioner (at once, or where the first pod is bound), the one that makes the claims of
ephemeral volumes, and the one that attaches and detaches. Written from Kubernetes' rules and without the engine's
scheduling code, as the filters are. A volume that the scheduler places is bound in the instant in which its pod is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.scheduler.filters import term_matches
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model import labels as names
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Pod, is_terminal
from kerf.engine.model.kubernetes.volumes import EBS, StorageClass, Volume, VolumeAttachment, VolumeClaim

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
UNATTACHED = ("efs.csi.aws.com", "fsx.csi.aws.com", "s3.csi.aws.com")
"""Drivers with attachRequired: false. Their volumes may be everywhere at once."""


class Volumes:
    def __init__(self, api: ApiServer, clock: Clock, rng: SeededRandom, timing: Timing) -> None:
        self._api, self._clock, self._rng, self._timing = api, clock, rng, timing
        self._made = 0
        api.listen(self._changed)

    # ── what the scheduler asks ─────────────────────────────────────────────────────────────────────────────

    def filter(self, pod: Pod) -> Callable[[Node], bool] | None:
        """Return a check whether the pod's volumes allow a node (VolumeBinding, VolumeZone, NodeVolumeLimits), or None
        for a pod without volumes."""
        keys = self._keys(pod)
        if not keys:
            return None
        claims = [self._api.claims.get(key) for key in keys]
        found = [claim for claim in claims if claim is not None and not claim.deleting]
        if len(found) < len(claims):
            return lambda node: False
        return lambda node: all(self._reaches(claim, node) for claim in found) and self._room(found, node)

    def bind(self, pod: Pod, node: str) -> None:
        """Give the pod's claims that waited for its binding their volumes, on the node that it is bound to."""
        zone = self._api.nodes[node].labels.get(names.ZONE, "")
        for key in self._keys(pod):
            claim = self._api.claims[key]
            if not claim.volume:
                self._provision(claim, self._api.storage_classes[claim.storage_class], zone)

    def mounted(self, pod: Pod) -> bool:
        """Whether a kubelet finds the pod's volumes attached to its node."""
        attached = {a.volume for a in self._api.attachments.values() if a.node == pod.node}
        return all(volume in attached for volume in self._attachable(pod))

    def _keys(self, pod: Pod) -> list[str]:
        refs = self._api.shape(pod).volumes
        return [f"{pod.namespace}/{ref.claim or f'{pod.name}-{ref.name}'}" for ref in refs]

    def _reaches(self, claim: VolumeClaim, node: Node) -> bool:
        if claim.volume:
            volume = self._api.volumes.get(claim.volume)
            return volume is not None and not volume.deleting and _term_holds_on_node(volume.terms, node)
        storage_class = self._api.storage_classes.get(claim.storage_class)
        return (
            storage_class is not None
            and not storage_class.immediate
            and _term_holds_on_node(storage_class.topologies, node)
        )

    def _room(self, claims: Iterable[VolumeClaim], node: Node) -> bool:
        csi_node = self._api.csi_nodes.get(node.name)
        if csi_node is None or not csi_node.limits:
            return True
        there = [self._api.claims.get(key) for pod in self._running(node.name) for key in self._keys(pod)]
        used = {(self._driver(claim), claim.key) for claim in there if claim is not None}
        new = {(self._driver(claim), claim.key) for claim in claims} - used
        count = {driver: sum(used_driver == driver for used_driver, _ in used | new) for driver, _ in new}
        return all(count[driver] <= limit for driver, limit in csi_node.limits.items() if driver in count)

    def _driver(self, claim: VolumeClaim) -> str:
        volume = self._api.volumes.get(claim.volume)
        if volume is not None:
            return volume.driver
        storage_class = self._api.storage_classes.get(claim.storage_class)
        return storage_class.driver if storage_class is not None else ""

    # ── what users do ───────────────────────────────────────────────────────────────────────────────────────

    def delete_claim(self, key: str) -> bool:
        """Delete a claim; one that pods use goes with the last of them. Return False if there is none of this
        namespace/name."""
        claim = self._api.claims.get(key)
        if claim is not None and not claim.deleting:
            self._api.put(replace(claim, deleting=self._clock.now))
            self._forget_claims([key])
        return claim is not None

    def _forget_claims(self, keys: Iterable[str]) -> None:
        """Remove deleted claims that no pod uses any more, and their volumes."""
        for key in keys:
            claim = self._api.claims.get(key)
            if claim is None or not claim.deleting or any(key in self._keys(pod) for pod in self._api.pods.values()):
                continue
            self._api.remove(claim)
            volume = self._api.volumes.get(claim.volume)
            if volume is not None:
                gone = partial(self._api.remove, volume)
                self._clock.after(2 * self._timing.detach, "a volume is deleted", gone)

    # ── provisioning ────────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if isinstance(change.new, VolumeClaim | StorageClass | Volume) or (change.kind == "node" and not change.old):
            self._clock.after(self._timing.provision, "volumes are provisioned", self._provision_all)
        elif change.kind == "pod":
            self._pod_changed(change)

    def _provision_all(self) -> None:
        for claim in list(self._api.claims.values()):
            if not claim.deleting and not claim.bind_completed:
                self._settle(claim)

    def _settle(self, claim: VolumeClaim) -> None:
        """Bind a claim that names an existing volume, or give one of an immediate class a new volume."""
        if claim.volume:
            if claim.volume in self._api.volumes:
                self._api.put(replace(claim, phase="Bound", bind_completed=True))
            return
        if not claim.storage_class:
            usual = sorted(
                known_class.name for known_class in self._api.storage_classes.values() if known_class.default
            )
            if usual:
                self._api.put(replace(claim, storage_class=usual[0]))
            return
        storage_class = self._api.storage_classes.get(claim.storage_class)
        if storage_class is None or not storage_class.immediate:
            return
        zones = sorted({z for node in self._api.nodes.values() if (z := self._allowed_zone(storage_class, node))})
        if zones or storage_class.driver != EBS:
            pick = self._rng.between(0, len(zones) - 1, "zone of a volume", claim.key) if zones else 0
            self._provision(claim, storage_class, zones[pick] if zones else "")

    def _allowed_zone(self, storage_class: StorageClass, node: Node) -> str:
        return node.labels.get(names.ZONE, "") if _term_holds_on_node(storage_class.topologies, node) else ""

    def _provision(self, claim: VolumeClaim, storage_class: StorageClass, zone: str) -> None:
        self._made += 1
        name = f"pvc-{self._rng.uid('volume', claim.key, self._made)}"
        zonal = storage_class.driver == EBS and zone
        terms = (NodeTerm((Expression(EBS_ZONE, "In", (zone,)),)),) if zonal else storage_class.topologies
        self._api.put(Volume(name, storage_class.driver, terms))
        self._api.put(replace(claim, volume=name, phase="Bound", bind_completed=True))

    # ── ephemeral volumes, attaching and detaching ──────────────────────────────────────────────────────────

    def _pod_changed(self, change: Change) -> None:
        old = change.old if isinstance(change.old, Pod) else None
        new = change.new if isinstance(change.new, Pod) else None
        pod = new or old
        if pod is None or not self._api.shape(pod).volumes:
            return
        if old is None and new is not None:
            self._make_ephemeral(new)
        was, now = _node_of_pod(old), _node_of_pod(new)
        if now and was != now:
            self._clock.after(self._timing.attach, "volumes are attached", self._attach)
        if was and was != now:
            self._clock.after(self._timing.detach, "volumes are detached", lambda: self._detach(was))
        if new is None:
            for ref in self._api.shape(pod).volumes:
                if not ref.claim:  # it belongs to the pod
                    self.delete_claim(f"{pod.namespace}/{pod.name}-{ref.name}")
            self._forget_claims(self._keys(pod))

    def _make_ephemeral(self, pod: Pod) -> None:
        for ref in self._api.shape(pod).volumes:
            claim = VolumeClaim(pod.namespace, f"{pod.name}-{ref.name}", storage_class=ref.storage_class)
            if not ref.claim and claim.key not in self._api.claims:
                self._api.put(claim)

    def _attach(self) -> None:
        """Attach the volumes of pods that are bound. A volume that is still attached elsewhere has to wait."""
        held = {attachment.volume for attachment in self._api.attachments.values()}
        for node in list(self._api.nodes):
            for pod in self._running(node):
                for volume in self._attachable(pod):
                    if volume not in held:
                        held.add(volume)
                        self._api.put(VolumeAttachment(f"{volume}.{node}", node, volume))

    def _detach(self, node: str) -> None:
        used = {volume for pod in self._running(node) for volume in self._attachable(pod)}
        spare = [a for a in self._api.attachments.values() if a.node == node and a.volume not in used]
        for attachment in spare:
            self._api.remove(attachment)
        if spare:
            self._attach()

    def _attachable(self, pod: Pod) -> Iterator[str]:
        for key in self._keys(pod):
            claim = self._api.claims.get(key)
            volume = self._api.volumes.get(claim.volume) if claim is not None else None
            if volume is not None and volume.driver and volume.driver not in UNATTACHED:
                yield volume.name

    def _running(self, node: str) -> list[Pod]:
        return [pod for pod in self._api.pods_on(node) if not is_terminal(pod)]


def _node_of_pod(pod: Pod | None) -> str:
    """Return the node on which the pod's volumes are needed, or ""."""
    return "" if pod is None or is_terminal(pod) else pod.node


def _term_holds_on_node(terms: tuple[NodeTerm, ...], node: Node) -> bool:
    """Whether one of the terms holds on the node, which has the EBS driver's own zone label."""
    known = replace(node, labels={EBS_ZONE: node.labels.get(names.ZONE, ""), **node.labels})
    return not terms or any(term_matches(term, known) for term in terms)
