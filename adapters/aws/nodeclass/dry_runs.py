"""Checks with EC2 whether kerf may launch for a class: it makes a launch template and does two dry runs
(A-131…A-134)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws import tags
from kerf.adapters.aws.launch.fleet import Group, fleet_request
from kerf.adapters.aws.launch.fleet_errors import denied_by
from kerf.adapters.aws.launch.launch_template import LaunchTemplates, template_data
from kerf.adapters.aws.nodeclass.resolved import image_of, ready, with_kubelet
from kerf.adapters.aws.session import AwsError, Clients, call
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.errors import InputError
from kerf.engine.model import labels
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import class_hashes
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.karpenter.requirements import Requirements, requirement
from kerf.engine.record.decisions import LaunchInstance, Offer

VALID = "ValidationSucceeded"
KNOWN_FOR = 1_800_000
"""How long (ms) an answer is not asked for again (A-91)."""
_USUAL = ("m5.large", "m6g.large")
"""Types that are tried before others, where the class can launch them (A-135)."""
_DENIED = ("UnauthorizedOperation", "AccessDenied")


class _Answer(Struct, frozen=True):
    """What EC2 said of a class, and when: a digest of what was asked about, the annotations it had, and what its
    NodePools asked for."""

    of: str
    annotations: dict[str, str]
    pools: frozenset[Requirements]
    at: int
    condition: Condition


class DryRuns:
    def __init__(
        self,
        clients: Clients,
        settings: AwsSettings,
        templates: LaunchTemplates,
        clock: Callable[[], int],
        free: Callable[[], Mapping[str, int]],
    ) -> None:
        """`free`: the free addresses of subnets."""
        self._clients, self._free = clients, free
        self._settings = settings
        self._templates = templates
        self._clock = clock
        self._known: dict[str, _Answer] = {}  # by class
        self._pools: dict[str, frozenset[Requirements]] = {}  # class → what its NodePools ask of a type

    def serve(self, pools: Iterable[NodePool]) -> None:
        """Try types that these NodePools can have. An account may forbid all others (A-135)."""
        asked: dict[str, frozenset[Requirements]] = {}
        for pool in pools:
            wanted = Requirements.of_specs(pool.requirements).merged(Requirements.of_labels(pool.labels))
            asked[pool.node_class.name] = asked.get(pool.node_class.name, frozenset()) | {wanted}
        self._pools = asked

    def check(
        self,
        resolved: EC2NodeClass,
        types: Callable[[], Mapping[str, InstanceType]],
        kubelet_on: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> Condition:
        """The condition ValidationSucceeded of a class whose other conditions are fine. It stays as it was while EC2
        cannot tell. EC2 is asked again after half an hour, or when somebody annotates the class (A-130) or changes what
        its NodePools ask for. `kubelet_on`: the kubelet on a type, of a class with expressions."""
        asked, _ = content(EC2NodeClass("", resolved.spec, replace(resolved.status, conditions=())))
        known, annotations = self._known.get(resolved.name), own_annotations(resolved)
        pools = self._pools.get(resolved.name, frozenset())
        if known is not None and known.of != asked:
            known = None
        same = known is not None and (known.annotations, known.pools) == (annotations, pools)
        if known is not None and same and self._clock() < known.at + KNOWN_FOR:
            return known.condition
        sold = types()  # what is wrong with them is not the user data's fault
        try:
            condition = self._asked(resolved, sold, kubelet_on)
        except InputError as error:
            condition = _refused("UserDataInvalid", str(error))
        except AwsError as error:
            if known is not None:  # as of what else is resolved: a disturbance takes no class out of service
                return known.condition
            return Condition(VALID, "Unknown", "AwaitingReconciliation", str(error))
        if condition.reason != "InstanceProfileNotFound":
            self._known[resolved.name] = _Answer(asked, annotations, pools, self._clock(), condition)
        return condition

    def forget(self, names: Container[str]) -> None:
        """Drop what is known of classes that are not in `names`: they are gone."""
        self._known = {name: known for name, known in self._known.items() if name in names}

    def _asked(
        self,
        resolved: EC2NodeClass,
        types: Mapping[str, InstanceType],
        kubelet_on: Callable[[str], Mapping[str, Any]] | None,
    ) -> Condition:
        """What EC2 says of the first tenancy with which it would launch; if of none, of the first that it was asked
        about: a class that can launch on shared hardware serves its pods (A-131)."""
        first: Condition | None = None
        pools = self._pools.get(resolved.name, frozenset())
        for tenancy in _tenancies(pools):
            chosen = _representative(resolved, types, pools, tenancy)
            if chosen is None:
                continue  # no type can be launched so anyway, and the plans of pods say so
            found = self._tried(resolved, chosen, tenancy, kubelet_on)
            if found.status == "True":
                return found
            first = first or found
        return first or ready(VALID)

    def _tried(
        self,
        resolved: EC2NodeClass,
        kind: InstanceType,
        tenancy: str,
        kubelet_on: Callable[[str], Mapping[str, Any]] | None,
    ) -> Condition:
        """What EC2 says of a launch of a type."""
        subnets: dict[str, list[str]] = {}
        for subnet in resolved.status.subnets:
            subnets.setdefault(subnet.zone, []).append(subnet.id)
        order = _order(resolved, kind.name, tuple(subnets), tenancy)
        image = image_of(resolved.status.amis, kind)
        try:
            booted = with_kubelet(resolved, kubelet_on(kind.name) if kubelet_on is not None else None)
            data = template_data(order, booted, self._settings, kind, image)
            template = self._templates.ensure(data, resolved, "")
        except AwsError as error:
            if "User data is limited to" in error.detail:
                return _refused("UserDataSizeLimitExceeded", error.detail)
            return _denied("CreateLaunchTemplateAuthCheckFailed", error)
        group = Group(kind, image, order.offers)
        request = fleet_request(order, resolved, self._settings, [(template, group)], subnets, "")
        del request["ClientToken"]
        try:
            self._dry(self._clients.ec2.create_fleet, request)
        except AwsError as error:
            return _denied("CreateFleetAuthCheckFailed", error)
        zones = {offering.zone for offering in _offered(kind, tenancy)}
        free = self._free()
        by_use = sorted(resolved.status.subnets, key=lambda s: (s.zone not in zones, -free.get(s.id, 0), s.id))
        return self._instances(resolved, order, template, [subnet.id for subnet in by_use])

    def _instances(
        self, resolved: EC2NodeClass, order: LaunchInstance, template: str, subnets: Sequence[str]
    ) -> Condition:
        """Whether EC2 would let kerf run an instance in any of the subnets; if in none, what it said of the first
        (A-133)."""
        first: Condition | AwsError | None = None
        for subnet in subnets:
            try:
                found: Condition | AwsError = self._instance(resolved, order, template, subnet)
            except AwsError as error:
                found = error
            if isinstance(found, Condition) and found.status == "True":
                return found
            first = first or found
        if isinstance(first, Condition):
            return first
        raise first or InputError("no subnet to try")

    def _instance(self, resolved: EC2NodeClass, order: LaunchInstance, template: str, subnet: str) -> Condition:
        """Whether EC2 would let kerf run an instance, by a dry run (A-133)."""
        own = tags.launch_tags(self._settings.cluster, resolved.name, "", resolved.spec.tags)
        request = {
            "MinCount": 1,
            "MaxCount": 1,
            "InstanceType": order.offers[0].instance_type,
            "LaunchTemplate": {"LaunchTemplateName": template, "Version": "$Latest"},
            "NetworkInterfaces": _interfaces(resolved, subnet),
            "TagSpecifications": tags.specifications(["instance", "volume", "network-interface"], own),
        }
        try:
            self._dry(self._clients.ec2.run_instances, request)
        except AwsError as error:
            if "Invalid IAM Instance Profile name" not in error.detail:
                return _denied("RunInstancesAuthCheckFailed", error)
            if not resolved.spec.instance_profile:
                raise  # IAM takes some seconds to make a new one known
            return _refused("InstanceProfileNotFound", error.detail)
        return ready(VALID)

    @staticmethod
    def _dry(operation: Callable[..., object], request: Mapping[str, object]) -> None:
        """Raises `AwsError` for every answer but that it would have been done."""
        try:
            call(operation, **request, DryRun=True)
        except AwsError as error:
            if error.aws_code != "DryRunOperation":
                raise


def _tenancies(pools: Iterable[Requirements]) -> list[str]:
    """What is tried: dedicated hardware first where a NodePool lists it (A-131), and shared hardware unless all
    NodePools exclude it."""
    asked = [pool.get(labels.TENANCY) for pool in pools]
    listed = any(labels.DEDICATED in one.values and not one.complement for one in asked)
    shared = not asked or any(one.has(labels.DEFAULT_TENANCY) for one in asked)
    return [*([labels.DEDICATED] if listed else []), *([labels.DEFAULT_TENANCY] if shared or not listed else [])]


def _representative(
    resolved: EC2NodeClass, types: Mapping[str, InstanceType], pools: Iterable[Requirements], tenancy: str
) -> InstanceType | None:
    """A type that the class can launch on demand with this tenancy: if there is one, a type that a NodePool of the
    class can have, and of these one that boots no image for accelerators (A-132, A-135)."""
    so = [pool.merged([requirement(labels.TENANCY, "In", (tenancy,))]) for pool in pools]
    amis = resolved.status.amis
    special = {ami.id for ami in amis if any(need.operator == "Exists" for need in ami.requirements)}
    first = {
        name: (not _wanted(kind, so), image_of(amis, kind) in special, name not in _USUAL, name)
        for name, kind in types.items()
    }
    for name in sorted(types, key=lambda name: first[name]):
        if _offered(types[name], tenancy) and image_of(amis, types[name]):
            return types[name]
    return None


def _offered(kind: InstanceType, tenancy: str) -> list[Offering]:
    """What there is of a type on demand."""
    there = (offering for offering in kind.offerings if offering.available and offering.tenancy == tenancy)
    return [offering for offering in there if offering.capacity_type == labels.ON_DEMAND]


def _wanted(kind: InstanceType, pools: Iterable[Requirements]) -> bool:
    """Whether some NodePool can have a type (A-135)."""
    sold = Requirements(
        requirement(key, "In" if values else "DoesNotExist", values) for key, values in kind.requirements.items()
    )
    return any(not sold.conflicts(pool) for pool in pools)


def own_annotations(node_class: EC2NodeClass) -> dict[str, str]:
    """The annotations of a class that no controller writes, of those that are kept."""
    hashes = class_hashes(node_class.annotations)
    return {key: text for key, text in node_class.annotations.items() if key not in hashes}


def _order(resolved: EC2NodeClass, kind: str, zones: Sequence[str], tenancy: str) -> LaunchInstance:
    """The order of a launch, of no claim."""
    ref = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", resolved.name)
    offers = tuple(Offer(kind, zone, 0.0) for zone in zones)
    return LaunchInstance("", "", ref, labels.ON_DEMAND, offers, {}, tenancy=tenancy)


def _interfaces(resolved: EC2NodeClass, subnet: str) -> list[dict[str, object]]:
    """The class's own network interfaces in a subnet, else one (A-133)."""
    own = resolved.spec.network_interfaces
    if not own:
        return [{"DeviceIndex": 0, "SubnetId": subnet}]
    return [
        {"NetworkCardIndex": one.network_card_index or 0, "DeviceIndex": one.device_index or 0, "SubnetId": subnet}
        for one in own
    ]


def _denied(reason: str, error: AwsError) -> Condition:
    """The condition for missing rights, and what forbids it (A-134). Raises the error again if it does not concern
    rights."""
    if error.aws_code not in _DENIED:
        raise error
    return _refused(reason, f"not allowed{denied_by(error.detail)}: {error.detail}")


def _refused(reason: str, message: str) -> Condition:
    return Condition(VALID, "False", reason, message)
