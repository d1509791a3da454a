"""Two slow, independent readings of the scheduling rules, to hold the planner against.

`pack` places pod by pod as S-85 to S-106 say, with plain loops over types and offerings: no classes, no bitsets, no
memory of refusals. `violations` checks a finished plan. Both use the requirement algebra, which has laws of its own,
and nothing else of the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.requirements import Requirement, Requirements, requirement
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Resources
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, PoolInput, Problem


def pod_requirements(shape: PodShape) -> Requirements:
    entries = [requirement(key, "In", (value,)) for key, value in shape.node_selector.items()]
    for term in shape.required_terms[:1]:
        entries += [requirement(e.key, e.operator, e.values) for e in term.expressions]
    return Requirements(entries)


def tolerated(shape: PodShape, taints: Iterable[Any]) -> bool:
    """For Exists tolerations by key only, which is all that the generated problems have."""
    return all(any(t.operator == "Exists" and t.key == taint.key for t in shape.tolerations) for taint in taints)


def labels(given: Mapping[str, str]) -> Requirements:
    return Requirements(requirement(key, "In", (value,)) for key, value in given.items())


def plus(*parts: Resources) -> Resources:
    names = {name for part in parts for name in part}
    return {name: sum(part.get(name, 0) for part in parts) for name in names}


def pool_requirements(pool: PoolInput) -> Requirements:
    entries = [requirement(s.key, s.operator, s.values, s.min_values) for s in pool.pool.requirements]
    own = {
        **pool.pool.labels,
        lbl.NODEPOOL: pool.pool.name,
        pool.pool.node_class.label: pool.pool.node_class.name,
        lbl.REGISTERED: "true",
        lbl.INITIALIZED: "true",
    }
    return Requirements([*entries, *labels(own)])


def type_requirements(given: InstanceType) -> Requirements:
    return Requirements(Requirement(key, False, frozenset(values)) for key, values in given.requirements.items())


def offered(given: InstanceType, requirements: Requirements) -> list[Offering]:
    return [
        offering
        for offering in given.offerings
        if offering.available
        and requirements.compatible(
            Requirements(
                [
                    requirement(lbl.ZONE, "In", (offering.zone,)),
                    requirement(lbl.CAPACITY_TYPE, "In", (offering.capacity_type,)),
                ]
            ),
            lbl.WELL_KNOWN,
        )
    ]


class SlowClaim:
    def __init__(self, pool: PoolInput, requirements: Requirements, types: list[InstanceType]) -> None:
        self.pool, self.requirements, self.types = pool, requirements, types
        self.requests: Resources = {}
        self.pods: list[str] = []
        self.ports: list[HostPort] = []


class Slow:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.pools = sorted(
            sorted(problem.pools, key=lambda p: p.pool.name, reverse=True), key=lambda p: -p.pool.weight
        )
        self.limits = {
            p.pool.name: {k: v - p.usage.get(k, 0) for k, v in (p.pool.limits or {}).items()} for p in self.pools
        }
        self.claims: list[SlowClaim] = []
        self.daemons = [problem.shapes[digest] for digest in problem.daemons]
        self.nodes = [
            (node, {k: v - self.expected(node).get(k, 0) for k, v in node.available.items()}, self.taken(node), [])
            for node in sorted(problem.nodes, key=lambda n: (not n.initialized, n.name))
        ]  # type: list[tuple[NodeInput, Resources, list[HostPort], list[str]]]

    def running(self, node: NodeInput) -> list[PodShape]:
        own = labels({lbl.HOSTNAME: node.name, **node.labels})
        return [d for d in self.daemons if tolerated(d, node.taints) and own.compatible(pod_requirements(d))]

    def expected(self, node: NodeInput) -> Resources:
        wanted = plus(*[{**d.requests, "pods": 1} for d in self.running(node)])
        return {name: max(0, amount - node.bound_daemons.get(name, 0)) for name, amount in wanted.items()}

    def taken(self, node: NodeInput) -> list[HostPort]:
        """Those of its pods and of DaemonSets, whether or not their pods are there yet (unlike in S-97)."""
        return [*node.host_ports, *(port for daemon in self.running(node) for port in daemon.host_ports)]

    def overhead(
        self, pool: PoolInput, given: InstanceType, where: Requirements | None = None
    ) -> tuple[Resources, list[HostPort]]:
        """S-81; a label that no NodePool defines may be the type's. Daemons that `where` the node will be cannot run
        there do not count: the zone of a claim may be known."""
        known = lbl.WELL_KNOWN.union(type_requirement.key for type_requirement in type_requirements(given))
        runs = [
            d
            for d in self.daemons
            if tolerated(d, pool.pool.taints)
            and pool_requirements(pool).compatible(pod_requirements(d), known)
            and not type_requirements(given).conflicts(pod_requirements(d))
            and not (where is not None and where.conflicts(pod_requirements(d)))
        ]
        return plus(*[{**d.requests, "pods": 1} for d in runs]), [port for d in runs for port in d.host_ports]

    def filtered(
        self,
        pool: PoolInput,
        requirements: Requirements,
        types: list[InstanceType],
        requests: Resources,
        shape: PodShape,
    ) -> list[InstanceType]:
        left = []
        for instance_type in types:
            extra, ports = self.overhead(pool, instance_type)
            total = plus(requests, extra)
            room = instance_type.allocatable()
            if (
                all(amount <= room.get(name, 0) for name, amount in total.items())
                and not type_requirements(instance_type).conflicts(requirements)
                and offered(instance_type, requirements)
                and not any(a.port == b.port for a in shape.host_ports for b in ports)
            ):
                left.append(instance_type)
        for r in requirements:
            values = {v for option in left for v in option.requirements.get(r.key, ())}
            if left and r.min_values is not None and len(values) < r.min_values:
                return []
        return left

    def place(self, pod: PendingPod) -> bool:
        shape = self.problem.shapes[pod.shape]
        wanted = pod_requirements(shape)
        requests = {**shape.requests, "pods": 1}
        for node, room, ports, pods in self.nodes:
            own = labels({lbl.HOSTNAME: node.name, **node.labels})
            if (
                tolerated(shape, node.taints)
                and own.compatible(wanted)
                and all(amount <= room.get(name, 0) for name, amount in requests.items())
                and min(room.values()) >= 0
                and not any(a.port == b.port for a in shape.host_ports for b in ports)
            ):
                for name, amount in requests.items():
                    if name in room:
                        room[name] -= amount
                ports.extend(shape.host_ports)
                pods.append(pod.uid)
                return True
        self.claims.sort(key=lambda claim: len(claim.pods))  # in place and stable, before every attempt (S-89)
        for claim in self.claims:
            if self.join(claim, pod, shape, wanted, requests):
                return True
        for pool in self.pools:
            types = self.allowed(pool)
            claim = SlowClaim(pool, pool_requirements(pool), types)
            if types and self.join(claim, pod, shape, wanted, requests):
                self.claims.append(claim)
                limits = self.limits[pool.pool.name]
                for name in limits:
                    largest = max(instance_type.capacity.get(name, 0) for instance_type in claim.types)
                    limits[name] -= 1 if name == "nodes" else largest  # unlike in S-70
                return True
        return False

    def allowed(self, pool: PoolInput) -> list[InstanceType]:
        limits = self.limits[pool.pool.name]
        if "nodes" in limits and limits["nodes"] <= 0:
            return []
        return [
            instance_type
            for instance_type in self.template_types(pool)
            if all(instance_type.capacity.get(name, 0) <= left for name, left in limits.items() if name != "nodes")
        ]

    def template_types(self, pool: PoolInput) -> list[InstanceType]:
        """S-66: no pod, no daemons."""
        requirements = pool_requirements(pool)
        types = [
            instance_type
            for instance_type in self.problem.catalogues[pool.catalogue].types
            if not type_requirements(instance_type).conflicts(requirements) and offered(instance_type, requirements)
        ]
        for r in requirements:
            values = {v for instance_type in types for v in instance_type.requirements.get(r.key, ())}
            if r.min_values is not None and len(values) < r.min_values:
                return []
        return types

    def join(
        self, claim: SlowClaim, pod: PendingPod, shape: PodShape, wanted: Requirements, requests: Resources
    ) -> bool:
        if not tolerated(shape, claim.pool.pool.taints):
            return False
        if not claim.requirements.compatible(wanted, lbl.WELL_KNOWN):
            return False
        if any(a.port == b.port for a in shape.host_ports for b in claim.ports):
            return False
        merged = claim.requirements.merged(wanted)
        total = plus(claim.requests, requests)
        types = self.filtered(claim.pool, merged, claim.types, total, shape)
        if not types:
            return False
        claim.requirements, claim.types, claim.requests = merged, types, total
        claim.pods.append(pod.uid)
        claim.ports += shape.host_ports
        return True


def pack(problem: Problem) -> tuple[list[tuple[str, list[str], list[str]]], dict[str, list[str]], list[str]]:
    """(claims as (pool, sorted pods, sorted types)), pods per node, unplaced pods; each sorted."""
    slow = Slow(problem)
    shapes = problem.shapes

    def order(pod: PendingPod) -> tuple[int, int, int, str]:
        requests = shapes[pod.shape].requests
        return -requests.get("cpu", 0), -requests.get("memory", 0), pod.created, pod.uid

    queue, failures = sorted(problem.pods, key=order), 0
    while queue and failures < len(queue):
        pod = queue.pop(0)
        if slow.place(pod):
            failures = 0
        else:
            queue.append(pod)
            failures += 1
    claims = [(c.pool.pool.name, sorted(c.pods), sorted(t.name for t in c.types)) for c in slow.claims]
    nodes = {node.name: sorted(pods) for node, _, _, pods in slow.nodes if pods}
    return sorted(claims), nodes, sorted(pod.uid for pod in queue)


def violations(problem: Problem, planned: Plan) -> list[str]:
    """Everything that is wrong with a plan, whichever way it was found."""
    found = []
    shape_of = {pod.uid: problem.shapes[pod.shape] for pod in problem.pods}
    pools = {node_pool.pool.name: node_pool for node_pool in problem.pools}
    slow = Slow(problem)
    seen = [
        *(uid for claim in planned.claims for uid in claim.pods),
        *(uid for placement in planned.placements for uid in placement.pods),
        *(uid for group in (*planned.unplaced, *planned.ignored) for uid in group.pods),
        *planned.truncated,
    ]
    if sorted(seen) != sorted(shape_of):
        found.append("a pod is lost or doubled")
    for number, claim in enumerate(planned.claims):
        shapes = [shape_of[uid] for uid in claim.pods]
        pool = pools[claim.node_pool]
        types = {instance_type.name: instance_type for instance_type in problem.catalogues[pool.catalogue].types}
        requests = plus(*[{**shape.requests, "pods": 1} for shape in shapes])
        merged = pool_requirements(pool)
        for shape in shapes:
            merged = merged.merged(pod_requirements(shape))
        for shape in shapes:
            for wanted in pod_requirements(shape):
                value = claim.labels.get(wanted.key)
                if wanted.key not in lbl.WELL_KNOWN and (
                    (value is None and wanted.operator not in ("NotIn", "DoesNotExist"))
                    or (value is not None and not wanted.has(value) and wanted.operator != "DoesNotExist")
                ):
                    found.append(f"claim {number}: label {wanted} is not met by {value}")
            if not tolerated(shape, pool.pool.taints):
                found.append(f"claim {number}: taint not tolerated")
        ports = [port.port for shape in shapes for port in shape.host_ports]
        if len(ports) != len(set(ports)):
            found.append(f"claim {number}: host port used twice")
        if not claim.instance_types:
            found.append(f"claim {number}: no instance type")
        for name in claim.instance_types:
            total = plus(requests, slow.overhead(pool, types[name], merged)[0])
            room = types[name].allocatable()
            if any(amount > room.get(key, 0) for key, amount in total.items()):
                found.append(f"claim {number}: {name} is too small")
            if type_requirements(types[name]).conflicts(merged) or not offered(types[name], merged):
                found.append(f"claim {number}: {name} does not meet the requirements, or is not on offer")
    for name, pool in pools.items():
        for resource, limit in (pool.pool.limits or {}).items():
            own = [claim for claim in planned.claims if claim.node_pool == name]
            types = {instance_type.name: instance_type for instance_type in problem.catalogues[pool.catalogue].types}
            spent = sum(max(types[t].capacity.get(resource, 0) for t in claim.instance_types) for claim in own)
            spent = len(own) if resource == "nodes" else spent
            if own and pool.usage.get(resource, 0) + spent > limit:
                found.append(f"NodePool {name}: limit on {resource} exceeded")
    given = {node.name: node for node in problem.nodes}
    for placement in planned.placements:
        node, shapes = given[placement.node], [shape_of[uid] for uid in placement.pods]
        requests = plus(*[{**shape.requests, "pods": 1} for shape in shapes])
        if any(amount > node.available.get(key, 0) for key, amount in requests.items()):
            found.append(f"node {node.name}: too full")
        ports = [port.port for shape in shapes for port in shape.host_ports]
        if len(ports) != len(set(ports)) or {port.port for port in slow.taken(node)}.intersection(ports):
            found.append(f"node {node.name}: host port used twice")
        for shape in shapes:
            if not tolerated(shape, node.taints):
                found.append(f"node {node.name}: taint not tolerated")
            for wanted in pod_requirements(shape):
                value = node.labels.get(wanted.key)
                if (wanted.operator not in ("NotIn", "DoesNotExist")) if value is None else not wanted.has(value):
                    found.append(f"node {node.name}: {wanted} is not met by {value}")
    return found
