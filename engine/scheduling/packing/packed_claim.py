"""Claims that this pass has opened: what they can still become, and how many more pods of a class they take
(S-98…S-101).

Pods of one class come in a row. So a claim works out how many of them it takes at least, each time twice as many as
before, and then only counts. Requests and types are brought up to date (`settle`) when another class looks at it. The
result is that of adding pods one by one: more pods of a class change no requirement, and larger requests only rule
types out.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.kubernetes.pods import HostPort, Resources
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.devices.allocation import DeviceWant
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.packing.reservations import Reservations
from kerf.engine.scheduling.pods.demand import Option
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod
from kerf.engine.scheduling.topology.pod_counts import PodCount


class PackedClaim:
    """A NodeClaim being filled with pods. `order`: its place among claims with as many pods (see `packing`)."""

    def __init__(self, index: int, template: Template, narrowed: NarrowedTemplate, types: int, relaxed: bool) -> None:
        self.index = index
        self.template = template
        self.narrowed = narrowed
        self.types = types
        self.relaxed = relaxed
        self.requests: Resources = {}
        self.pods: list[PendingPod] = []
        self.ports: tuple[HostPort, ...] = ()
        self.held: frozenset[str] = frozenset()
        self.order = index  # a place in creation order, until it grows
        self._class: PodClass | None = None
        self._left = 0
        self._taken = 0
        self._uncounted: dict[int, tuple[PodCount, int, int]] = {}  # with all pods, and those that ask nothing
        self._waiting: frozenset[int] = frozenset()  # of those, whose pods were there before the last one
        self._cpu = self._memory = self._pods = 0
        self._bound()

    def may_fit(self, pod_class: PodClass) -> bool:
        """False only if the claim certainly has no room. Compares with the largest amounts that any of its types had
        when it last settled."""
        return pod_class.cpu <= self._cpu and pod_class.memory <= self._memory and self._pods > 0

    def accept(self, pod_class: PodClass, options: Sequence[Option], reservations: Reservations) -> bool:
        """Whether one more pod of the class fits. If so, the claim is narrowed to one of the options (lowest rank
        first, then the cheapest), and `take` must follow."""
        if self._class is pod_class and self._left > 0 and len(options) == 1 and options[0][1] is self.narrowed:
            return True
        streak = 2 * self._taken if self._class is pod_class else 1
        self.settle()
        if port_conflicts(pod_class.ports, self.ports):
            return False
        if pod_class.devices is not None:
            options = self._with_devices(pod_class.devices, options)
            if not options:
                return False
        following = options[0][1] if len(options) == 1 else self._best(pod_class, options)
        room = self._room(pod_class, following, streak)
        if room == 0:
            return False
        if following.reservable or self.held:
            room = 1  # reservations are settled pod by pod
            if not self._reserve(pod_class, following, reservations):
                return False
        self._narrow(following, pod_class)
        self._class, self._left = pod_class, room
        return True

    def take(self, pod: PendingPod, pod_class: PodClass) -> None:
        """Add one pod of the class that was accepted last."""
        self.pods.append(pod)
        self._left -= 1
        self._taken += 1
        for count in pod_class.counted:
            if count.key == HOSTNAME:
                if count.admits_claim(self.template, self.narrowed):
                    count.add(self.index)
            elif count.possible:
                for domain in self.template.domains(self.narrowed, count.key):
                    count.add(domain)
            else:
                _, pods, free = self._uncounted.get(count.number, (count, 0, 0))
                self._uncounted[count.number] = count, pods + 1, free + (not pod_class.demand.asks)
        if self._uncounted:
            self._count()

    def _count(self) -> None:
        """Count the pods in each domain that the claim has settled on (S-134). The others wait until it has."""
        for number, (count, pods, free) in tuple(self._uncounted.items()):
            domain = self.narrowed.settled(count.key)
            if domain is not None:
                del self._uncounted[number]
                if count.admits_claim(self.template, self.narrowed):
                    count.add(domain, pods)
                    if count.hard and number in self._waiting:
                        count.late[domain] = count.late.get(domain, 0) + free
        self._waiting = frozenset(self._uncounted)

    def close(self) -> None:
        """Finish the claim: no more pods follow. Pods that are not counted yet are counted where the remaining types
        leave one domain."""
        self.settle()
        types = self.types & self.narrowed.viable
        for count, pods, free in self._uncounted.values():
            domains = self.template.domains_of(self.narrowed, count.key, types) if count.hard else ()
            if len(domains) == 1 and count.admits_claim(self.template, self.narrowed):
                (domain,) = domains
                count.open(domain)
                count.add(domain, pods)
                count.late[domain] = count.late.get(domain, 0) + free

    def settle(self) -> None:
        """Bring requests and types up to date with the pods taken."""
        pod_class, taken = self._class, self._taken
        self._class, self._left, self._taken = None, 0, 0
        if pod_class is None or not taken:
            return
        self.requests = added(self.requests, pod_class.requests, taken)
        self.types = self._survivors(self.narrowed, self.requests, pod_class, self.ports_before(pod_class))
        self._bound()

    # ── inside ──────────────────────────────────────

    def _narrow(self, following: NarrowedTemplate, pod_class: PodClass) -> None:
        self.narrowed = following
        self.ports += pod_class.ports

    def _best(self, pod_class: PodClass, options: Sequence[Option]) -> NarrowedTemplate:
        """The option to narrow to: among those with room for one more pod the lowest rank, then the cheapest, then the
        first. If none has room, the first."""
        requests = added(self.requests, pod_class.requests)
        ranked: list[tuple[int, float, int, NarrowedTemplate]] = []
        for rank, option in options:
            if ranked and rank > ranked[0][0]:
                break
            types = self._survivors(option, requests, pod_class, self.ports)
            if types:
                order = self.template.precedence(self.index, option, types)
                ranked.append((rank, order, len(ranked), option))
        return min(ranked, key=lambda each: each[:3])[3] if ranked else options[0][1]

    def _with_devices(self, device_want: DeviceWant, options: Sequence[Option]) -> list[Option]:
        """The options under which the pod can have its devices, narrowed to where these are (S-202)."""
        narrowed = ((rank, device_want.narrowed(self.index, self.template, state, self.types & state.viable))
                 for rank, state in options)  # fmt: skip
        return [(rank, state) for rank, state in narrowed if state is not None]

    def ports_before(self, pod_class: PodClass) -> tuple[HostPort, ...]:
        """The ports of the pods before those of the class that was added last, whose ports are at the end."""
        return self.ports[: len(self.ports) - len(pod_class.ports)]

    def _survivors(
        self, narrowed: NarrowedTemplate, requests: Resources, pod_class: PodClass, taken: tuple[HostPort, ...]
    ) -> int:
        left = self.template.survivors(self.types & narrowed.viable, requests, pod_class.ports, taken)
        if pod_class.devices is not None:
            left = pod_class.devices.capable(self.index, narrowed, left)
        if narrowed.min_values and not self.template.meets_min_values(narrowed.min_values, left):
            return 0
        return left

    def _room(self, pod_class: PodClass, narrowed: NarrowedTemplate, streak: int) -> int:
        """How many more pods of the class certainly fit: `streak` (twice as many as have just come in a row), else one,
        else none. If fewer pods do not fit, more never do."""

        def fits(count: int) -> bool:
            return (
                self._survivors(narrowed, added(self.requests, pod_class.requests, count), pod_class, self.ports) != 0
            )

        if streak > 1 and not pod_class.ports and fits(streak):
            return streak
        return int(fits(1))  # pods of one class that want a host port clash with one another

    def _bound(self) -> None:
        cpu, memory, pods = self.template.catalogue.most(self.types)
        requests = self.requests
        self._cpu, self._memory = cpu - requests.get("cpu", 0), memory - requests.get("memory", 0)
        self._pods = pods - requests.get("pods", 0)

    def _reserve(self, pod_class: PodClass, narrowed: NarrowedTemplate, reservations: Reservations) -> bool:
        """Hold the reservations that the claim can use once the pod is on it (S-113 to S-115). False if reserved
        capacity would do, but none is left for it."""
        types = self._survivors(narrowed, added(self.requests, pod_class.requests), pod_class, self.ports)
        usable = reservations.usable(self.template, narrowed, types)
        held = reservations.reservable(usable, self.held)
        if not held and (usable or self.held):
            return False
        reservations.move(self.held, held)
        self.held = held
        return True
