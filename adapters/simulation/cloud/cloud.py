"""The virtual cloud: launches and ends instances in virtual time, with the failures of a scenario or a fault plan.

An instance is pending, then running, then shutting-down, then gone. The same token never starts a second instance, and
an instance can be found by the claim that it was launched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cloud.boot import Boot, boot_of
from kerf.adapters.simulation.cloud.interruption_queue import INSTANCE_TERMINATED, SPOT_INTERRUPTED, InterruptionQueue
from kerf.adapters.simulation.cloud.market import Key, Market
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.adapters.simulation.errors import AnswerLostError
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.errors import InputError
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.karpenter.nodeclass_terms import known_user_data, recorded
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.model.labels import ON_DEMAND
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    CatalogueSeen,
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    LaunchError,
    NodeClassSeen,
    ObjectGone,
    Observation,
    TaggedInstance,
)
from kerf.engine.runtime.carry_out import user_data_changed

NO_CAPACITY = "InsufficientInstanceCapacity"
NO_RESERVATION_LEFT = "ReservationCapacityExceeded"
NOT_SOLD = "Unsupported"
THROTTLED = "RequestLimitExceeded"
INTERNAL = "InternalError"


@dataclass
class Instance:
    """An instance that was once launched. `ended` is when its end began, 0 while it lives."""

    machine: Machine
    token: str
    launched: int
    boot: Boot
    reservation: str = ""
    ended: int = 0
    vanished: bool = False


class VirtualCloud:
    """Implements `kerf.engine.runtime.ports.Cloud`. It calls `boots` with each new machine and `ends` with each
    instance that ends, so that the cluster's kubelets follow."""

    def __init__(
        self,
        market: Market,
        queue: InterruptionQueue,
        clock: Clock,
        rng: SeededRandom,
        timing: Timing,
        faults: FaultPlan,
        *,
        boots: Callable[[Machine], None],
        ends: Callable[[str], None],
        catalogue_of: Callable[[Struct], Catalogue] | None = None,
    ) -> None:
        """`catalogue_of` makes a NodeClass's own catalogue from its object; without it all have the market's."""
        self.market, self.queue = market, queue
        self.instances: dict[str, Instance] = {}
        self._clock, self._rng, self._timing = clock, rng, timing
        self._fault_injector = FaultInjector(faults, rng, clock)
        self._boots, self._ends, self._catalogue_of = boots, ends, catalogue_of
        self._by_token: dict[str, LaunchAnswered] = {}
        self._classes: dict[str, tuple[NodeClassSeen, dict[str, Struct]]] = {}
        self._unseen: list[Observation] = []
        self._calls = 0
        self._throttled_until = 0
        self._losing = False
        self.failures: Iterator[str] = iter(())
        """By which codes the next calls for a launch fail, "" for one that does not. Without, chance decides."""
        self.demoted = False  # something runs as another capacity type than the driver has been told

    # ── NodeClasses and catalogues ──────────────────────────────────────────────────────────────────────────

    def put_node_class(self, node_class: NodeClassSeen, blobs: dict[str, Struct] | None = None) -> None:
        """Apply a NodeClass. It is resolved at once and may buy its whole catalogue. One whose nodes nobody can size
        keeps the catalogue that it had."""
        key = _key(node_class)
        blobs = blobs if blobs is not None else {}
        news = key not in self._classes
        if self._catalogue_of is not None and node_class.digest in blobs:
            with suppress(InputError):
                news |= self.market.stock(key, self._catalogue_of(blobs[node_class.digest]))
        self._classes[key] = (node_class, blobs)
        self._unseen.append(self._class_seen(key))
        if news:
            self._unseen.append(self._catalogue_seen(key))

    def node_class(self, name: str) -> NodeClassSeen | None:
        """Return the NodeClass of this name, of any kind."""
        return next((seen for seen, _ in self._classes.values() if seen.name == name), None)

    def update_node_class(self, node_class: NodeClassSeen) -> None:
        """Change whether a known NodeClass is ready."""
        key = _key(node_class)
        self.put_node_class(node_class, self._classes[key][1])

    def drop_node_class(self, name: str) -> bool:
        keys = [key for key, (seen, _) in self._classes.items() if seen.name == name]
        for key in keys:
            del self._classes[key]
            self._unseen.append(Observation(ObjectGone(kind="nodeclass", key=key)))
        return bool(keys)

    def prices_changed(self) -> None:
        """Show the catalogues anew, since prices changed."""
        self._unseen += [self._catalogue_seen(key) for key in sorted(self._classes)]

    def catalogue_changed(self, node_class: str) -> None:
        """Show the catalogue of one NodeClass (`group/kind/name`) anew."""
        if node_class in self._classes:
            self._unseen.append(self._catalogue_seen(node_class))

    def observe(self) -> list[Observation]:
        """Return NodeClasses and catalogues that have changed since the last call."""
        unseen, self._unseen = self._unseen, []
        return unseen

    def reconnect(self) -> None:
        """Show everything anew, since a new process has seen nothing yet."""
        keys = sorted(self._classes)
        self._unseen = [self._class_seen(key) for key in keys] + [self._catalogue_seen(key) for key in keys]

    def _class_seen(self, key: str) -> Observation:
        seen, blobs = self._classes[key]
        sold = self.market.reservations(key)
        if seen.terms is not None and sold:  # what runs on one of them has not drifted
            selected = tuple(name for name in sold if name not in self.market.ended)
            seen = replace(seen, terms=replace(seen.terms, reservations=selected))
        return Observation(seen, {digest: recorded(blob) for digest, blob in blobs.items()})

    def _catalogue_seen(self, key: str) -> Observation:
        catalogue = self.market.catalogue_of(key)
        digest, _ = content(catalogue)
        return Observation(CatalogueSeen(node_class=key, digest=digest), {digest: catalogue})

    # ── launching ───────────────────────────────────────────────────────────────────────────────────────────

    def throttle(self, duration: int) -> None:
        """Refuse every call for this long (RequestLimitExceeded)."""
        self._throttled_until = self._clock.now + duration

    def lose_answer(self) -> None:
        """Let the next launch that succeeds give no answer."""
        self._losing = True

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """Launch an instance. Raises `AnswerLostError` (KERF830) when it was launched and the answer did not arrive."""
        known = self._by_token.get(token)
        if known is not None:
            return replace(known, intent=intent)
        self._calls += 1
        refused = self._refused_call(order, intent)
        if refused is not None:
            return refused
        answer = self._fleet(order, intent, token)
        if answer.instance:
            self._by_token[token] = answer
            by_chance = self._fault_injector.strikes("answer_lost", answer.instance)
            if by_chance or self._losing:
                self._losing = False
                raise AnswerLostError("the answer to a launch was lost", where=f"NodeClaim {order.claim}")
        return answer

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        """Return the claim's instance by its tag, if one was launched that has not ended."""
        tagged = [i for i in self.instances.values() if i.machine.claim == order.claim and not i.ended]
        if not tagged:
            return None
        return self._launched(tagged[-1], intent, adopted=True)

    def _refused_call(self, order: LaunchInstance, intent: str) -> LaunchAnswered | None:
        known = self._classes.get(_key(order.node_class))
        if known is None or not known[0].ready:
            reason = "NodeClass not found" if known is None else known[0].reason
            return LaunchAnswered(intent=intent, claim=order.claim, kind="nodeclass-not-ready", message=reason)
        if order.user_data and order.user_data != known_user_data(known[0].terms):
            return user_data_changed(intent, order)
        code = ""
        if self._throttled():
            code = THROTTLED
        elif self._fault_injector.strikes("launch_error", self._calls):
            code = INTERNAL
        code = next(self.failures, "") or code
        if not code:
            return None
        return LaunchAnswered(intent=intent, claim=order.claim, kind="error", code=code, message=f"{code}: try again")

    def _throttled(self) -> bool:
        by_chance = self._fault_injector.strikes("throttled", self._calls)
        return by_chance or self._clock.now < self._throttled_until

    def _fleet(self, order: LaunchInstance, intent: str, token: str) -> LaunchAnswered:
        """Do as CreateFleet of type instant: buy the first offering with capacity, and return an error for each that
        was tried before."""
        errors: list[LaunchError] = []
        for _, key in sorted(self._wanted(order)):
            code = self._lacks(key, order)
            if code:
                capacity_type, type_name, zone = key
                message = f"no {capacity_type} {type_name} in {zone}"
                errors.append(
                    LaunchError(code, message, instance_type=type_name, zone=zone, capacity_type=capacity_type)
                )
                continue
            instance = self._start(order, key, token)
            return self._launched(instance, intent, errors=tuple(errors))
        code = errors[0].code if errors else "InvalidParameter"
        return LaunchAnswered(
            intent=intent,
            claim=order.claim,
            kind="insufficient-capacity" if errors else "error",
            code=code,
            message=f"none of {len(order.offers)} offers could be launched",
            errors=tuple(errors),
        )

    def _wanted(self, order: LaunchInstance) -> list[tuple[float, Key]]:
        """The order's offers, with the price by which the cloud draws: today's, or the order's own where a NodeOverlay
        set prices (A-275, A-276)."""
        offers = []
        for offer in order.offers:
            key = (order.capacity_type, offer.instance_type, offer.zone)
            offering = None if order.by_price else self._offering(key, order)
            offers.append((offer.price if offering is None else offering.price, key))
        return offers

    def _offering(self, key: Key, order: LaunchInstance) -> Offering | None:
        return self.market.offering(key, order.reservation, order.tenancy)

    def _lacks(self, key: Key, order: LaunchInstance) -> str:
        """Return EC2's error code for an offering that cannot be launched now, or ""."""
        offering = self._offering(key, order)
        if offering is None:
            return NOT_SOLD
        if order.reservation and not offering.reservation_capacity:
            return NO_RESERVATION_LEFT
        by_chance = self._fault_injector.strikes("no_capacity", self._calls, *key)
        return NO_CAPACITY if by_chance or not self.market.has_capacity(key) else ""

    def _reserve(self, reservation: str, change: int) -> None:
        """Change what is left of a reservation, and show it (A-210)."""
        if reservation:
            self.market.reserve(reservation, change)
            self.prices_changed()

    def _start(self, order: LaunchInstance, key: Key, token: str) -> Instance:
        capacity_type, type_name, zone = key
        kind = self.market.type(type_name, _key(order.node_class))
        offering = self._offering(key, order)
        if kind is None or offering is None:
            raise AssertionError(f"{key} was not checked before the start")
        name = self._new_id()
        machine = Machine(
            instance=name,
            claim=order.claim,
            node_pool=order.node_pool,
            provider_id=f"virtual:///{zone}/{name}",
            type=kind,
            zone=zone,
            zone_id=offering.zone_id,
            capacity_type=capacity_type,
            labels=order.labels,
            taints=order.taints,
        )
        boot = boot_of(*self._classes[_key(order.node_class)], kind, zone)
        instance = Instance(machine, token, self._clock.now, boot, order.reservation)
        self.instances[name] = instance
        self._reserve(order.reservation, -1)
        self._boots(machine)
        return instance

    def _new_id(self) -> str:
        """Return the next id that no instance has. A model begins with those of a record, maybe of a simulation."""
        ids = ("i-0" + self._rng.hex(16, "instance", number) for number in count(len(self.instances)))
        return next(name for name in ids if name not in self.instances)

    def _launched(
        self, instance: Instance, intent: str, *, adopted: bool = False, errors: tuple[LaunchError, ...] = ()
    ) -> LaunchAnswered:
        machine = instance.machine
        return LaunchAnswered(
            intent=intent,
            claim=machine.claim,
            instance=machine.instance,
            provider_id=machine.provider_id,
            instance_type=machine.type.name,
            zone=machine.zone,
            zone_id=machine.zone_id,
            capacity_type=machine.capacity_type,
            image=instance.boot.image,
            subnet=instance.boot.subnet,
            security_groups=instance.boot.security_groups,
            class_hash=instance.boot.class_hash,
            launched=instance.launched,
            adopted=adopted,
            errors=errors,
        )

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        self._calls += 1
        if self._throttled():
            return EffectAnswered(intent=intent, ok=False, code=THROTTLED, message=f"{THROTTLED}: try again")
        self.end(instance)
        return EffectAnswered(intent=intent, ok=True, code="200")

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        seen = []
        for name in instances:
            known = self.instances.get(name)
            claim, runs_as = ("", "") if known is None else (known.machine.claim, known.machine.capacity_type)
            seen.append(InstanceSeen(name, self.status(name), claim, runs_as))
        return seen

    def listing(self) -> list[TaggedInstance]:
        return [
            TaggedInstance(i.machine.instance, i.machine.claim, i.launched, i.machine.capacity_type)
            for i in self.alive()
        ]

    def status(self, name: str) -> str:
        """Return EC2's state name at this moment, or "gone" for an instance that EC2 does not list."""
        instance = self.instances.get(name)
        if instance is None or instance.vanished:
            return "gone"
        if instance.ended:
            return "shutting-down" if self._clock.now < instance.ended + self._timing.shutdown else "gone"
        return "pending" if self._clock.now < instance.launched + self._timing.running else "running"

    def alive(self) -> list[Instance]:
        """Return the instances whose end has not begun, oldest first."""
        return [instance for instance in self.instances.values() if not instance.ended]

    def end(self, name: str) -> None:
        """Begin to end an instance. One that is ending or gone is left alone."""
        instance = self.instances.get(name)
        if instance is not None and not instance.ended:
            instance.ended = self._clock.now
            self._reserve(instance.reservation, 1)
            self._ends(name)

    def demote(self, name: str) -> None:
        """End the reservation of an instance: it runs on as on-demand, and nobody can buy from the reservation any
        more."""
        instance = self.instances[name]
        if instance.reservation:
            self.market.end_reservation(instance.reservation)
            self._unseen += [self._class_seen(key) for key in sorted(self._classes)]
            self.prices_changed()
            self.demoted = True
            ended, instance.reservation = instance.reservation, ""
            instance.machine = replace(instance.machine, capacity_type=ON_DEMAND)
            for other in [same for same in self.instances.values() if same.reservation == ended]:
                other.reservation = ""
                other.machine = replace(other.machine, capacity_type=ON_DEMAND)

    def interrupt(self, name: str) -> None:
        """Interrupt a spot instance: a warning now, the end two minutes later."""
        self.queue.send(SPOT_INTERRUPTED, name)
        self._clock.after(self._timing.spot_warning, "spot instance is taken back", lambda: self.end(name))

    def reclaim(self, name: str) -> None:
        """End an instance without a warning, and say so afterwards."""
        self.end(name)
        self.queue.send(INSTANCE_TERMINATED, name)

    def vanish(self, name: str) -> None:
        """Let an instance be gone at once, and tell nobody."""
        self.end(name)
        self.instances[name].vanished = True


def _key(node_class: NodeClassSeen | NodeClassRef) -> str:
    return f"{node_class.group}/{node_class.kind}/{node_class.name}"
