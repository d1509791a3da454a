"""Nodes that exist or are on their way, as places for pods (S-71…S-78, S-94)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType

from kerf.engine.model.karpenter.requirements import NEGATIVE, NO_REQUIREMENTS, Conflict, Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import HOSTNAME, WELL_KNOWN
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.devices.allocation import NodeDevices
from kerf.engine.scheduling.launchable.daemons import Daemon, ports_of_daemons, reserved_for_daemons
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import fits, lacking
from kerf.engine.scheduling.matching.taints import taint_text, untolerated
from kerf.engine.scheduling.pods.demand import LabelValues
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_volumes import Attachment
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod
from kerf.engine.scheduling.reasons import SchedulingCode, conflict_reason, reason, topology_reason, volumes_reason
from kerf.engine.scheduling.topology.pod_counts import PodCount
from kerf.engine.scheduling.topology.rules import Domain

NO_LIMITS: Mapping[str, int] = MappingProxyType({})
"""Of CSI drivers: any number of volumes may be attached."""


class ExistingNode:
    """One node in one pass. Its labels never change. (In the reference, S-96, a pod that asks for a label *not* to have
    a value defines that label for later pods.)"""

    def __init__(self, node_input: NodeInput, daemons: Iterable[Daemon]) -> None:
        self.name = node_input.name
        self.claim = node_input.claim
        self.initialized = node_input.initialized
        self.taints = node_input.taints
        self.host = node_input.labels.get(HOSTNAME) or node_input.name
        self.labels = Requirements.of_labels({**node_input.labels, HOSTNAME: self.host})
        self.open = NO_REQUIREMENTS
        self.site: NodeDevices | None = None  # what it has for pods that ask for devices; set if there are any
        if node_input.requirements:
            self.open = Requirements.of_specs(node_input.requirements).without(
                requirement.key for requirement in self.labels
            )
        self.known = self.labels.merged(self.open) if self.open else self.labels
        waiting = reserved_for_daemons(daemons, node_input.taints, self.labels, node_input.bound_daemons)
        self._set_remaining({name: amount - waiting.get(name, 0) for name, amount in node_input.available.items()})
        self.ports = node_input.host_ports + ports_of_daemons(daemons, node_input.taints, self.labels)
        self.pods: tuple[PendingPod, ...] = ()
        self._limits: Mapping[str, int] = NO_LIMITS
        self._attached: frozenset[Attachment] = frozenset()
        self._domains: dict[str, LabelValues] = {}
        self._entered: dict[int, Domain | None] = {}  # by count of this problem's topology: where pods enter it
        self.number = 0  # its place in the order of nodes
        self.shared = True  # between passes, so that none may put pods on it

    @classmethod
    def of(
        cls, node_input: NodeInput, daemons: Iterable[Daemon], what: Hashable, limits: Mapping[str, int] | None = None
    ) -> ExistingNode:
        """The node for a problem, compiled once. `what`: tells these `daemons` from others. `limits`: how many volumes
        of each CSI driver can be attached; a driver that is missing has no limit."""
        node = node_input.compiled((cls, what), lambda: cls(node_input, daemons)).own()
        node._limits = limits or NO_LIMITS
        node._entered = {}
        node.shared = True
        return node

    def own(self) -> ExistingNode:
        """A copy for one pass to put pods on."""
        copy = ExistingNode.__new__(ExistingNode)
        copy.__dict__ = self.__dict__.copy()
        copy.shared = False
        return copy

    def gone(self) -> ExistingNode:
        """A copy without room for anything."""
        node = self.own()
        node.cpu = node.memory = -1
        return node

    def _set_remaining(self, remaining: Resources) -> None:
        self.remaining = remaining
        self.cpu, self.memory = remaining.get("cpu", 0), remaining.get("memory", 0)
        self._overused = min(remaining.values(), default=0) < 0  # of some resource more is used than there is

    @property
    def order(self) -> tuple[bool, str]:
        """The sort key of S-76: initialized nodes first, then by name."""
        return (not self.initialized, self.name)

    def accepts(self, pod_class: PodClass) -> bool:
        """Whether the node accepts a pod of the class (S-94), apart from rules over domains other than the host
        (`Demand.allows_domains`). A refusal is final within a pass, because a node only fills up."""
        return self.accepts_more(pod_class) and self.suits(pod_class)

    def accepts_more(self, pod_class: PodClass) -> bool:
        """Whether a node that `suits` the class accepts a pod of it."""
        return (
            self.has_room(pod_class)
            and pod_class.demand.allows_host(self.host)
            and (pod_class.devices is None or (self.site is not None and pod_class.devices.on_site(self.site)))
        )

    def has_room(self, pod_class: PodClass) -> bool:
        """Whether there is room for its requests (S-75), volumes and host ports."""
        if pod_class.cpu > self.cpu or pod_class.memory > self.memory or self._overused:
            return False
        remaining = self.remaining
        for name, amount in pod_class.other_requests:
            if amount > remaining.get(name, 0):
                return False
        return not (pod_class.attached and self.drivers_full(pod_class.attached)) and not (
            pod_class.ports and port_conflicts(pod_class.ports, self.ports)
        )

    def suits(self, pod_class: PodClass) -> bool:
        """Whether labels and taints allow the class. These do not change during a pass."""
        return (
            self._reaches(pod_class.demand.alternatives)
            and not self._conflicts(pod_class.requirements)
            and not (self.taints and untolerated(self.taints, pod_class.tolerations))
        )

    def take(self, pod: PendingPod, pod_class: PodClass) -> None:
        """Put a pod on the node (S-95). Its labels stay as they are (unlike S-96)."""
        self.pods += (pod,)
        remaining = self.remaining = self.remaining.copy()
        for name, amount in pod_class.requests.items():
            left = remaining[name] = remaining.get(name, 0) - amount
            if left < 0:
                self._overused = True
        self.cpu, self.memory = remaining.get("cpu", 0), remaining.get("memory", 0)
        self.ports += pod_class.ports
        self.enter(pod_class.counted)
        self.attach(pod_class.attached)

    def attach(self, attached: Iterable[Attachment]) -> None:
        self._attached = self._attached.union(attached)

    def drivers_full(self, attached: tuple[Attachment, ...]) -> list[str]:
        """The CSI drivers whose limit these volumes would exceed (S-159). A volume that is attached already does not
        count again."""
        if not attached or not self._limits:
            return []
        counts = Counter(driver for driver, _ in self._attached.union(attached))
        asked = sorted({driver for driver, _ in attached})
        return [driver for driver in asked if driver in self._limits and counts[driver] > self._limits[driver]]

    def domains(self, key: str) -> LabelValues:
        """The values that a label has, or can get on a claim that is not launched yet: empty if the label is missing,
        None if nothing is known of it."""
        if key not in self._domains:
            requirement = self.labels.find(key) or self.open.find(key)
            if requirement is None:
                self._domains[key] = () if self.initialized or key not in WELL_KNOWN else None
            else:
                self._domains[key] = None if requirement.complement else tuple(sorted(requirement.values))
        return self._domains[key]

    def domain(self, key: str) -> str | None:
        """The value of a label; None if it is missing or not known yet."""
        values = self.domains(key)
        return values[0] if values is not None and len(values) == 1 else None

    def enter(self, counts: Iterable[PodCount], pods: int = 1) -> None:
        """Add pods to the counts, in the domains of this node."""
        entered = self._entered  # looked up here, because this is done for each bound pod of a problem
        for count in counts:
            domain = entered[count.number] if count.number in entered else self.entrance(count)
            if domain is not None:
                count.add(domain, pods)

    def entrance(self, count: PodCount) -> Domain | None:
        """The domain in which the count has pods of this node; None if it does not count them."""
        if count.number not in self._entered:
            self._entered[count.number] = self._entrance(count)
        return self._entered[count.number]

    def _entrance(self, count: PodCount) -> Domain | None:
        if not count.admits_node(self.taints, self.known):
            return None
        return self.host if count.key == HOSTNAME else self.domain(count.key)

    def refusal(self, pod_class: PodClass) -> Reason:
        """Why the node does not accept the class. Ask only if it does not."""
        taints = untolerated(self.taints, pod_class.tolerations)
        if taints:
            return reason(SchedulingCode.TAINTS, taints=[taint_text(taint) for taint in taints])
        ports = port_conflicts(pod_class.ports, self.ports)
        if ports:
            return reason(SchedulingCode.HOST_PORTS, ports=[f"{port.port}/{port.protocol}" for port in sorted(ports)])
        if not fits(pod_class.requests, self.remaining):
            return reason(SchedulingCode.RESOURCES, resources=list(lacking(pod_class.requests, self.remaining)))
        if not self._reaches(pod_class.demand.alternatives):
            return volumes_reason(pod_class.demand.alternatives, pod_class.apart)
        full = self.drivers_full(pod_class.attached)
        if full:
            return reason(SchedulingCode.VOLUME_LIMIT, drivers=full)
        refusing = pod_class.demand.refusing_node(self.host, self.domains)
        if refusing is not None:
            return topology_reason(refusing)
        conflicts = self._conflicts(pod_class.requirements)
        if not conflicts and pod_class.devices is not None and self.site is not None:
            refused = pod_class.devices.refusal_on(self.site)
            if refused is not None:
                return refused
        return conflict_reason(conflicts, self.labels)

    def _reaches(self, alternatives: tuple[Requirements, ...]) -> bool:
        """Whether one of the alternatives of the pod's volumes allows this node (S-156)."""
        return not alternatives or any(not self._conflicts(alternative) for alternative in alternatives)

    def _conflicts(self, requirements: Requirements) -> tuple[Conflict, ...]:
        """The requirements that do not hold on this node. Every label must be there. If a label is only narrowed so
        far, because the claim is not launched yet, each value that is left must do."""
        conflicts = []
        for requirement in requirements:
            present = self.labels.find(requirement.key)
            if present is not None:
                if present.conflicts(requirement):
                    conflicts.append(Conflict(requirement, present))
                continue
            narrowed = self.open.find(requirement.key)
            if narrowed is None:
                if requirement.operator not in NEGATIVE:
                    conflicts.append(Conflict(requirement))
            elif not requirement.allows_all_of(narrowed):
                conflicts.append(Conflict(requirement, narrowed))
        return tuple(conflicts)
