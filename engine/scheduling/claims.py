"""Claims opened in this pass: what they may still become and how many more pods of a class they take
(S-98…S-101).

Pods of one class arrive in a row, so a claim works out once how many of them it takes (`room`) and then
only counts; requests and types are brought up to date (`settle`) when another class looks at it. That
gives what adding pod by pod would: further pods of the same class change no requirement, and larger
requests only ever rule types out.
"""

from __future__ import annotations

from kerf.engine.model.pods import HostPort, Resources
from kerf.engine.scheduling.classes import PodClass
from kerf.engine.scheduling.hostports import conflicts
from kerf.engine.scheduling.problem import PendingPod
from kerf.engine.scheduling.reservations import Reservations
from kerf.engine.scheduling.resources import added
from kerf.engine.scheduling.taints import untolerated
from kerf.engine.scheduling.templates import State, Template


class Claim:
    """One NodeClaim to be. `order` is its place among claims with as many pods (see packing)."""

    def __init__(self, index: int, template: Template, state: State, types: int, relaxed: bool) -> None:
        self.index = index
        self.template = template
        self.state = state
        self.types = types
        self.relaxed = relaxed
        self.requests: Resources = {}
        self.pods: list[PendingPod] = []
        self.ports: tuple[HostPort, ...] = ()
        self.held: frozenset[str] = frozenset()
        self.order = index  # a place in creation order, until it grows
        self.epoch = 0  # counts changes of `state`
        self._class: PodClass | None = None
        self._left = 0
        self._taken = 0
        self._cpu = self._memory = self._pods = 0
        self._bound()

    def may_fit(self, wanted: PodClass) -> bool:
        """False only if the claim certainly lacks the room: a bound by the largest amounts any of its
        types had when it last settled."""
        return wanted.cpu <= self._cpu and wanted.memory <= self._memory and self._pods > 0

    def accept(self, wanted: PodClass, reservations: Reservations) -> bool:
        """Whether one more pod of the class fits; if so the claim is narrowed to it and `take` must
        follow."""
        if self._class is wanted and self._left > 0:
            return True
        self.settle()
        if untolerated(self.template.pool.taints, wanted.tolerations):
            return False
        following = self.template.step(self.state, wanted.requirements)
        if isinstance(following, tuple) or conflicts(wanted.ports, self.ports):
            return False
        room = self._room(wanted, following)
        if room == 0:
            return False
        if following.reservable or self.held:
            room = 1  # reservations are settled pod by pod
            if not self._reserve(wanted, following, reservations):
                return False
        self._narrow(following, wanted)
        self._class, self._left = wanted, room
        return True

    def take(self, pod: PendingPod) -> None:
        """Add one pod of the class that was accepted last."""
        self.pods.append(pod)
        self._left -= 1
        self._taken += 1

    def settle(self) -> None:
        """Bring requests and types up to date with the pods taken."""
        wanted, taken = self._class, self._taken
        self._class, self._left, self._taken = None, 0, 0
        if wanted is None or not taken:
            return
        self.requests = added(self.requests, wanted.requests, taken)
        self.types = self._survivors(self.state, self.requests, wanted, self.ports_before(wanted))
        self._bound()

    # ── inside ──────────────────────────────────────

    def _narrow(self, following: State, wanted: PodClass) -> None:
        if following is not self.state:
            self.state = following
            self.epoch += 1
        self.ports += wanted.ports

    def may_change_its_mind(self, wanted: PodClass) -> bool:
        """Whether a claim that refused the class may still accept it later. Most refusals are final,
        because a claim only ever narrows; but another pod may yet define a label that was unknown (S-96),
        and reserved capacity may be given back (S-115)."""
        following = self.template.step(self.state, wanted.requirements)
        if isinstance(following, tuple):
            return following[0].existing is None
        return following.reservable

    def ports_before(self, wanted: PodClass) -> tuple[HostPort, ...]:
        """The ports of the other pods: those of the class that was added last are at the end."""
        return self.ports[: len(self.ports) - len(wanted.ports)]

    def _survivors(self, state: State, requests: Resources, wanted: PodClass, taken: tuple[HostPort, ...]) -> int:
        left = self.template.survivors(self.types & state.viable, requests, wanted.ports, taken)
        if state.min_values and not self.template.meets_min_values(state.min_values, left):
            return 0
        return left

    def _room(self, wanted: PodClass, state: State) -> int:
        """How many pods of the class fit; more pods never fit where fewer do not, so bisection finds it."""

        def fits(count: int) -> bool:
            return self._survivors(state, added(self.requests, wanted.requests, count), wanted, self.ports) != 0

        if not fits(1):
            return 0
        if wanted.ports:
            return 1  # pods of one class clash with one another
        low, high = 1, self._most(wanted) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _most(self, wanted: PodClass) -> int:
        """An upper bound of `_room`."""
        most = self._pods
        if wanted.cpu:
            most = min(most, self._cpu // wanted.cpu)
        if wanted.memory:
            most = min(most, self._memory // wanted.memory)
        return max(most, 1)

    def _bound(self) -> None:
        allocatable = self.template.catalogue.allocatable
        free = {
            name: allocatable[name].highest(self.types) - self.requests.get(name, 0) if name in allocatable else 0
            for name in ("cpu", "memory", "pods")
        }
        self._cpu, self._memory, self._pods = free["cpu"], free["memory"], free["pods"]

    def _reserve(self, wanted: PodClass, state: State, reservations: Reservations) -> bool:
        """Hold what this claim might use once the pod is on it (S-113 to S-115); False if it would have to
        go without although reserved capacity would do."""
        types = self._survivors(state, added(self.requests, wanted.requests), wanted, self.ports)
        usable = reservations.usable(self.template, state, types)
        held = reservations.reservable(usable, self.held)
        if not held and (usable or self.held):
            return False
        reservations.move(self.held, held)
        self.held = held
        return True
