"""Default topology spread (S-149…S-151): the cluster's constraints, for pods that have none of their own.

As in kube-scheduler, the selector is deduced from the Services and the controller of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Expression, Owner, Pod, PodShape, Selector, SpreadConstraint
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload

REPLICATION_CONTROLLER = "v1/ReplicationController"
SELECTING_CONTROLLERS = ("apps/v1/ReplicaSet", "apps/v1/StatefulSet")


class SelectorSources(Struct, frozen=True):
    """What selectors are deduced from. `services`: in the order of namespace and name; later ones override earlier
    ones. `workloads`: by key."""

    services: tuple[Service, ...] = ()
    workloads: Mapping[str, Workload] = {}

    def selector(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> Selector | None:
        """The selector for a pod's default constraints (S-151); None if no Service and no controller selects it."""
        wanted: dict[str, str] = {}
        for service in sorted(self.services, key=lambda each: each.name):
            if service.namespace == namespace and service.selector.items() <= labels.items():
                wanted |= service.selector
        controller = self._controller(namespace, owner)
        if controller is None or controller.selector is None:
            return Selector(wanted) if wanted else None
        if controller.kind == REPLICATION_CONTROLLER:
            return Selector({**wanted, **controller.selector.labels})
        own = tuple(Expression(key, "In", (value,)) for key, value in sorted(controller.selector.labels.items()))
        return Selector(wanted, (*own, *controller.selector.expressions))

    def _controller(self, namespace: str, owner: Owner | None) -> Workload | None:
        if owner is None or not owner.controller or owner.kind not in (REPLICATION_CONTROLLER, *SELECTING_CONTROLLERS):
            return None
        return self.workloads.get(f"{owner.kind}/{namespace}/{owner.name}")


def with_default_spread(
    pods: Iterable[Pod],
    shapes: Mapping[str, PodShape],
    constraints: tuple[SpreadConstraint, ...],
    sources: SelectorSources,
) -> tuple[list[Pod], dict[str, PodShape]]:
    """Give the default constraints to pods that have none (S-150). Returns the pods, and the new shapes by digest.
    `shapes`: those that the pods have now."""
    new_shapes: dict[str, PodShape] = {}
    known: dict[tuple[str, str, str], str] = {}

    def digest_of(pod: Pod) -> str:
        shape = shapes[pod.shape]
        selector = None if shape.spread else sources.selector(pod.namespace, shape.labels, pod.owner)
        if selector is None:
            return pod.shape
        spread = tuple(replace(constraint, selector=selector) for constraint in constraints)
        spreading = replace(shape, spread=spread)
        digest, _ = content(spreading)
        new_shapes[digest] = spreading
        return digest

    spread_pods = []
    for pod in pods:
        owner = f"{pod.owner.kind}/{pod.owner.name}/{pod.owner.controller}" if pod.owner is not None else ""
        key = pod.namespace, pod.shape, owner
        if key not in known:
            known[key] = digest_of(pod)
        spread_pods.append(pod if known[key] == pod.shape else replace(pod, shape=known[key]))
    return spread_pods, new_shapes
