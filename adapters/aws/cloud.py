"""The port `Cloud` on EC2 (sections 2 to 7 of docs/rules/aws.md): which of the adapter's parts are asked, and in which
order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kerf.adapters.aws.call_listener import told_as
from kerf.adapters.aws.catalogue.instance_types import first_problem
from kerf.adapters.aws.catalogue.market import LiveMarket
from kerf.adapters.aws.catalogue.node_memory import JoinedNode
from kerf.adapters.aws.health import unhealthy
from kerf.adapters.aws.instances import Instances
from kerf.adapters.aws.launch.client_tokens import ClientTokens
from kerf.adapters.aws.launch.fleet import Group, answered, fleet_request, groups, least_pods
from kerf.adapters.aws.launch.fleet_errors import explained, failure
from kerf.adapters.aws.launch.launch_template import LaunchTemplates
from kerf.adapters.aws.nodeclass.capacity_reservations import state_of
from kerf.adapters.aws.nodeclass.class_catalogues import ClassCatalogues
from kerf.adapters.aws.nodeclass.dry_runs import DryRuns, own_annotations
from kerf.adapters.aws.nodeclass.known import Known
from kerf.adapters.aws.nodeclass.resolved import readiness, with_condition, with_kubelet, zones
from kerf.adapters.aws.nodeclass.resolved import ready as valid
from kerf.adapters.aws.nodeclass.resolver import NodeClassResolver
from kerf.adapters.aws.nodeclass.seen import KIND, class_seen, judged_ready
from kerf.adapters.aws.session import AwsError, Clients, call
from kerf.adapters.aws.settings import AwsSettings
from kerf.adapters.aws.told_once import ToldOnce
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.engine.errors import InputError, KerfError, fault_of
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.launch_reasons import NO_ADDRESSES, launch_reason
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import ec2_terms, user_data_digest
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    TAKEN_BACK,
    EffectAnswered,
    InputRefused,
    InstanceSeen,
    InterruptionSeen,
    LaunchAnswered,
    Observation,
    TaggedInstance,
)
from kerf.engine.runtime.carry_out import user_data_changed

COLLECT_EVERY = 1_800_000
"""How often (ms) instance profiles that nothing uses are looked for (A-123)."""
_STALE_TEMPLATE = "InvalidLaunchTemplateName.NotFoundException"
_GONE_TEMPLATES = frozenset({_STALE_TEMPLATE, "InvalidLaunchTemplateId.NotFound"})
"""Errors in a fleet's answer by which the templates are looked for before they are used again."""
_MISMATCH = "IdempotentParameterMismatch"
_UNTRIED = Condition("ValidationSucceeded", "Unknown", "AwaitingReconciliation", "EC2's types are not known")
EXPIRING = "capacity_reservation_expiring"
"""The kind of interruption of an instance whose capacity block is about to end (A-375)."""


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
        self._clients, self.listener = clients, clients.listener
        self._settings = settings
        self._objects = node_classes
        self._clock = clock
        self._markets = LiveMarket(clients, clock, isolated=settings.isolated_vpc)
        self._classes = NodeClassResolver(clients, settings, clock)
        self._templates = LaunchTemplates(clients, settings, clock)
        self._dry_runs = DryRuns(clients, settings, self._templates, clock, self.free_addresses)
        self._shifts = ZonalShifts(clients, settings.facts.arn if settings.zonal_shift else "", clock)
        self._instances = Instances(
            clients,
            settings.cluster,
            clock,
            self._shifts,
            reserved=settings.reserved_capacity,
            runs_on=self._classes.reservations.runs_on,
        )
        self._catalogues = ClassCatalogues(settings, self._markets, self._classes, self._shifts, clock)
        self._known: dict[str, Known] = {}
        self._unswept = ToldOnce()
        self._unreported: list[InputRefused] = []
        self._joined: list[JoinedNode] = []
        self._tokens = ClientTokens()
        self._collect_at = clock() + COLLECT_EVERY
        self._resolving = threading.RLock()  # one thread at a time finds out about classes, types and prices

    # ── observing ──────────────────────────────────────────────────────────────────────────────────────────

    def observe(self) -> list[Observation]:
        """What changed of NodeClasses and their catalogues since the last call, with AWS's refusals as
        `InputRefused`."""
        with self._resolving:
            observations = [Observation(refused) for refused in (*self._unreported, *self._markets.refresh())]
            self._unreported.clear()
            observations += _refusals("zonal shifts", self._shifts.refresh())
            if not self._observing:
                observations += self._kept_tidy()
            objects = sorted(self._objects(), key=lambda node_class: node_class.name)
            self._known = {o.name: self._known[o.name] for o in objects if o.name in self._known}
            self._classes.forget(self._known)
            self._dry_runs.forget(self._known)
            for node_class in objects:
                observations += self._observe(node_class)
            self._catalogues.keep(len(objects))
            return observations

    def resolved(self, name: str) -> EC2NodeClass | None:
        """A class as it was last resolved, with its status; None before it was."""
        known = self._known.get(name)
        return known.resolved if known is not None else None

    def reconsider(self) -> None:
        """Resolve all classes anew with the next `observe`: the settings learned something of the cluster."""
        with self._resolving:
            self._classes.reconsider()

    def serve(self, pools: Iterable[NodePool]) -> None:
        """The NodePools that launch from the classes: what they can have is tried (A-135)."""
        self._dry_runs.serve(pools)

    def learn(self, joined: Iterable[JoinedNode]) -> None:
        """Take in the memory of Nodes that have registered; catalogues have it from the next `observe` on (A-170),
        those of classes that are not resolved yet from when they are."""
        with self._resolving:
            self._joined = list(joined)
            for known in self._known.values():
                self._catalogues.learn(self._joined, known)

    def free_addresses(self) -> dict[str, int]:
        """Free addresses by subnet, as EC2 last told."""
        return self._classes.free_addresses.known()

    def next_due(self) -> int:
        """When `observe` has to be called even if nothing happens until then (ms since the epoch)."""
        times = [self._classes.due(known.resolved) for known in self._known.values()] if not self._observing else []
        return min([*times, self._markets.next_due(), *self._shifts.due()])

    def name(self, instances: Mapping[str, str]) -> dict[str, AwsError]:
        """Tag instances (id → name of the Node) with their Nodes' names (A-323). Returns what EC2 has against single
        ones. Raises `AwsError`."""
        return self._instances.name(instances)

    def unhealthy(self) -> list[tuple[str, str]]:
        """(instance, kind) of the account's instances that EC2 calls unhealthy (A-351). Raises `AwsError`."""
        return unhealthy(self._clients, self._clock())

    def in_ending_blocks(self) -> list[tuple[str, str]]:
        """(instance, `EXPIRING`) of this cluster's instances whose capacity block is about to end (A-375). Raises
        `AwsError`."""
        now = self._clock()
        held = (
            capacity_reservation
            for known in list(self._known.values())
            for capacity_reservation in known.resolved.status.capacity_reservations
        )
        blocks = sorted({reservation.id for reservation in held if state_of(reservation, now) == "expiring"})
        return [(instance, EXPIRING) for instance in self._instances.of_reservations(blocks)] if blocks else []

    def release(self, node_class: EC2NodeClass) -> None:
        """Delete all that was made for a class that is being deleted (A-81). Raises `AwsError`."""
        if not self._settings.isolated_vpc:
            self._classes.profiles.release(node_class)
        self._templates.release(node_class.name)

    def _kept_tidy(self) -> list[Observation]:
        """What nobody uses any more goes (A-123, A-237). That templates cannot be swept is said once. Nothing that goes
        wrong here keeps classes from being resolved."""
        refusals = list[Observation]()
        try:
            if self._templates.sweep():
                self._unswept.news([])  # what is refused later is news again
        except Exception as error:
            refusals += _refusals("launch templates", self._unswept.news([fault_of(error, "launch templates")]))
        if self._settings.isolated_vpc or self._clock() < self._collect_at:
            return refusals
        self._collect_at = self._clock() + COLLECT_EVERY
        try:
            classes = [known.resolved for known in self._known.values()]
            self._classes.profiles.collect(classes, self._instances.profiles())
        except Exception as error:
            refusals += _refusals("instance profiles", [fault_of(error, "instance profiles")])
        return refusals

    def _observe(self, node_class: EC2NodeClass) -> list[Observation]:
        """What is new of a class. Whatever goes wrong with one class is its own condition: the others go on."""
        try:
            known = self._refreshed(node_class)
            sold = self._catalogues.news(known)
            if known.types and known.learned != known.resolved.status.amis:
                known.learned = known.resolved.status.amis
                self._catalogues.learn(self._joined, known)
                sold += self._catalogues.news(known)
            known.fault = ""
        except Exception as error:
            known = self._known.setdefault(node_class.name, Known(node_class, {}))
            self._classes.postpone(node_class)
            fault = fault_of(error, f"{KIND}/{node_class.name}")
            sold = known.fail(node_class, fault, self._clock(), judged=self._observing)
        group = self._classes.placement_group(node_class.name).id
        seen, kept = class_seen(known.resolved, self._readiness(known.resolved), group, self._settings.facts.ca_bundle)
        observations = []
        if seen != known.seen:
            observations.append(Observation(seen, {seen.digest: kept}))
            known.seen = seen
        return observations + sold + known.tell(self._classes.refused(node_class.name))

    def _readiness(self, resolved: EC2NodeClass) -> Condition:
        """The condition Ready. In observe mode it is Karpenter's; without one, Karpenter has not judged the class
        yet."""
        if not self._observing:
            return readiness(resolved.status)
        return judged_ready(resolved)

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
        due = anew and self._classes.due(node_class) <= now
        if known is None or _wanted(known.resolved) != _wanted(node_class) or due:
            same = known is not None and known.resolved.uid == node_class.uid
            before = known.resolved.status if known is not None and same else node_class.status
            last_steps = (self._evaluated, self._tried) if not node_class.deleting else None
            status = self._classes.resolve(node_class, before, last_steps)
            status = with_condition(status, readiness(status), now)
            resolved = replace(node_class, status=status)
            if known is None:
                known = self._known[node_class.name] = Known(resolved, {})
            known.resolved = resolved
        return known

    def _evaluated(self, resolved: EC2NodeClass) -> Condition:
        """The verdict on the expressions of a class, by their values on every type (A-129)."""
        if self._catalogues.kubelets(resolved) is None:
            return valid("ValidationSucceeded")
        if not self._markets.known:
            return _UNTRIED
        problem = first_problem(self._catalogues.sized(resolved), self._catalogues.facts())
        if not problem:
            return valid("ValidationSucceeded")
        return Condition("ValidationSucceeded", "False", "KubeletExpressionEvaluationFailed", problem)

    def _tried(self, resolved: EC2NodeClass) -> Condition:
        """The verdict of EC2, by a launch without launching (A-129)."""
        if not self._settings.dry_run:
            return valid("ValidationSucceeded")
        if not self._markets.known:
            return _UNTRIED
        return self._dry_runs.check(
            resolved,
            lambda: {kind.name: kind for kind in self._catalogues.of(resolved).types},
            self._catalogues.kubelets(resolved),
        )

    # ── launching ──────────────────────────────────────────────────────────────────────────────────────────

    @told_as("nodeclaim.lifecycle", "Create")
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
        same = known is not None and (known.resolved.uid, known.resolved.spec) == (node_class.uid, node_class.spec)
        if known is not None and same and known.types:
            return known  # a launch does not wait for what `observe` keeps fresh
        with self._resolving:
            if not self._markets.known:
                self._unreported += self._markets.refresh()
            known = self._refreshed(node_class, anew=False)
            if not known.types and self._readiness(known.resolved).status == "True":
                known.types = {kind.name: kind for kind in self._catalogues.of(known.resolved).types}
            return known

    def _launch(self, order: LaunchInstance, known: Known, intent: str, token: str) -> LaunchAnswered:
        chosen = groups(order, known.types, known.resolved.status.amis, self._catalogues.kubelets(known.resolved))
        taken = self._classes.free_addresses.take(known.resolved.status.subnets, least_pods(chosen))
        fleet = partial(self._fleet, order, known.resolved, chosen, taken.subnets, intent, token)
        used = ""
        try:
            answer = self._with_templates(fleet)
            used = answer.zone
        finally:  # also where EC2 refused the call, or its answer was lost: the next try takes them again
            self._classes.free_addresses.give_back(taken, used)
        self._learn(answer, order, taken.subnets, token)
        return answer

    def _with_templates(self, fleet: Callable[[], LaunchAnswered]) -> LaunchAnswered:
        """The answer to a fleet, or to a second one with the templates made anew, where a template is not there any
        more (A-284)."""
        try:
            return fleet()
        except AwsError as error:
            if error.aws_code != _STALE_TEMPLATE:
                raise
        self._templates.forget()
        return fleet()

    def _learn(self, answer: LaunchAnswered, order: LaunchInstance, subnets: Mapping[str, str], token: str) -> None:
        """Keep what the next launch has to know of this one."""
        if order.reservation and answer.instance:
            self._classes.reservations.launched(order.reservation, answer.instance)
        elif any(error.reservation for error in answer.errors):
            self._classes.reservations.exhausted(order.reservation)
        for error in answer.errors:
            if error.code == NO_ADDRESSES and error.zone in subnets:
                self._classes.free_addresses.used_up(subnets[error.zone])
        if answer.instance:
            self._instances.started(answer)
            self._tokens.done(token)
            return
        self._tokens.spend(token)
        if any(error.code in _GONE_TEMPLATES for error in answer.errors):
            self._templates.forget()

    def _fleet(
        self,
        order: LaunchInstance,
        resolved: EC2NodeClass,
        chosen: Sequence[Group],
        subnets: Mapping[str, str],
        intent: str,
        token: str,
    ) -> LaunchAnswered:
        templates, placement = [], self._classes.placement_group(resolved.name).id
        for group in chosen:
            booted = with_kubelet(resolved, group.kubelet)
            templates.append((self._templates.of(order, booted, group.kind, group.image, placement), group))
        tried = {zone: (subnet,) for zone, subnet in subnets.items()}
        request = fleet_request(
            order, resolved, self._settings, templates, tried, self._tokens.next_of(token, self._clock())
        )
        if not request:
            message = "no offer has an image that boots it and a subnet in its zone"
            return failure(intent, order.claim, "NoLaunchableOffer", message)
        answer = call(self._clients.ec2.create_fleet, **request)
        zone_ids = zones(resolved.status)
        launched = answered(
            answer, request, order, zone_ids, placement_group=placement, intent=intent, now=self._clock()
        )
        if not launched.instance:
            return launched
        # It was launched by these, whatever the class says when the answer is read.
        terms = ec2_terms(resolved, self._settings.facts.ca_bundle)
        return replace(launched, class_hash=terms.hash, security_groups=terms.security_groups)

    def _not_launched(self, error: AwsError, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """The answer to a refused call. It started nothing, with one exception: a token that was used before for
        another request may have started an instance."""
        if error.unknown:
            raise error
        if error.aws_code == _MISMATCH:
            if (earlier := self.find(order, intent=intent, token=token)) is not None:
                return earlier
            self._tokens.mismatched(token, self._clock())
        text = f"{error.aws_code}: {error.detail}"
        return failure(intent, order.claim, launch_reason(text), f"{error.operation}: {explained(text)}")

    # ── instances ──────────────────────────────────────────────────────────────────────────────────────────

    @told_as("nodeclaim.lifecycle", "Get")
    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        """The instance that carries the claim's tag, whatever the token; None if EC2 shows none."""
        del token  # it names the request; the tag, which outlives it, names the claim
        known = self._known.get(order.node_class.name)
        zone_ids = zones(known.resolved.status) if known is not None else {}
        return self._instances.find(order, zone_ids, intent=intent)

    @told_as("nodeclaim.lifecycle", "Delete")
    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        return self._instances.terminate(instance, intent=intent)

    @told_as("nodeclaim.lifecycle", "Get")
    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        seen = self._instances.describe(instances)
        for instance in seen:
            if instance.status == "gone":
                self._classes.reservations.gone(instance.instance)
        return seen

    def interrupted(self, observations: Iterable[Observation]) -> None:
        """Take in what the interruption queue has said of reservations, once it is recorded (A-360).

        The record has nothing left of them from then on. So what is left is told anew, also if it is as it was.
        """
        for payload in (observation.payload for observation in observations):
            if isinstance(payload, InterruptionSeen) and payload.kind == TAKEN_BACK:
                self._classes.reservations.taken_back(payload.instance)
                for known in list(self._known.values()):
                    known.left = None

    @told_as("instance.garbagecollection", "List")
    def listing(self) -> list[TaggedInstance]:
        return self._instances.listing()


def _wanted(node_class: EC2NodeClass) -> tuple[object, ...]:
    """What of a class is resolved anew at once when it changes."""
    return node_class.uid, node_class.spec, node_class.deleting, own_annotations(node_class)


def _refusals(what: str, refused: Iterable[KerfError]) -> list[Observation]:
    return [Observation(InputRefused(error.code, "aws", what, message=str(error))) for error in refused]
