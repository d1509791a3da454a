"""A tracer that keeps the whole funnel of one plan as structs, for `explain`, `kerf plan` and tests."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference, relaxed_preferences
from kerf.engine.scheduling.explain.tracer import NearMissesFor, PricedType, TypeFunnel
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod


class Refusal(Struct, frozen=True):
    """A candidate that a class could not use: an existing node by name, or a claim by index."""

    place: str | int
    reason: Reason


class PoolAttempt(Struct, frozen=True, omit_defaults=True):
    """An attempt to open a new claim of a NodePool for a class. `reason`: None if it was opened; `claim`: its index.
    For a NodePool that has nothing to launch, the funnel is that of its own requirements, and its near misses are those
    for the class."""

    funnel: TypeFunnel
    reason: Reason | None = None
    claim: int | None = None


class RelaxedPods(Struct, frozen=True):
    """Pods that were placed as this class after they had given something up."""

    pods: tuple[str, ...]
    gave_up: tuple[RelaxedPreference, ...]


class ClassFunnel(Struct, frozen=True, omit_defaults=True):
    """One pod class as it was tried. A class that gives something up becomes another class, with a funnel of its own.

    * `rules`: the topology rules that bind it, each as kind and key.
    * `placed`: (place, pods) in the order of first use. `unplaced`: the remaining pods.
    * `relaxed`: the placed pods that asked for more at first.
    """

    number: int
    requests: Resources
    requirements: tuple[str, ...]
    rules: tuple[tuple[str, str], ...] = ()
    refused: tuple[Refusal, ...] = ()
    pools: tuple[PoolAttempt, ...] = ()
    placed: tuple[tuple[str | int, tuple[str, ...]], ...] = ()
    unplaced: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    relaxed: tuple[RelaxedPods, ...] = ()


class ClaimFunnel(Struct, frozen=True):
    """A claim as planned. `left`: the remaining types, cheapest first, so `left[0]` is the chosen one."""

    claim: int
    node_pool: str
    left: tuple[PricedType, ...]


class Funnel(Struct, frozen=True):
    """The funnel of a whole plan. `dropped`: NodePools without any instance type, if there are no pods. If there are,
    each class has them among its `pools`, because the near misses differ between classes."""

    dropped: tuple[PoolAttempt, ...]
    classes: tuple[ClassFunnel, ...]
    claims: tuple[ClaimFunnel, ...]


class _ClassRecord:
    """What is collected about one class while the plan is made."""

    def __init__(self, pod_class: PodClass, dropped: list[PoolAttempt]) -> None:
        self.pod_class = pod_class
        self.refused: list[Refusal] = []
        self.pools = dropped
        self.placed: dict[str | int, list[str]] = {}
        self.unplaced: list[str] = []
        self.reasons: tuple[Reason, ...] = ()
        self.relaxed: dict[tuple[RelaxedPreference, ...], list[str]] = {}

    def done(self) -> ClassFunnel:
        demand = self.pod_class.demand
        return ClassFunnel(
            self.pod_class.number,
            self.pod_class.requests,
            tuple(str(requirement) for requirement in self.pod_class.requirements),
            tuple(sorted({(rule.kind, rule.key) for rule in (*demand.host_rules, *demand.rules)})),
            tuple(self.refused),
            tuple(self.pools),
            tuple((place, tuple(pods)) for place, pods in self.placed.items()),
            tuple(self.unplaced),
            self.reasons,
            tuple(RelaxedPods(tuple(pods), gave_up) for gave_up, pods in self.relaxed.items()),
        )


class FunnelTracer:
    """Give it to `plan`, then read `funnel`."""

    def __init__(self, shapes: Callable[[str], PodShape | None] | None = None) -> None:
        """`shapes`: finds what pods ask for at first, by digest; None if unknown. Without it the funnel does not say
        what they gave up."""
        self._shapes = shapes
        self._dropped: list[tuple[PoolAttempt, NearMissesFor]] = []
        self._classes: dict[int, _ClassRecord] = {}
        self._claims: list[ClaimFunnel] = []

    @property
    def funnel(self) -> Funnel:
        classes = tuple(class_record.done() for _, class_record in sorted(self._classes.items()))
        dropped = () if classes else tuple(look for look, _ in self._dropped)
        return Funnel(dropped, classes, tuple(self._claims))

    def _of(self, pod_class: PodClass) -> _ClassRecord:
        record = self._classes.get(pod_class.number)
        if record is None:
            dropped = [replace(look, funnel=replace(look.funnel, near=near(pod_class))) for look, near in self._dropped]
            record = self._classes[pod_class.number] = _ClassRecord(pod_class, dropped)
        return record

    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None:
        self._dropped.append((PoolAttempt(funnel, reason), near))

    def node_refused(self, pod_class: PodClass, node: str, reason: Reason) -> None:
        self._of(pod_class).refused.append(Refusal(node, reason))

    def claim_refused(self, pod_class: PodClass, claim: int, reason: Reason) -> None:
        self._of(pod_class).refused.append(Refusal(claim, reason))

    def pool_considered(
        self, pod_class: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None:
        self._of(pod_class).pools.append(PoolAttempt(funnel, reason, claim))

    def placed(self, pod: PendingPod, pod_class: PodClass, place: str | int) -> None:
        record = self._of(pod_class)
        record.placed.setdefault(place, []).append(pod.uid)
        before = self._shapes(pod.shape) if self._shapes is not None else None
        gave_up = relaxed_preferences(before, pod_class.shape) if before is not None else ()
        if gave_up:
            record.relaxed.setdefault(gave_up, []).append(pod.uid)

    def unplaced(self, pod: PendingPod, pod_class: PodClass, reasons: tuple[Reason, ...]) -> None:
        record = self._of(pod_class)
        record.unplaced.append(pod.uid)
        record.reasons = reasons

    def claim_finished(self, claim: int, node_pool: str, left: tuple[PricedType, ...]) -> None:
        self._claims.append(ClaimFunnel(claim, node_pool, left))
