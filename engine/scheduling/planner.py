"""The planner: answers one provisioning question with one plan.

It is pure. Equal problems give equal plans, byte for byte, in whatever order pods, nodes and NodePools are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import NamedTuple

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.devices import read_reference
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.devices.allocation import Devices
from kerf.engine.scheduling.devices.node_devices import devices_of, node_devices_of
from kerf.engine.scheduling.explain.refusals import explain_dropped
from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.launchable.templates import Template, template_of
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.packing.finished_claims import claim_spec, opened_claim
from kerf.engine.scheduling.packing.nodes_by_domain import NodesByDomain
from kerf.engine.scheduling.packing.packing import Packing
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_classes import PodClasses
from kerf.engine.scheduling.pods.pod_volumes import claim_names, volume_problems, volumes_of_claims
from kerf.engine.scheduling.pods.validation import pod_refusals
from kerf.engine.scheduling.problem.problem import PendingPod, PoolInput, Problem, by_name
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.scheduling.topology.topology import Topology

__all__ = ["OpenedClaim", "Plan", "plan", "usable_pools"]

STRICT = "Strict"

MAX_POOLS_FIRST = 4
"""How many NodePools are tried first, of those of equal weight."""

QueuedPod = tuple[PendingPod, PodClass]
Failure = tuple[PendingPod, PodClass, tuple[Reason, ...]]
PackingOrder = tuple[int, int, int, int, str]
"""By which pods are packed (S-85), those that are `PendingPod.ahead` first."""


class PodQueue(NamedTuple):
    """The pods of a plan: those to pack, those that are ignored (S-42), and those that cannot be tried."""

    queue: list[tuple[PackingOrder, QueuedPod]]
    ignored: list[Failure]
    failures: list[Failure]


def plan(
    problem: Problem,
    tracer: Tracer | None = None,
    most_claims: float = math.inf,
    *,
    told: bool = True,
    affordable: Mapping[str, int] | None = None,
) -> Plan:
    """Find a place for each pending pod: on an existing node, on a new claim, or nowhere, with the reasons.

    `most_claims`: stop when the plan opens more claims than this. It then has more claims than asked for, and truncated
    pods. `affordable`: stop when a claim can be of none of these types (by NodePool, as numbers in its catalogue). The
    plan is `too_dear` then, and says nothing else. Neither has an effect where there is reserved capacity. Without
    `told`, the reasons of pods without a place are left out, but for those that wait for reserved capacity.

    Raises KeyError if a pod or DaemonSet names a shape, or a NodePool a catalogue, that the problem does not hold.
    Callers build problems, so this is a defect and not bad input.
    """
    compiled = CompiledProblem(problem, tracer)
    queue = compiled.queue_of(problem.pods)
    return compiled.plan([queue], compiled.nodes, tracer, most_claims, told=told, affordable=affordable)


class CompiledProblem:
    """The part of a problem that does not depend on which of its pods are placed: nodes, templates and rules,
    compiled."""

    def __init__(self, problem: Problem, tracer: Tracer | None = None) -> None:
        self._problem = problem
        self._strict = problem.settings.min_values_policy == STRICT
        pools = usable_pools(problem.pools, problem.first_pool)
        given_daemons = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        templates = [
            template_of(pool_input, problem, given_daemons, strict=self._strict, variant=problem.variant)
            for pool_input in pools
        ]
        self._any_pool = bool(pools)
        self._dropped = tuple(explain_dropped(template, tracer) for template in templates if not template.types)
        self.templates = [template for template in templates if template.types]
        soft = any(
            taint.effect == PREFER_NO_SCHEDULE for pool_input in pools for taint in pool_input.pool.taints
        )  # S-33
        facts = problem.volumes or VolumeFacts()
        what = problem.daemons, problem.settings.ignore_dra_requests
        nodes = [ExistingNode.of(node, given_daemons, what, facts.limits.get(node.name)) for node in problem.nodes]
        _attach(nodes, problem, facts)
        leaving = [ExistingNode.of(node_input, (), ()) for node_input in problem.leaving]
        self.topology = Topology(problem, self.templates, nodes, leaving)
        self._devices = devices_of(problem)
        if self._devices is not None:
            for node, given in zip(nodes, problem.nodes, strict=True):
                node.site = node_devices_of(given, node.known, problem)
        self.nodes = sorted(nodes, key=lambda node: node.order)
        for number, node in enumerate(self.nodes):
            node.number = number
        self._by_domain = NodesByDomain(self.nodes, traced=tracer is not None)
        policy = problem.settings.preference_policy
        self._classes = PodClasses(problem.shapes, self.topology, policy, soft, problem.volumes, self._devices)
        self._refused: dict[tuple[str, tuple[str, ...]], tuple[Reason, ...]] = {}

    def plan(
        self,
        queues: Iterable[PodQueue],
        nodes: Sequence[ExistingNode],
        tracer: Tracer | None,
        most_claims: float,
        *,
        told: bool = True,
        affordable: Mapping[str, int] | None = None,
        first_pool: str = "",
    ) -> Plan:
        """Plan for the pods of these queues. `nodes`: the nodes of this problem, in their order; some may be `gone`.
        This uses up the limits of the templates and the counts of topology. `most_claims`, `told`, `affordable`: as in
        `plan`. `first_pool`: as in `Problem`, in place of that of this problem."""
        settings = self._problem.settings
        queues = list(queues)
        queue = [
            queued for _, queued in sorted(chain.from_iterable(queue.queue for queue in queues), key=itemgetter(0))
        ]
        ignored = [failure for queue in queues for failure in queue.ignored]
        failures = [failure for queue in queues for failure in queue.failures]
        packing = Packing(
            nodes,
            self._by_domain,
            self._in_order(first_pool),
            self._classes,
            self.topology,
            not self._strict,
            settings.max_steps,
            tracer,
            most_claims,
            told,
            affordable,
        )
        failures += [(pod, pod_class, (*self._dropped, *why)) for pod, pod_class, why in packing.run(queue)]
        if packing.too_dear:
            return Plan(truncated=tuple(pod.uid for pod in packing.truncated), too_dear=True)
        for claim in packing.claims:
            claim.close()
            self.topology.finished(claim.template, claim.narrowed, claim.types & claim.narrowed.viable)
        claims, unmet = _finished_claims(packing, settings.max_instance_types, self._strict, tracer, self._devices)
        by_uid = {pod.uid: (pod, pod_class) for pod, pod_class in queue} if unmet else {}
        failures += [(*by_uid[uid], (why,)) for uid, why in unmet]
        if tracer is not None:
            for pod, pod_class, why in failures:
                tracer.unplaced(pod, pod_class, why)
        truncated = tuple(pod.uid for pod in sorted(packing.truncated, key=by_name))
        uneven = self.topology.uneven
        return Plan(
            claims,
            _placements(packing.filled.values()),
            _grouped_by_reason(failures),
            _grouped_by_reason(ignored),
            truncated,
            uneven=uneven,
        )

    def _in_order(self, first_pool: str) -> list[Template]:
        if not first_pool:
            return self.templates
        return sorted(self.templates, key=lambda each: (-each.pool.weight, each.name != first_pool))

    def queue_of(self, pods: Iterable[PendingPod]) -> PodQueue:
        """Sort out which pods are tried. Not tried: pods that S-42 refuses, pods whose devices are ignored or unknown
        (S-92), and all pods if there is no NodePool (S-62)."""
        problem, devices = self._problem, self._devices
        queue: list[tuple[PackingOrder, QueuedPod]] = []
        ignored: list[Failure] = []
        failures: list[Failure] = []
        for pod in pods:
            shape = problem.shapes[pod.shape]
            claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
            asks = devices is not None and bool(shape.resource_claims)
            lacking = devices.problem(pod.device_claims) if devices is not None and asks else None
            own_devices = pod.device_claims if asks and lacking is None else None
            pod_class = self._classes.of(pod.namespace, pod.shape, claims, own_devices, pod.of_new_nodes)
            why = () if pod.accepted or pod.virtual else self._refusals(pod.shape, claims)
            if why:
                ignored.append((pod, pod_class, why))
            elif shape.resource_claims and problem.settings.ignore_dra_requests:
                own_names = sorted(read_reference(reference).own for reference in shape.resource_claims)
                failures.append((pod, pod_class, (reason(SchedulingCode.RESOURCE_CLAIMS, claims=own_names),)))
            elif lacking is not None:
                failures.append(
                    (pod, pod_class, (reason(SchedulingCode.RESOURCE_CLAIM, claim=lacking[0], problem=lacking[1]),))
                )
            elif not self._any_pool:
                failures.append((pod, pod_class, (reason(SchedulingCode.NO_NODE_POOL),)))
            elif pod_class.contradictions:
                failures.append(
                    (pod, pod_class, (reason(SchedulingCode.CONTRADICTION, keys=list(pod_class.contradictions)),))
                )
            elif pod_class.unsupported:
                features = list(pod_class.unsupported)
                failures.append((pod, pod_class, (reason(SchedulingCode.NOT_SUPPORTED_YET, features=features),)))
            else:
                order = -pod.ahead, -pod_class.cpu, -pod_class.memory, pod.created, pod.uid
                queue.append((order, (pod, pod_class)))
        return PodQueue(queue, ignored, failures)

    def takers(self, pod_class: PodClass, most: int) -> frozenset[str] | None:
        """The nodes that take a pod of the class as their first one, be it without its preferences. None if there are
        more than `most`."""
        found: set[str] = set()
        weaker: PodClass | None = pod_class
        while weaker is not None:
            for number in self._by_domain.takers(weaker):
                found.add(self.nodes[number].name)
                if len(found) > most:
                    return None
            weaker = self._classes.relaxed(weaker)
        return frozenset(found)

    def _refusals(self, digest: str, claims: tuple[str, ...]) -> tuple[Reason, ...]:
        reasons = self._refused.get((digest, claims))
        if reasons is None:
            reasons = pod_refusals(self._problem.shapes[digest])
            if self._problem.volumes is not None:
                reasons += volume_problems(self._problem.volumes, claims)
            self._refused[digest, claims] = reasons
        return reasons


def usable_pools(pools: Iterable[PoolInput], first_pool: str = "") -> list[PoolInput]:
    """The NodePools that take part (S-61), in the order in which they are tried (S-63). `first_pool`: see `Problem`."""
    taking_part = [
        pool_input
        for pool_input in pools
        if pool_input.pool.ready and not pool_input.pool.deleting and pool_input.pool.replicas is None
    ]
    by_name = sorted(taking_part, key=lambda pool: (pool.pool.name == first_pool, pool.pool.name), reverse=True)
    return sorted(by_name, key=lambda pool: -pool.pool.weight)


def after_equals(pools: Iterable[PoolInput]) -> list[NodePool]:
    """The NodePools that take part and are not the first of their weight: their names alone put them behind (S-63)."""
    usable = [pool_input.pool for pool_input in usable_pools(pools)]
    return [pool for before, pool in pairwise(usable) if pool.weight == before.weight]


def _attach(nodes: Iterable[ExistingNode], problem: Problem, facts: VolumeFacts) -> None:
    """Count the volumes of bound pods against the nodes' attachment limits (S-159)."""
    if not any(shape.volumes for shape in problem.shapes.values()):
        return
    by_name = {node.name: node for node in nodes}
    for pod in problem.bound:
        shape = problem.shapes[pod.shape]
        if shape.volumes and pod.node in by_name:
            by_name[pod.node].attach(volumes_of_claims(facts, claim_names(pod.namespace, pod.name, shape)).attached)


