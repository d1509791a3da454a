"""The port `Cloud` on EC2 (sections 2 to 7 of docs/rules/aws.md): which of the adapter's parts are asked, and in which
order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.market import LiveMarket
from kerf.adapters.aws.catalogue.offerings import catalogue
from kerf.adapters.aws.health import unhealthy
from kerf.adapters.aws.instances import Instances
from kerf.adapters.aws.launch.client_tokens import ClientTokens
from kerf.adapters.aws.launch.fleet import Group, answered, fleet_request, groups
from kerf.adapters.aws.launch.fleet_errors import UNFULFILLABLE, failure, reason
from kerf.adapters.aws.launch.launch_template import LaunchTemplates, template_data
from kerf.adapters.aws.nodeclass.capacity_reservations import state_of
from kerf.adapters.aws.nodeclass.dry_runs import DryRuns
from kerf.adapters.aws.nodeclass.known import Known
from kerf.adapters.aws.nodeclass.resolved import condition, node_settings, readiness, with_condition, zones
from kerf.adapters.aws.nodeclass.resolver import NodeClassResolver
from kerf.adapters.aws.session import AwsError, Clients, call
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.errors import InputError, fault_of
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import class_hashes, ec2_terms, recorded, user_data_digest
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    CatalogueSeen,
    EffectAnswered,
    InputRefused,
    InstanceSeen,
    LaunchAnswered,
    NodeClassSeen,
    Observation,
    ReservationsSeen,
    TaggedInstance,
)
from kerf.engine.runtime.carry_out import user_data_changed

GROUP, KIND = "karpenter.k8s.aws", "EC2NodeClass"
COLLECT_EVERY = 1_800_000
"""How often (ms) instance profiles that nothing uses are looked for (A-123)."""
_STALE_TEMPLATE = "InvalidLaunchTemplateName.NotFoundException"
_MISMATCH = "IdempotentParameterMismatch"
EXPIRING = "capacity_reservation_expiring"
"""The kind of interruption of an instance whose capacity block is about to end (A-375)."""
_NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"


class AwsCloud:
    """Launches and terminates EC2 instances; safe for threads. `node_classes` gives the EC2NodeClass objects as the
    watch last showed them; `clock` gives milliseconds since the epoch. With `observing` it changes nothing in AWS and
    takes a class's status from its object, as Karpenter wrote it."""

    def __init__(
        self,
        clients: Clients,
        settings: AwsSettings,
        node_classes: Callable[[], Iterable[EC2NodeClass]],
        clock: Callable[[], int],
        *,
        observing: bool = False,
    ) -> None:
        self._observing = observing
        self._clients = clients
        self._settings = settings
        self._objects = node_classes
        self._clock = clock
        self._markets = LiveMarket(clients, clock, isolated=settings.isolated_vpc)
        self._classes = NodeClassResolver(clients, settings, clock)
        self._templates = LaunchTemplates(clients, settings, clock)
        self._dry_runs = DryRuns(clients, settings, self._templates, clock)
        self._instances = Instances(clients, settings.cluster, clock)
        self._known: dict[str, Known] = {}
        self._in_flight: dict[str, int] = {}
        self._unreported: list[InputRefused] = []
        self._tokens = ClientTokens()
        self._collect_at = clock() + COLLECT_EVERY
        self._resolving = threading.RLock()  # one thread at a time finds out about classes, types and prices
        self._counting = threading.Lock()  # of addresses in flight

    # ── observing ──────────────────────────────────────────────────────────────────────────────────────────

    def observe(self) -> list[Observation]:
        """What changed of NodeClasses and their catalogues since the last call, with AWS's refusals as
        `InputRefused`."""
        with self._resolving:
            observations = [Observation(refused) for refused in (*self._unreported, *self._markets.refresh())]
            self._unreported.clear()
            if not self._observing:
                observations += self._kept_tidy()
            objects = sorted(self._objects(), key=lambda node_class: node_class.name)
            self._known = {o.name: self._known[o.name] for o in objects if o.name in self._known}
            self._classes.forget(self._known)
            self._dry_runs.forget(self._known)
            for node_class in objects:
                observations += self._observe(node_class)
            return observations

    def resolved(self, name: str) -> EC2NodeClass | None:
        """A class as it was last resolved, with its status; None before it was."""
        known = self._known.get(name)
        return known.resolved if known is not None else None

    def next_due(self) -> int:
        """When `observe` has to be called even if nothing happens until then (ms since the epoch)."""
        times = [self._classes.due(known.resolved) for known in self._known.values()] if not self._observing else []
        return min([*times, self._markets.next_due()])

    def name(self, instances: Mapping[str, str]) -> None:
        """Tag instances (id → name of the Node) with their Nodes' names (A-323). Raises `AwsError`."""
        self._instances.name(instances)

    def unhealthy(self) -> list[tuple[str, str]]:
        """(instance, kind) of the account's instances that EC2 calls unhealthy (A-351), or whose capacity block is
        about to end (A-375). Raises `AwsError`."""
        problems, now = unhealthy(self._clients, self._clock()), self._clock()
        held = (
            capacity_reservation
            for known in list(self._known.values())
            for capacity_reservation in known.resolved.status.capacity_reservations
        )
        blocks = sorted({reservation.id for reservation in held if state_of(reservation, now) == "expiring"})
        return problems + [
            (instance, EXPIRING) for instance in (self._instances.of_reservations(blocks) if blocks else ())
        ]

    def release(self, node_class: EC2NodeClass) -> None:
        """Delete all that was made for a class that is being deleted (A-81). Raises `AwsError`."""
        if not self._settings.isolated_vpc:
            self._classes.profiles.release(node_class)
        self._templates.release(node_class.name)

    def _kept_tidy(self) -> list[Observation]:
        """What nobody uses any more goes (A-123, A-237)."""
        refusals = []
        try:
            self._templates.sweep()
        except AwsError as error:
            refusals.append(Observation(_refused(error, "launch templates")))
        if self._settings.isolated_vpc or self._clock() < self._collect_at:
            return refusals
        self._collect_at = self._clock() + COLLECT_EVERY
        try:
            classes = [known.resolved for known in self._known.values()]
            self._classes.profiles.collect(classes, self._instances.profiles())
        except AwsError as error:
            refusals.append(Observation(_refused(error, "instance profiles")))
        return refusals

    def _observe(self, node_class: EC2NodeClass) -> list[Observation]:
        """What is new of a class. Whatever goes wrong with one class is its own condition: the others go on."""
        try:
            known = self._refreshed(node_class)
            sold = self._catalogue(known)
            known.fault = ""
        except Exception as error:
            known = self._known.setdefault(node_class.name, Known(node_class, {}))
            self._classes.postpone(node_class)
            fault = fault_of(error, f"{KIND}/{node_class.name}")
            sold = known.fail(node_class, fault, self._clock(), judged=self._observing)
        kept = recorded(known.resolved)
        digest, _ = content(kept)
        ready = self._readiness(known.resolved)
        seen = NodeClassSeen(
            group=GROUP,
            kind=KIND,
            name=node_class.name,
            uid=node_class.uid,
            generation=node_class.generation,
            ready=ready.status == "True" and not node_class.deleting,
            reason="Deleting" if node_class.deleting else ready.reason,
            digest=digest,
            terms=replace(ec2_terms(known.resolved), placement_group=self._classes.placement_group(node_class.name).id),
            annotations=class_hashes(node_class.annotations),
        )
        observations = []
        if seen != known.seen:
            observations.append(Observation(seen, {digest: kept}))
            known.seen = seen
        return observations + sold

    def _readiness(self, resolved: EC2NodeClass) -> Condition:
        """The condition Ready. In observe mode it is Karpenter's; without one, Karpenter has not judged the class
        yet."""
        if not self._observing:
            return readiness(resolved.status)
        return condition(resolved.status, "Ready") or Condition("Ready", "Unknown", "AwaitingReconciliation")

    def _catalogue(self, known: Known) -> list[Observation]:
        """A new catalogue, if its inputs changed and it came out different. How much of a reservation is left is
        observed by itself, unless it is nothing: each launch into it changes that."""
        market, resolved = self._markets.market, known.resolved
        reservations = self._classes.reservations.offered(resolved.status)
        group = self._classes.placement_group(resolved.name)
        some = tuple(replace(reservation, available=min(reservation.available, 1)) for reservation in reservations)
        made_from = (market, resolved.spec, resolved.status.subnets, some, group)
        left = ReservationsSeen(
            f"{GROUP}/{KIND}/{resolved.name}", {reservation.id: reservation.available for reservation in reservations}
        )
        counted = [Observation(left)] if left.left and left != known.left else []
        known.left = left
        if known.made_from == made_from or not resolved.status.subnets:
            return counted
        try:
            made = self._made(resolved)
        except InputError:
            return counted  # its condition says why; what it launched before is still of the types known before
        known.made_from = made_from
        known.types = {kind.name: kind for kind in made.types}
        digest, _ = content(made)
        if digest == known.catalogue:
            return counted
        known.catalogue = digest
        return [Observation(CatalogueSeen(left.node_class, digest), {digest: made}), *counted]

    def _made(self, resolved: EC2NodeClass) -> Catalogue:
        """The catalogue of a class. Raises `InputError` for a class whose nodes nobody can size."""
        settings = self._settings
        sized = node_settings(resolved, reserved_enis=settings.reserved_enis, overhead=settings.memory_overhead)
        group = self._classes.placement_group(resolved.name)
        sized = replace(sized, placement=group.strategy, placement_id=group.id)
        reservations = self._classes.reservations.offered(resolved.status)
        return catalogue(self._markets.market, sized, zones(resolved.status), reservations=reservations)

    def _refreshed(self, node_class: EC2NodeClass, *, anew: bool = True) -> Known:
        """The class, resolved again: with `anew` whatever is due, else only a class that is new or changed."""
        known = self._known.get(node_class.name)
        if self._observing:
            if known is None:
                known = self._known[node_class.name] = Known(node_class, {})
            known.resolved = node_class
            self._classes.look(node_class)
            return known
        now = self._clock()
        if known is None or known.resolved.spec != node_class.spec or (anew and self._classes.due(node_class) <= now):
            before = known.resolved.status if known is not None else node_class.status
            tried = self._dry_run if self._settings.dry_run and not node_class.deleting else None
            status = self._classes.resolve(node_class, before, tried)
            status = with_condition(status, readiness(status), now)
            resolved = replace(node_class, status=status)
            with self._counting:
                self._in_flight.clear()  # the free addresses are EC2's own again (A-233)
            if known is None:
                known = self._known[node_class.name] = Known(resolved, {})
            known.resolved = resolved
        return known

    def _dry_run(self, resolved: EC2NodeClass) -> Condition:
        """Try a launch without launching, the last step of A-129. Without a market nothing can be tried yet."""
        if not self._markets.known:
            return Condition("ValidationSucceeded", "Unknown", "AwaitingReconciliation", "EC2's types are not known")
        return self._dry_runs.check(resolved, lambda: {kind.name: kind for kind in self._made(resolved).types})

    # ── launching ──────────────────────────────────────────────────────────────────────────────────────────

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """One CreateFleet. Raises `AwsError` (KERF502) when nobody knows whether it started an instance."""
        known = self._lookup(order.node_class.name)
        if known is None:
            message = f"EC2NodeClass/{order.node_class.name} is not there, or is being deleted"
            return failure(intent, order.claim, "NodeClassNotFound", message, kind="insufficient-capacity")
        ready = self._readiness(known.resolved)
        if ready.status == "False":
            return failure(intent, order.claim, ready.reason, ready.message, kind="nodeclass-not-ready")
        if ready.status == "Unknown":
            return failure(intent, order.claim, "NodeClassReadinessUnknown", ready.message)
        if order.user_data and order.user_data != user_data_digest(known.resolved.spec.user_data):
            return user_data_changed(intent, order)
        try:
            return self._launch(order, known, intent, token)
        except InputError as error:
            return failure(intent, order.claim, error.code, str(error))
        except AwsError as error:
            return self._not_launched(error, order, intent=intent, token=token)

    def _lookup(self, name: str) -> Known | None:
        """A class, resolved now if it was not yet. One that is being deleted counts as missing (A-219)."""
        node_class = next((o for o in self._objects() if o.name == name and not o.deleting), None)
        if node_class is None:
            return None
        known = self._known.get(name)
        if known is not None and known.types and known.resolved.spec == node_class.spec:
            return known  # a launch does not wait for what `observe` keeps fresh
        with self._resolving:
            if not self._markets.known:
                self._unreported += self._markets.refresh()
            known = self._refreshed(node_class, anew=False)
            if not known.types and self._readiness(known.resolved).status == "True":
                known.types = {kind.name: kind for kind in self._made(known.resolved).types}
            return known

    def _launch(self, order: LaunchInstance, known: Known, intent: str, token: str) -> LaunchAnswered:
        chosen = groups(order, known.types, known.resolved.status.amis)
        subnets = self._subnets(order, known)
        addresses = min((group.kind.capacity["pods"] for group in chosen), default=0)
        self._take(subnets.values(), addresses)
        try:
            answer = self._fleet(order, known.resolved, chosen, subnets, intent, token)
        except AwsError as error:
            if error.aws_code != _STALE_TEMPLATE:
                raise
            self._templates.forget()  # once more, with the templates made anew
            answer = self._fleet(order, known.resolved, chosen, subnets, intent, token)
        self._take([subnet for zone, subnet in subnets.items() if zone != answer.zone], -addresses)
        self._learn(answer, order, subnets, token)
        return answer

    def _learn(self, answer: LaunchAnswered, order: LaunchInstance, subnets: Mapping[str, str], token: str) -> None:
        """Keep what the next launch has to know of this one."""
        if order.reservation and answer.instance:
            self._classes.reservations.launched(order.reservation)
        elif order.reservation and any(error.code in UNFULFILLABLE for error in answer.errors):
            self._classes.reservations.exhausted(order.reservation)
        for error in answer.errors:
            if error.code == _NO_ADDRESSES and error.zone in subnets:
                self._classes.free_addresses[subnets[error.zone]] = 0
        if answer.instance:
            self._instances.started(answer)
            self._tokens.done(token)
        elif answer.errors:
            self._tokens.spend(token)

    def _fleet(
        self,
        order: LaunchInstance,
        resolved: EC2NodeClass,
        chosen: Sequence[Group],
        subnets: Mapping[str, str],
        intent: str,
        token: str,
    ) -> LaunchAnswered:
        templates = []
        for group in chosen:
            placement = self._classes.placement_group(resolved.name).id
            data = template_data(order, resolved, self._settings, group.kind, group.image, placement)
            templates.append((self._templates.ensure(data, resolved, order.node_pool), group))
        request = fleet_request(order, resolved, self._settings, templates, subnets, self._tokens.next_of(token))
        if not request:
            message = "no offer has an image that boots it and a subnet in its zone"
            return failure(intent, order.claim, "NoLaunchableOffer", message)
        answer = call(self._clients.ec2.create_fleet, **request)
        zone_ids = zones(resolved.status)
        launched = answered(answer, request, order, zone_ids, intent=intent, now=self._clock())
        if not launched.instance:
            return launched
        terms = ec2_terms(resolved)  # it was launched by these, whatever the class says when the answer is read
        return replace(launched, class_hash=terms.hash, security_groups=terms.security_groups)

    def _subnets(self, order: LaunchInstance, known: Known) -> dict[str, str]:
        """In each zone of the offers, the subnet with most free addresses; the first of equals (A-232)."""
        offered = {offer.zone for offer in order.offers}
        free, taken = self._classes.free_addresses, self._in_flight
        chosen: dict[str, tuple[int, str]] = {}
        for subnet in known.resolved.status.subnets:
            left = free.get(subnet.id, 0) - taken.get(subnet.id, 0)
            if subnet.zone in offered and (subnet.zone not in chosen or left > chosen[subnet.zone][0]):
                chosen[subnet.zone] = (left, subnet.id)
        return {zone: subnet for zone, (_, subnet) in chosen.items()}

    def _take(self, subnets: Iterable[str], addresses: int) -> None:
        """Count the addresses that launches under way will use, until EC2 is asked again; a negative number gives them
        back (A-233)."""
        with self._counting:
            for subnet in subnets:
                self._in_flight[subnet] = self._in_flight.get(subnet, 0) + addresses

    def _not_launched(self, error: AwsError, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """The answer to a refused call. It started nothing, with one exception: a token that was used before for
        another request may have started an instance."""
        if error.unknown:
            raise error
        if error.aws_code == _MISMATCH and (earlier := self.find(order, intent=intent, token=token)) is not None:
            return earlier
        text = f"{error.aws_code}: {error.detail}"
        return failure(intent, order.claim, reason(text), f"{error.operation}: {text}")

    # ── instances ──────────────────────────────────────────────────────────────────────────────────────────

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        """The instance that carries the claim's tag, whatever the token; None if EC2 shows none."""
        del token  # it names the request; the tag, which outlives it, names the claim
        known = self._known.get(order.node_class.name)
        zone_ids = zones(known.resolved.status) if known is not None else {}
        return self._instances.find(order, zone_ids, intent=intent)

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        return self._instances.terminate(instance, intent=intent)

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        return self._instances.describe(instances)

    def listing(self) -> list[TaggedInstance]:
        return self._instances.listing()


def _refused(error: AwsError, what: str) -> InputRefused:
    return InputRefused(code=error.code, source="aws", object=what, message=str(error))
