"""Resolves an EC2NodeClass in EC2 and IAM: subnets, security groups, images, instance profile (A-74…A-122).

A call that fails leaves its part of the status as it was (A-136). Validation is by kerf's own rules; the
dry runs of A-131…A-133 are not made (as under `--disable-dry-run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws import tags
from kerf.adapters.aws.images import Images
from kerf.adapters.aws.resolved import condition, node_settings, ready, with_condition
from kerf.adapters.aws.session import AwsError, Clients, call, filters, pages, tag_filters
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.errors import InputError
from kerf.engine.model.claims import Condition
from kerf.engine.model.ec2nodeclass import (
    EC2NodeClass,
    EC2NodeClassStatus,
    ResolvedSecurityGroup,
    ResolvedSubnet,
    SecurityGroupTerm,
    SubnetTerm,
)

_SUPPORTED = ("AL2", "AL2023", "Custom", "Windows2019", "Windows2022", "Windows2025")


class NodeClasses:
    """Keeps the last status of each class and makes the next one from it."""

    def __init__(self, clients: Clients, settings: AwsSettings, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._images = Images(clients, settings.kubernetes_version, clock)
        self.free_addresses: dict[str, int] = {}

    def resolve(self, node_class: EC2NodeClass, before: EC2NodeClassStatus) -> EC2NodeClassStatus:
        """The status as it is now. What AWS refuses does not raise: the condition concerned says so."""
        steps: tuple[tuple[str, str, Callable[[EC2NodeClass], tuple[Any, Condition]]], ...] = (
            ("AMIsReady", "amis", self._images.resolve),
            ("SubnetsReady", "subnets", self._subnets),
            ("SecurityGroupsReady", "security_groups", self._groups),
            ("InstanceProfileReady", "instance_profile", self._profile),
        )
        status = before
        for kind, part, resolve in steps:
            try:
                value, verdict = resolve(node_class)
            except AwsError as error:
                known = condition(status, kind)
                if known is not None and known.status != "Unknown":
                    continue
                verdict = Condition(kind, "Unknown", "AwaitingReconciliation", str(error))
            else:
                status = replace(status, **{part: value})
            status = with_condition(status, verdict, self._clock())
        return with_condition(status, self._validated(node_class), self._clock())

    def _subnets(self, node_class: EC2NodeClass) -> tuple[tuple[ResolvedSubnet, ...], Condition]:
        """A-95. The order of A-96 (free addresses first) matters only to a launch, which asks
        `free_addresses`."""
        terms = node_class.spec.subnet_selector_terms
        found = list(self._selected(terms, self._clients.ec2.describe_subnets, "Subnets", "subnet_id"))
        self.free_addresses |= {entry["SubnetId"]: entry.get("AvailableIpAddressCount", 0) for entry in found}
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
        """A-98."""
        terms = node_class.spec.security_group_selector_terms
        operation = self._clients.ec2.describe_security_groups
        found = list(self._selected(terms, operation, "SecurityGroups", "group_id"))
        if names := sorted({term.name for term in terms if term.name and not term.id}):
            found += pages(operation, "SecurityGroups", Filters=filters(group_name=names))
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
                yield from pages(operation, key, Filters=tag_filters(term.tags))
        if ids := sorted({term.id for term in terms if term.id}):
            yield from pages(operation, key, Filters=filters(**{id_filter: ids}))

    # ── instance profile ───────────────────────────────────────────────────────────────────────────────────

    def _profile(self, node_class: EC2NodeClass) -> tuple[str, Condition]:
        """A-116, A-119. The name follows from class and role, so that trying again makes no second
        profile."""
        if node_class.spec.instance_profile:
            return node_class.spec.instance_profile, ready("InstanceProfileReady")
        role = node_class.spec.role.rpartition("/")[2]
        name = profile_name(self._settings, node_class)
        roles = self._roles(name)
        if roles is None:
            self._create_profile(name, node_class)
            roles = []
        if role not in roles:
            call(self._clients.iam.add_role_to_instance_profile, InstanceProfileName=name, RoleName=role)
        return name, ready("InstanceProfileReady")

    def _roles(self, name: str) -> list[str] | None:
        try:
            answer = call(self._clients.iam.get_instance_profile, InstanceProfileName=name)
        except AwsError as error:
            if error.not_found:
                return None
            raise
        return [role["RoleName"] for role in answer["InstanceProfile"].get("Roles", ())]

    def _create_profile(self, name: str, node_class: EC2NodeClass) -> None:
        settings = self._settings
        own = tags.profile_tags(settings.cluster, node_class.name, settings.region, node_class.spec.tags)
        call(
            self._clients.iam.create_instance_profile,
            InstanceProfileName=name,
            Path=f"/karpenter/{settings.region}/{settings.cluster}/{node_class.uid}/",
            Tags=tags.tag_list(own),
        )

    def _validated(self, node_class: EC2NodeClass) -> Condition:
        """The checks of A-129 that need no call."""
        family = node_class.ami_family
        if family not in _SUPPORTED:
            return _invalid("UnsupportedAMIFamily", f"kerf writes no user data for {family} yet")
        if family == "AL2023" and not self._settings.cidr:
            return _invalid("ClusterCIDRResolutionFailed", "the cluster's service CIDR is not known")
        if node_class.spec.placement_group_selector is not None:
            return _invalid("UnsupportedPlacementGroup", "kerf resolves no placement groups yet")
        if node_class.spec.capacity_reservation_selector_terms:
            return _invalid("UnsupportedCapacityReservations", "kerf resolves no capacity reservations yet")
        try:
            node_settings(node_class)
        except InputError as error:
            expression = error.code == "KERF522"
            reason = "KubeletExpressionsDisabled" if expression else "InvalidKubeletConfiguration"
            return _invalid(reason, str(error))
        return ready("ValidationSucceeded")


def _invalid(reason: str, message: str) -> Condition:
    return Condition("ValidationSucceeded", "False", reason, message)


def profile_name(settings: AwsSettings, node_class: EC2NodeClass) -> str:
    """`<cluster>_<u64>`: another role gives another profile, as A-119 asks."""
    text = "/".join((settings.region, node_class.name, node_class.uid, node_class.spec.role))
    return f"{settings.cluster}_{int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big')}"
