"""Resolves an EC2NodeClass in EC2 and IAM: subnets, security groups, images, instance profile (A-74…A-115).

A call that fails leaves its part of the status as it was (A-136). Validation is first by kerf's own rules, then by dry
runs in EC2 (dry_runs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws import tags
from kerf.adapters.aws.nodeclass import placement_groups
from kerf.adapters.aws.nodeclass.capacity_reservations import Reservations, next_end
from kerf.adapters.aws.nodeclass.free_addresses import FreeAddresses
from kerf.adapters.aws.nodeclass.images import Images
from kerf.adapters.aws.nodeclass.instance_profiles import InstanceProfiles
from kerf.adapters.aws.nodeclass.placement_groups import FAILED, PlacementGroup
from kerf.adapters.aws.nodeclass.placement_groups import NONE as NO_GROUP
from kerf.adapters.aws.nodeclass.resolved import (
    DEPENDENTS,
    RESERVATIONS,
    condition,
    lacks_cidr,
    ready,
    with_condition,
    without_reservations,
)
from kerf.adapters.aws.session import AwsError, Clients, filters, pages, tag_filters
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.model.crds.ec2_tags import tag_problems
from kerf.engine.model.crds.kubelet import kubelet_problem
from kerf.engine.model.karpenter.ec2nodeclasses import (
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedSecurityGroup,
    ResolvedSubnet,
    SecurityGroupTerm,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.manifests.rules.controllers import volume_sizes
from kerf.engine.model.manifests.violations import Report

_MINUTE, _SOON = 60_000, 5_000
RESTS_ON = ("AMIsReady", "InstanceProfileReady", "SecurityGroupsReady", "SubnetsReady")
"""The conditions without which a class is not validated (A-129)."""
PAGE = 500  # subnets or security groups


_MadeOf = tuple[str, EC2NodeClassSpec]
"""The uid and spec of a class."""


class _Step(Struct, frozen=True):
    """One part of the status with its condition, and how often it is resolved (ms; A-75…A-79)."""

    kind: str
    part: str
    resolve: Callable[[EC2NodeClass], tuple[Any, Condition]]
    every: int


class NodeClassResolver:
    """Keeps the last status of each class and makes the next one of it."""

    def __init__(self, clients: Clients, settings: AwsSettings, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._images = Images(clients, settings, clock)
        self._due: dict[tuple[str, str], tuple[_MadeOf | None, int]] = {}  # (class, part) → of what it is, when
        self.profiles = InstanceProfiles(clients, settings, clock)
        self.reservations = Reservations(clients, clock)
        self._groups_known: dict[str, PlacementGroup] = {}  # by class
        self.free_addresses = FreeAddresses()
        self._refused: dict[tuple[str, str], AwsError] = {}  # (class, part) → why it stays as it was

    def resolve(
        self,
        node_class: EC2NodeClass,
        before: EC2NodeClassStatus,
        last_steps: tuple[Callable[[EC2NodeClass], Condition], Callable[[EC2NodeClass], Condition]] | None = None,
    ) -> EC2NodeClassStatus:
        """The present status. Parts that are not due yet are taken from `before`. A refusal of AWS does not raise: it
        shows in the condition concerned. `last_steps` of validation: one is taken before the tags are judged, the
        other when all else is fine (A-129)."""
        status = before if self._settings.reserved_capacity else without_reservations(before)
        for step in self._steps(before):
            if node_class.deleting and step.part == "instance_profile":
                self._due.pop((node_class.name, step.part), None)  # it goes, and is not made again
            else:
                status = self._step(step, node_class, status)
        status = self._place(node_class, status)
        verdict, now = self._validated(node_class, status), self._clock()
        evaluated, tried = last_steps or (None, None)
        resolved = replace(node_class, status=status)
        if evaluated is not None and verdict.status == "True":
            verdict = evaluated(resolved)
        if verdict.status == "True":
            verdict = _tagged(node_class)
        if tried is not None and verdict.status == "True" and _well(status):
            verdict = tried(resolved)
        again = now + (_SOON if verdict.status == "Unknown" else 10 * _MINUTE)
        self._due[node_class.name, "validation"] = _made_of(node_class), again
        return with_condition(status, verdict, now)

    def look(self, node_class: EC2NodeClass) -> None:
        """In observe mode: ask for what Karpenter's status does not hold, which is what is left of reservations, and
        the placement group."""
        for step in self._steps(node_class.status):
            if step.part == "capacity_reservations" and node_class.spec.capacity_reservation_selector_terms:
                self._step(step, node_class, node_class.status)
        self._place(node_class, node_class.status)

    def placement_group(self, name: str) -> PlacementGroup:
        """The placement group of a class, as it was last known."""
        return self._groups_known.get(name, NO_GROUP)

    def due(self, node_class: EC2NodeClass) -> int:
        """When a part of the class has to be resolved again (ms since the epoch)."""
        return min((at for (name, _), (_, at) in self._due.items() if name == node_class.name), default=0)

    def postpone(self, node_class: EC2NodeClass) -> None:
        """Look at a class that could not be resolved again in a minute."""
        self._due[node_class.name, "validation"] = _made_of(node_class), self._clock() + _MINUTE

    def reconsider(self) -> None:
        """Resolve all parts of all classes anew: what they were resolved with has changed."""
        self._due = {key: (spec, 0) for key, (spec, _) in self._due.items()}

    def refused(self, name: str) -> list[AwsError]:
        """What AWS refused when the parts of a class were last asked for."""
        return [error for (of, _), error in sorted(self._refused.items()) if of == name]

    def forget(self, names: Container[str]) -> None:
        """Drop what is known of classes that are not in `names`: they are gone."""
        self._refused = {key: error for key, error in self._refused.items() if key[0] in names}
        self._due = {key: value for key, value in self._due.items() if key[0] in names}
        self._groups_known = {name: group for name, group in self._groups_known.items() if name in names}

    def _steps(self, before: EC2NodeClassStatus) -> tuple[_Step, ...]:
        settings = self._settings
        reserved = _Step(RESERVATIONS, "capacity_reservations", self.reservations.resolve, _MINUTE)
        return (
            *((reserved,) if settings.reserved_capacity else ()),
            _Step(
                "AMIsReady",
                "amis",
                lambda node_class: self._images.resolve(node_class, before.amis),
                max(5 * _MINUTE, settings.ami_refresh),
            ),
            _Step("SubnetsReady", "subnets", self._subnets, max(_MINUTE, settings.subnet_refresh)),
            _Step("SecurityGroupsReady", "security_groups", self._groups, 5 * _MINUTE),
            _Step(
                "InstanceProfileReady",
                "instance_profile",
                lambda node_class: self.profiles.resolve(node_class, before.instance_profile),
                _MINUTE,  # IAM itself is asked less often
            ),
        )

    def _step(self, step: _Step, node_class: EC2NodeClass, status: EC2NodeClassStatus) -> EC2NodeClassStatus:
        now, key = self._clock(), (node_class.name, step.part)
        made_of, due = self._due.get(key, (None, 0))
        same = made_of == _made_of(node_class)
        if same and now < due:
            return status
        known = condition(status, step.kind)
        try:
            value, verdict = step.resolve(node_class)
        except AwsError as error:
            # it stays as it was, of a spec that is still the same; a new process takes the object's word for it
            self._due[key] = (made_of or _made_of(node_class), now + _MINUTE)
            self._refused[key] = error
            if known is not None and known.status != "Unknown" and (same or made_of is None):
                return status
            verdict = Condition(step.kind, "Unknown", "AwaitingReconciliation", str(error))
            return with_condition(status, verdict, now)
        self._refused.pop(key, None)
        again: float = now + (step.every if verdict.status == "True" else _MINUTE)
        if step.kind == RESERVATIONS:
            again = min(again, next_end(value, now))
        self._due[key] = (_made_of(node_class), int(again))
        return with_condition(replace(status, **{step.part: value}), verdict, now)

    def _place(self, node_class: EC2NodeClass, status: EC2NodeClassStatus) -> EC2NodeClassStatus:
        """Resolve the placement group, once a minute where there is a selector (A-79, A-127). The status has no field
        for the group itself. While EC2 refuses to tell, the group stays as it was."""
        now, key = self._clock(), (node_class.name, "placement_group")
        made_of, due = self._due.get(key, (None, 0))
        if made_of == _made_of(node_class) and now < due:
            return status
        self._due[key] = _made_of(node_class), now + _MINUTE
        group, verdict = placement_groups.resolve(self._clients, node_class)
        if group.id or verdict.reason != FAILED:
            self._groups_known[node_class.name] = group
        return with_condition(status, verdict, now)

    def _subnets(self, node_class: EC2NodeClass) -> tuple[tuple[ResolvedSubnet, ...], Condition]:
        """The subnets that the terms select, and the condition for them (A-95). Their order (free addresses first,
        A-96) matters only to a launch, which asks `free_addresses`."""
        terms = node_class.spec.subnet_selector_terms
        found = list(self._selected(terms, self._clients.ec2.describe_subnets, "Subnets", "subnet_id"))
        self.free_addresses.told({entry["SubnetId"]: entry.get("AvailableIpAddressCount", 0) for entry in found})
        by_id = {
            entry["SubnetId"]: ResolvedSubnet(
                entry["SubnetId"], entry["AvailabilityZone"], entry.get("AvailabilityZoneId", "")
            )
            for entry in found
        }
        subnets = tuple(subnet for _, subnet in sorted(by_id.items()))
        missing = Condition("SubnetsReady", "False", "SubnetsNotFound", "no subnet is selected")
        return subnets, ready("SubnetsReady") if subnets else missing

    def _groups(self, node_class: EC2NodeClass) -> tuple[tuple[ResolvedSecurityGroup, ...], Condition]:
        """The security groups that the terms select, and the condition for them (A-98)."""
        terms = node_class.spec.security_group_selector_terms
        operation = self._clients.ec2.describe_security_groups
        found = list(self._selected(terms, operation, "SecurityGroups", "group_id"))
        if names := sorted({term.name for term in terms if term.name and not term.id}):
            found += pages(operation, "SecurityGroups", Filters=filters(group_name=names), MaxResults=PAGE)
        by_id = {e["GroupId"]: ResolvedSecurityGroup(e["GroupId"], e.get("GroupName", "")) for e in found}
        groups = tuple(group for _, group in sorted(by_id.items()))
        missing = Condition("SecurityGroupsReady", "False", "SecurityGroupsNotFound", "none is selected")
        return groups, ready("SecurityGroupsReady") if groups else missing

    @staticmethod
    def _selected(
        terms: Iterable[SubnetTerm | SecurityGroupTerm], operation: Callable[..., Any], key: str, id_filter: str
    ) -> Iterable[dict[str, Any]]:
        """One call for each term of tags, one for all ids; an id wins over the rest of its term (A-46)."""
        for term in terms:
            if term.tags and not term.id and not getattr(term, "name", ""):
                yield from pages(operation, key, Filters=tag_filters(term.tags), MaxResults=PAGE)
        if ids := sorted({term.id for term in terms if term.id}):
            yield from pages(operation, key, Filters=filters(**{id_filter: ids}), MaxResults=PAGE)

    def _validated(self, node_class: EC2NodeClass, status: EC2NodeClassStatus) -> Condition:
        """The condition for the first checks of A-129, in their order: the first that fails decides."""
        family = node_class.ami_family
        if lacks_cidr(node_class, self._settings.facts):
            return _invalid("ClusterCIDRResolutionFailed", "the cluster's service CIDR is not known")
        if problem := kubelet_problem(node_class.spec.kubelet, family, expressions=self._settings.node_class_cel):
            return _invalid(problem.reason, problem.message)
        report = Report()
        volume_sizes(node_class.spec, report)
        if wrong := next(iter(report.violations), None):
            return _invalid("InvalidBlockDeviceMappings", f"{wrong.path}: {wrong.message}")
        if missing := _missing(status):
            return missing
        return ready("ValidationSucceeded")


def _tagged(node_class: EC2NodeClass) -> Condition:
    """The verdict on the tags of a class (A-322)."""
    if forbidden := tags.restricted(node_class.spec.tags):
        return _invalid("TagValidationFailed", f"tags that only kerf sets: {', '.join(forbidden)}")
    if wrong := next(tag_problems(node_class.spec.tags, with_profile=bool(node_class.spec.role)), None):
        return _invalid("TagValidationFailed", wrong.message)
    return ready("ValidationSucceeded")


def _made_of(node_class: EC2NodeClass) -> _MadeOf:
    """What a status is of. A class of the same name and spec that was made anew is another one (A-82)."""
    return node_class.uid, node_class.spec


def _missing(status: EC2NodeClassStatus) -> Condition | None:
    """The verdict on a class of which something else is not ready, or not known; None where all is (A-129)."""
    found = [condition(status, kind) for kind in RESTS_ON]
    states = {kind: each.status if each else "Unknown" for kind, each in zip(RESTS_ON, found, strict=True)}
    for bad in ("False", "Unknown"):
        if waits := [kind for kind, state in states.items() if state == bad]:
            return Condition("ValidationSucceeded", bad, "DependenciesNotReady", f"{', '.join(waits)} first")
    return None


def _well(status: EC2NodeClassStatus) -> bool:
    """Whether all that validation rests on is there."""
    known = (each for each in status.conditions if each.type in DEPENDENTS and each.type != "ValidationSucceeded")
    states = {each.type: each.status for each in known}
    return states.keys() >= {*RESTS_ON, "PlacementGroupReady"} and set(states.values()) == {"True"}


def _invalid(reason: str, message: str) -> Condition:
    return Condition("ValidationSucceeded", "False", reason, message)
