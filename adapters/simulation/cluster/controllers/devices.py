"""Devices of the virtual cluster: published by drivers, claimed by pods, allocated when a pod is bound, given back
afterwards.

Three components in one: the drivers on the nodes, kube-controller-manager's ResourceClaim controller, and the
scheduler's part.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.adapters.simulation.scheduler.device_allocator import DeviceAllocator
from kerf.adapters.simulation.seeded_random import SeededRandom, letters
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.kubernetes.devices import AttributeBinding, ResourceClaim, read_reference
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, is_terminal


class DeviceControllers:
    def __init__(self, api: ApiServer, clock: Clock, rng: SeededRandom, timing: Timing) -> None:
        self._api, self._clock, self._rng, self._timing = api, clock, rng, timing
        self._found: tuple[int, DeviceAllocator] | None = None  # since so many changes
        self._changes = 0
        api.listen(self._changed)

    # ── what the scheduler asks ─────────────────────────────────────────────────────────────────────────────

    def filter(self, pod: Pod) -> Callable[[Node], bool] | None:
        """Return a check whether a node has devices for the pod's claims, or None for a pod without claims."""
        if not self._api.shape(pod).resource_claims:
            return None
        claims = self._claims(pod)
        if claims is None:
            return lambda node: False
        return lambda node: self._allocator().allocate(claims, node) is not None

    def bind(self, pod: Pod, node: str) -> None:
        """Give the pod's claims their devices on the node that it is bound to, and reserve them for the pod."""
        claims = self._claims(pod) if self._api.shape(pod).resource_claims else None
        if not claims:
            return
        allocations = self._allocator().allocate(claims, self._api.nodes[node])
        assert allocations is not None
        for claim, allocation in zip(claims, allocations, strict=True):
            self._api.put(replace(claim, allocation=allocation, pods=tuple(sorted({*claim.pods, pod.uid}))))

    def _claims(self, pod: Pod) -> list[ResourceClaim] | None:
        """Return the pod's claims, or None if one does not exist yet."""
        claims_or_none = [self._api.resource_claims.get(key) for key in self._keys(pod)]
        existing = [claim for claim in claims_or_none if claim is not None]
        return existing if len(existing) == len(claims_or_none) else None

    def _keys(self, pod: Pod) -> list[str]:
        made = {claim.own_name: claim.key for claim in self._api.resource_claims.values() if claim.made_for == pod.uid}
        references = map(read_reference, self._api.shape(pod).resource_claims)
        return [
            f"{pod.namespace}/{reference.claim}" if reference.claim else made.get(reference.own, "")
            for reference in references
        ]

    def _allocator(self) -> DeviceAllocator:
        """Return an allocator for the objects as they are now."""
        if self._found is None or self._found[0] != self._changes:
            api = self._api
            made = DeviceAllocator(api.resource_slices.values(), api.device_classes, api.resource_claims.values())
            self._found = self._changes, made
        return self._found[1]

    # ── drivers ─────────────────────────────────────────────────────────────────────────────────────────────

    def publish(self, node: str, machine: Machine) -> None:
        """Publish the devices of a node's type, a while after its kubelet is ready."""
        if machine.type.slices:
            self._clock.after(self._timing.devices, "drivers publish devices", lambda: self._publish(node, machine))

    def _publish(self, node: str, machine: Machine) -> None:
        if node not in self._api.nodes:
            return
        templates = machine.type.slices
        shared = _shared_attribute_values(machine.type.bindings, node)
        for number, template in enumerate(templates):
            devices = tuple(
                replace(
                    device,
                    attributes={**shared.get((template.driver, template.pool, device.name), {}), **device.attributes},
                )
                for device in template.devices
            )
            self._api.put(
                replace(
                    template, name=f"{node}-{number}", pool=f"{node}-{template.pool}", node=node, owner=node,
                    devices=devices,
                    count=sum((other.driver, other.pool) == (template.driver, template.pool) for other in templates),
                )
            )  # fmt: skip

    def _unpublish(self, node: str) -> None:
        for published in [
            resource_slice for resource_slice in self._api.resource_slices.values() if resource_slice.owner == node
        ]:
            if node not in self._api.nodes:
                self._api.remove(published)

    # ── claims of pods ──────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if change.kind in ("resourceclaim", "resourceslice", "deviceclass"):
            self._changes += 1
        elif change.kind == "node" and change.new is None:
            self._clock.after(0, "slices of a node go", lambda: self._unpublish(change.key))
        elif change.kind == "pod":
            self._pod_changed(change)

    def _pod_changed(self, change: Change) -> None:
        old = change.old if isinstance(change.old, Pod) else None
        new = change.new if isinstance(change.new, Pod) else None
        pod = new or old
        if pod is None or not self._api.shape(pod).resource_claims:
            return
        if old is None:
            self._clock.after(self._timing.claims, "claims are made", lambda: self._make(pod.uid))
        over = new is None or is_terminal(new)
        if over and not (old is None or is_terminal(old)):
            self._clock.after(self._timing.claims, "claims are given back", lambda: self._give_back(pod))

    def _make(self, uid: str) -> None:
        """Make the claims of a pod's templates. A template has to exist by then."""
        pod = self._api.pods.get(uid)
        for reference in map(read_reference, self._api.shape(pod).resource_claims) if pod is not None else ():
            template = (
                self._api.claim_templates.get(f"{pod.namespace}/{reference.template}") if pod is not None else None
            )
            if pod is None or template is None:
                continue
            end = letters(self._rng.uid("resourceclaim", pod.uid, reference.own).encode(), 5)
            name = f"{pod.name}-{reference.own}-{end}"
            self._api.put(replace(template.claim, name=name, made_for=pod.uid, own_name=reference.own))

    def _give_back(self, pod: Pod) -> None:
        """Reserve the pod's claims for one pod less. A claim without pods is not allocated any more, and one that was
        made for the pod goes."""
        for claim in list(self._api.resource_claims.values()):
            if claim.made_for == pod.uid and pod.uid not in self._api.pods:
                self._api.remove(claim)
            elif pod.uid in claim.pods:
                left = tuple(uid for uid in claim.pods if uid != pod.uid)
                kept = claim.allocation if left or claim.others else None
                self._api.put(replace(claim, pods=left, allocation=kept))


def _shared_attribute_values(
    bindings: tuple[AttributeBinding, ...], node: str
) -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the values of attributes that only a node has. Devices that are bound together get the same value."""
    groups: list[tuple[str, set[tuple[str, str, str]]]] = []
    for binding in bindings:
        joined = set(binding.devices)
        near = [group for group in groups if group[0] == binding.attribute and group[1] & joined]
        groups = [group for group in groups if group not in near]
        groups.append((binding.attribute, joined.union(*(devices for _, devices in near))))
    values_of_device: dict[tuple[str, str, str], dict[str, str]] = {}
    for number, (attribute, devices) in enumerate(groups):
        for device in sorted(devices):
            values_of_device.setdefault(device, {})[attribute] = f"{node}-{number}"
    return values_of_device
