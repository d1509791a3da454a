"""A judge of plans that shares no code with the planner: slow, plain, and only about what kube-scheduler and the
NodePools would say of the result.

`faults` turns a plan into nodes, pods into pairs of (namespace, shape), and asks, in kube-scheduler's terms: does every
pod fit, whichever of its claim's types and offerings is launched; is every taint tolerated and every label there; do
ports and anti-affinity leave everybody in peace; and is there an order in which all pods can be bound under hard
spreads and required affinity. A claim whose domain is still open must do for every domain that it may get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    HostPort,
    PodShape,
    Resources,
    SpreadConstraint,
)
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, PoolInput, Problem
from tests.support.judges.binding import Binding
from tests.support.judges.devices import device_faults
from tests.support.judges.labels import Host, Kind, expression_holds, of_offer, reaches, selected, tolerates, wants_node

ANY_ADDRESS = ("", "0.0.0.0", "::")


class Judge:
    def __init__(self, problem: Problem, planned: Plan) -> None:
        self.problem, self.planned = problem, planned
        self.shapes = problem.shapes
        self.kinds: dict[str, Kind] = {pod.uid: (pod.namespace, pod.shape) for pod in problem.pods}
        self.pools = {pool.pool.name: pool for pool in problem.pools}
        self.found: list[str] = []
        self.daemons = [problem.shapes[daemon] for daemon in problem.daemons]
        self.hosts = [self._existing(node) for node in problem.nodes]
        self.hosts += [self._existing(node, leaving=True) for node in problem.leaving]
        by_name = {host.name: host for host in self.hosts}
        for placement in planned.placements:
            by_name[placement.node].planned.update(self.kinds[uid] for uid in placement.pods)
        self.hosts += [self._launched(number, claim) for number, claim in enumerate(planned.claims)]

    def faults(self) -> list[str]:
        self._complete()
        for node in self.problem.nodes:
            self._room_on(node)
        for number, claim in enumerate(self.planned.claims):
            self._room_in(number, claim)
        self._limits()
        for host in self.hosts:
            self._welcome(host)
        self._volumes()
        self._apart()
        self._bind()
        return self.found + device_faults(self.problem, self.planned)

    def _existing(self, node: NodeInput, leaving: bool = False) -> Host:
        known = {lbl.normalise(key): value for key, value in node.labels.items()}
        known.setdefault(lbl.HOSTNAME, node.name)
        possible = [known]
        for requirement in node.requirements:  # a claim in flight: whatever it leaves open
            if requirement.operator == "In" and lbl.normalise(requirement.key) not in known:
                possible = [
                    {**p, lbl.normalise(requirement.key): value} for p in possible for value in requirement.values
                ]
        bound = Counter((pod.namespace, pod.shape) for pod in self.problem.bound if pod.node == node.name)
        return Host(node.name, possible, node.taints, bound, Counter(), existing=True, leaving=leaving)

    def _launched(self, number: int, claim: OpenedClaim) -> Host:
        name = f"claim {number}"
        pool = self.pools[claim.node_pool]
        possible: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        for type_name in claim.instance_types:
            given = self._type(pool, type_name)
            offers = list(self._offers(given, claim))
            if not offers and not claim.reservations:  # S-164: a claim with reservations also lists other types
                self.found.append(f"{name}: {type_name} is not on offer")
            for offer in offers:
                labels = self._labels(pool, claim, given, offer, name)
                possible[tuple(sorted(labels.items()))] = labels
        if not possible:
            self.found.append(f"{name}: nothing is on offer")
        pods = Counter(self.kinds[uid] for uid in claim.pods)
        return Host(name, list(possible.values()), pool.pool.taints, Counter(), pods, existing=False)

    def _type(self, pool: PoolInput, name: str) -> InstanceType:
        return next(
            instance_type
            for instance_type in self.problem.catalogues[pool.catalogue].types
            if instance_type.name == name
        )

    def _offers(self, given: InstanceType, claim: OpenedClaim) -> Iterator[Offering]:
        """What can be launched under the claim's requirements."""
        wanted = [
            Expression(requirement.key, requirement.operator, requirement.values) for requirement in claim.requirements
        ]
        about = (lbl.ZONE, lbl.CAPACITY_TYPE, lbl.ZONE_ID, *lbl.OF_RESERVATIONS)
        for offer in given.offerings:
            gone = {(c, t, z) for c in (offer.capacity_type, "") for t in (given.name, "") for z in (offer.zone, "")}
            labels = of_offer(offer)
            if (
                offer.available
                and not gone & self.problem.unavailable
                and all(
                    expression_holds(expression, labels)
                    for expression in wanted
                    if expression.key in about and (expression.key in labels or expression.key not in (lbl.ZONE_ID,))
                )
            ):
                yield offer

    def _labels(
        self, pool: PoolInput, claim: OpenedClaim, given: InstanceType, offer: Offering, name: str
    ) -> dict[str, str]:
        own = {key: values[0] for key, values in given.requirements.items() if len(values) == 1}
        return {
            **{lbl.normalise(key): value for key, value in own.items()},
            lbl.INSTANCE_TYPE: given.name,
            **of_offer(offer),
            **{lbl.normalise(key): value for key, value in pool.pool.labels.items()},
            **{lbl.normalise(key): value for key, value in claim.labels.items()},
            lbl.HOSTNAME: name,
        }

    # ── nobody lost, room, limits ──────────────────────────────────────

    def _complete(self) -> None:
        planned = self.planned
        placed = [*(claim.pods for claim in planned.claims), *(placement.pods for placement in planned.placements)]
        others = [group.pods for group in (*planned.unplaced, *planned.ignored)]
        seen = Counter(uid for pods in (*placed, *others, planned.truncated) for uid in pods)
        if seen != Counter(list(self.kinds)):
            self.found.append("a pod is lost or doubled")

    def _requests(self, kinds: Counter[Kind]) -> Resources:
        total: Counter[str] = Counter({"pods": sum(kinds.values())})
        for (_, digest), count in kinds.items():
            for name, amount in self.shapes[digest].requests.items():
                total[name] += count * amount
        return dict(total)

    def _room_on(self, node: NodeInput) -> None:
        host = next(other for other in self.hosts if other.name == node.name)
        for name, amount in self._requests(host.planned).items():
            if host.planned and amount > node.available.get(name, 0):
                self.found.append(f"{node.name}: not enough {name}")
        ports = [port for kind in host.planned.elements() for port in self.shapes[kind[1]].host_ports]
        self._ports(node.name, ports, node.host_ports)

    def _room_in(self, number: int, claim: OpenedClaim) -> None:
        host, pool = self._claim_host(number), self.pools[claim.node_pool]
        requests = self._requests(host.planned)
        ports = [port for kind in host.planned.elements() for port in self.shapes[kind[1]].host_ports]
        if not claim.instance_types:
            self.found.append(f"claim {number}: no instance type")
        for type_name in claim.instance_types:
            given = self._type(pool, type_name)
            daemons = [daemon for daemon in self.daemons if self._runs(daemon, pool, given)]
            room = given.allocatable()
            for name in {*requests, *(name for daemon in daemons for name in daemon.requests)}:
                extra = len(daemons) if name == "pods" else sum(daemon.requests.get(name, 0) for daemon in daemons)
                if requests.get(name, 0) + extra > room.get(name, 0):
                    self.found.append(f"claim {number}: {type_name} has not enough {name}")
            self._ports(f"claim {number}", ports, tuple(port for daemon in daemons for port in daemon.host_ports))

    def _claim_host(self, number: int) -> Host:
        return self.hosts[len(self.problem.nodes) + len(self.problem.leaving) + number]

    def _runs(self, daemon: PodShape, pool: PoolInput, given: InstanceType) -> bool:
        """Whether the DaemonSet certainly runs on nodes of the type, going by single-valued labels of type and pool."""
        single = {key: values[0] for key, values in given.requirements.items() if len(values) == 1}
        labels = {**single, **pool.pool.labels, lbl.NODEPOOL: pool.pool.name, lbl.INSTANCE_TYPE: given.name}
        return tolerates(daemon, pool.pool.taints) and wants_node(daemon, labels)

    def _ports(self, name: str, ports: list[HostPort], taken: tuple[HostPort, ...]) -> None:
        for index, a in enumerate(ports):
            for b in (*ports[:index], *taken):
                same = a.port == b.port and a.protocol == b.protocol
                if same and (a.ip == b.ip or a.ip in ANY_ADDRESS or b.ip in ANY_ADDRESS):
                    self.found.append(f"{name}: host port {a.port} is wanted twice")

    def _limits(self) -> None:
        for name, pool in self.pools.items():
            claims = [claim for claim in self.planned.claims if claim.node_pool == name]
            for resource, limit in (pool.pool.limits or {}).items():
                largest = [
                    max(
                        self._type(pool, instance_type).capacity.get(resource, 0)
                        for instance_type in claim.instance_types
                    )
                    for claim in claims
                ]
                if claims and resource != "nodes" and pool.usage.get(resource, 0) + sum(largest) > limit:
                    self.found.append(f"NodePool {name}: limit on {resource} exceeded")

    # ── every pod by itself ──────────────────────────────────────

    def _welcome(self, host: Host) -> None:
        """Taints and labels; PreferNoSchedule taints are no business of the filters."""
        for kind in host.planned:
            shape = self.shapes[kind[1]]
            if not tolerates(shape, host.taints):
                self.found.append(f"{host.name}: a taint is not tolerated")
            unknown = (
                frozenset() if host.existing else lbl.WELL_KNOWN
            )  # S-20: a cloud may not tell all labels of a type
            if not all(wants_node(shape, labels, unknown) for labels in host.labels):
                self.found.append(f"{host.name}: a label is not what a pod asks for")

    def _volumes(self) -> None:
        """Every bound volume can be attached where its pod goes, every unbound one be made there; and a node takes no
        more volumes of a driver than it can."""
        facts = self.problem.volumes
        if facts is None:
            return
        pods = {pod.uid: pod for pod in self.problem.pods}
        by_name = {host.name: host for host in self.hosts}
        placed = [(by_name[placement.node], placement.pods) for placement in self.planned.placements]
        placed += [(self._claim_host(number), claim.pods) for number, claim in enumerate(self.planned.claims)]
        for host, uids in placed:
            attached = {
                found
                for pod in self.problem.bound
                if pod.node == host.name
                for found in self._attached(facts, pod.namespace, pod.name, pod.shape)
            }
            before = len(attached)
            for uid in uids:
                pod = pods[uid]
                for name in self._claims(pod.namespace, pod.name, pod.shape):
                    if not all(reaches(facts, name, labels) for labels in host.labels):
                        self.found.append(f"{host.name}: volume {name} is elsewhere")
                attached.update(self._attached(facts, pod.namespace, pod.name, pod.shape))
            for driver, limit in facts.limits.get(host.name, {}).items():
                if len(attached) > before and sum(volume[0] == driver for volume in attached) > limit:
                    self.found.append(f"{host.name}: too many volumes of {driver}")

    def _claims(self, namespace: str, name: str, digest: str) -> list[str]:
        volumes = self.shapes[digest].volumes
        return [f"{namespace}/{volume.claim if volume.claim else name + '-' + volume.name}" for volume in volumes]

    def _attached(self, facts: VolumeFacts, namespace: str, name: str, digest: str) -> list[tuple[str, str]]:
        found = []
        for claim_name in self._claims(namespace, name, digest):
            claim = facts.claims.get(claim_name)
            volume = facts.volumes.get(claim.volume) if claim is not None else None
            given = facts.classes.get(claim.storage_class) if claim is not None and not claim.volume else None
            driver = volume.driver if volume is not None else given.driver if given is not None else ""
            found += [(driver, claim_name)] if driver else []
        return found

    # ── pods among each other ──────────────────────────────────────

    def _matches(self, kind: Kind, owner: Kind, term: SpreadConstraint | AffinityTerm) -> bool:
        """Whether the term of a pod of `owner` speaks of pods of `kind`."""
        labels, own = self.shapes[kind[1]].labels, self.shapes[owner[1]].labels
        more = [Expression(k, "In", (own[k],)) for k in term.match_label_keys if k in own]
        more += [Expression(k, "NotIn", (own[k],)) for k in getattr(term, "mismatch_label_keys", ()) if k in own]
        named = getattr(term, "namespaces", ())
        wide = getattr(term, "namespace_selector", None)
        if wide is not None:
            inside = kind[0] in named or any(
                namespace.name == kind[0] and selected(wide, namespace.labels) for namespace in self.problem.namespaces
            )
        else:
            inside = kind[0] in (named or (owner[0],))
        return inside and selected(term.selector, labels, more)

    def _apart(self) -> None:
        """Required anti-affinity, both ways: at the end nobody shares a domain with whom it must not."""
        everybody = sorted({kind for host in self.hosts for kind in (*host.bound, *host.planned)})
        for owner in everybody:
            for term in self.shapes[owner[1]].anti_affinity:
                if term.weight:
                    continue
                others = [kind for kind in everybody if self._matches(kind, owner, term)]
                for host in self.hosts:
                    if host.bound[owner] or host.planned[owner]:
                        self._keeps_clear(host, owner, others, term.topology_key)

    def _keeps_clear(self, host: Host, owner: Kind, others: list[Kind], key: str) -> None:
        here = host.values(key) - {None}
        for other_host in self.hosts:
            if not here & other_host.values(key):
                continue
            for other in others:
                pods = other_host.bound[other] + other_host.planned[other]
                pods -= other_host is host and other == owner
                new = host.planned[owner] or other_host.planned[other]
                if pods > 0 and new:
                    self.found.append(f"{host.name}: required anti-affinity over {key} with {other_host.name}")

    def _bind(self) -> None:
        """Hard spreads and required affinity, pod by pod."""
        by_name = {host.name: host for host in self.hosts}
        host_of = {uid: by_name[placement.node] for placement in self.planned.placements for uid in placement.pods}
        for number, claim in enumerate(self.planned.claims):
            host_of |= dict.fromkeys(claim.pods, self._claim_host(number))
        queue = sorted((pod for pod in self.problem.pods if pod.uid in host_of), key=self._size)
        by_size = [(host_of[pod.uid], self.kinds[pod.uid]) for pod in queue]
        stuck = Binding(self.hosts, self.shapes, self._matches).stuck(by_size)
        names = Counter((host.name, self.shapes[kind[1]].labels.get("app", kind[1])) for host, kind in stuck)
        self.found += [f"{name}: {count} pods of {app} cannot be bound" for (name, app), count in names.items()]

    def _size(self, pod: PendingPod) -> tuple[int, int, int, str]:
        requests = self.shapes[pod.shape].requests
        return -requests.get("cpu", 0), -requests.get("memory", 0), pod.created, pod.uid


def faults(problem: Problem, planned: Plan) -> list[str]:
    """Everything that is wrong with a plan; empty if it is valid."""
    return Judge(problem, planned).faults()