def _finished_claims(
    packing: Packing, most_types: int, strict: bool, tracer: Tracer | None, devices: Devices | None
) -> tuple[tuple[OpenedClaim, ...], list[tuple[str, Reason]]]:
    """The claims as planned; and the pods of claims that fall below minValues once the list of types is cut (S-162)."""
    claims, unmet = [], []
    for claim in packing.claims:
        launch, template = claim_spec(claim, most_types), claim.template
        missing = template.unmet_min_values(claim.narrowed.min_values, launch.mask) if strict else {}
        if missing:
            why = reason(SchedulingCode.MIN_VALUES, node_pool=template.name, keys=sorted(missing))
            unmet += [(pod.uid, why) for pod in claim.pods]
            continue
        claims.append(opened_claim(claim, launch, devices.drivers(claim.index) if devices is not None else ()))
        if tracer is not None:
            tracer.claim_finished(claim.index, template.name, launch.chosen)
    return tuple(claims), unmet


def _placements(nodes: Iterable[ExistingNode]) -> tuple[Placement, ...]:
    return tuple(
        Placement(node.name, node.claim, tuple(pod.uid for pod in sorted(node.pods, key=by_name)))
        for node in sorted(nodes, key=lambda each: each.name)
    )


def _grouped_by_reason(failures: Iterable[Failure]) -> tuple[Unplaced, ...]:
    """Group pods of one class that failed for the same reasons; groups are ordered by their first pod."""
    groups: dict[tuple[int, str], tuple[list[PendingPod], tuple[Reason, ...]]] = {}
    for pod, pod_class, why in sorted(failures, key=lambda each: by_name(each[0])):
        key = pod_class.number, repr(why)
        groups.setdefault(key, ([], why))[0].append(pod)
    return tuple(Unplaced(tuple(pod.uid for pod in pods), why) for pods, why in groups.values())
