"""What admission refuses in an EC2NodeClass, rule by rule: as kerf.engine.model.manifests.admission for NodePools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kerf.engine.model import labels
from kerf.engine.model.ec2nodeclass import (
    AMI_FAMILIES,
    AMITerm,
    BlockDevice,
    CapacityReservationTerm,
    EC2NodeClassSpec,
    SecurityGroupTerm,
    SubnetTerm,
)
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import LARGEST_AMOUNT

_FAMILIES = (*AMI_FAMILIES.values(), "Custom")
_VOLUME_TYPES = ("standard", "io1", "io2", "gp2", "sc1", "st1", "gp3")
_SWITCH = ("enabled", "disabled")
_ALIAS = re.compile(r"[a-zA-Z0-9]+@.+")
_VOLUME_SIZE = re.compile(
    r"([1-9]|[1-9][0-9]{1,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi"
    r"|([1-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
    r"|([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-4])T"
)
_FORBIDDEN_TAGS = ("eks:eks-cluster-name", labels.NODEPOOL, "karpenter.sh/nodeclaim", labels.EC2NODECLASS)
_FORBIDDEN_TAG_PREFIX = "kubernetes.io/cluster"

Rule = Callable[[EC2NodeClassSpec, Report], None]
Term = SubnetTerm | SecurityGroupTerm | CapacityReservationTerm | AMITerm


def subnet_terms(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-25."""
    path, terms = "spec.subnetSelectorTerms", spec.subnet_selector_terms
    _check_count(report, path, terms, least=1)
    _check_each(report, path, terms, ("tags", "id"), re.compile("subnet-[0-9a-z]+"))
    _check_all_alone(report, path, terms, "id", [bool(t.id and t.tags) for t in terms])


def security_group_terms(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-26."""
    path, terms = "spec.securityGroupSelectorTerms", spec.security_group_selector_terms
    _check_count(report, path, terms, least=1)
    _check_each(report, path, terms, ("tags", "id", "name"), re.compile("sg-[0-9a-z]+"))
    _check_all_alone(report, path, terms, "id", [bool(t.id and (t.tags or t.name)) for t in terms])
    _check_all_alone(report, path, terms, "name", [bool(t.name and (t.tags or t.id)) for t in terms])


def capacity_reservation_terms(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-27."""
    path, terms = "spec.capacityReservationSelectorTerms", spec.capacity_reservation_selector_terms
    _check_count(report, path, terms, least=0)
    _check_each(report, path, terms, ("tags", "id", "instanceMatchCriteria"), re.compile("^cr-[0-9a-z]+$"))
    alone = [bool(t.id and (t.tags or t.owner_id or t.instance_match_criteria)) for t in terms]
    _check_all_alone(report, path, terms, "id", alone)
    for index, term in enumerate(terms):
        if term.owner_id and not re.fullmatch("[0-9]{12}", term.owner_id):
            report.add("KERF312", f"{path}[{index}].ownerID", f"{term.owner_id!r} is no account of 12 digits")
        if term.instance_match_criteria:
            where = f"{path}[{index}].instanceMatchCriteria"
            report.one_of(where, term.instance_match_criteria, ("open", "targeted"))


def placement_group(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-28."""
    selector = spec.placement_group_selector
    if selector is None:
        return
    if bool(selector.name) == bool(selector.id):
        report.add("KERF316", "spec.placementGroupSelector", "Select by exactly one of name and id")
    if selector.id and not re.fullmatch("pg-[0-9a-z]+", selector.id):
        report.add("KERF312", "spec.placementGroupSelector.id", f"{selector.id!r} is no placement group")


def ami_terms(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-29: unlike the other lists, one contradictory term is enough to refuse (A-46)."""
    path, terms = "spec.amiSelectorTerms", spec.ami_selector_terms
    _check_count(report, path, terms, least=1, hint='Write [{alias: "al2023@latest"}] for the newest EKS image')
    _check_each(report, path, terms, ("tags", "id", "name", "alias", "ssmParameter"), re.compile("ami-[0-9a-z]+"))
    for index, term in enumerate(terms):
        if term.id and (term.alias or term.tags or term.name or term.owner):
            report.add("KERF316", f"{path}[{index}].id", "An id excludes alias, tags, name and owner")
        if term.alias:
            _check_alias(report, f"{path}[{index}].alias", term, alone=len(terms) == 1)


def _check_alias(report: Report, path: str, term: AMITerm, *, alone: bool) -> None:
    """A-29, A-30."""
    if not alone or term.tags or term.name or term.owner:
        report.add("KERF316", path, "An alias must be the only term, and the only field of it")
    if len(term.alias) > 30 or not _ALIAS.fullmatch(term.alias):
        report.add("KERF312", path, f"{term.alias!r} is no alias", 'Write family@version: "al2023@latest"')
    elif term.alias_family not in AMI_FAMILIES:
        families = ", ".join(AMI_FAMILIES)
        report.add("KERF305", path, f"The alias family {term.alias_family!r} is not one of {families}")
    elif term.alias_family.startswith("windows") and term.alias_version != "latest":
        report.add("KERF305", path, "Windows aliases have no version but latest")


def ami_family(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-31."""
    aliases = [term.alias_family for term in spec.ami_selector_terms if term.alias]
    if not spec.ami_family:
        if spec.ami_selector_terms and not aliases:
            report.add("KERF304", "spec.amiFamily", "amiFamily is required when no term has an alias")
        return
    if not report.one_of("spec.amiFamily", spec.ami_family, _FAMILIES) or not aliases:
        return
    named = AMI_FAMILIES.get(aliases[0])
    if named is not None and spec.ami_family not in (named, "Custom"):
        message = f"amiFamily {spec.ami_family} contradicts the alias, which is of {named}"
        report.add("KERF317", "spec.amiFamily", message, "Leave out amiFamily")


def role_or_profile(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-33."""
    if spec.role and spec.instance_profile:
        report.add("KERF317", "spec.instanceProfile", "role and instanceProfile exclude each other")
    elif not spec.role and not spec.instance_profile:
        report.add("KERF304", "spec.role", "A NodeClass needs a role or an instanceProfile")


def tags(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-34."""
    for key in spec.tags:
        if not key:
            report.add("KERF312", "spec.tags[]", "A tag needs a key")
        elif key in _FORBIDDEN_TAGS or key.startswith(_FORBIDDEN_TAG_PREFIX):
            message = f"The tag {key} is set by Karpenter"
            report.add("KERF318", f"spec.tags[{key}]", message, "Leave it out")


def block_devices(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-36."""
    path, mappings = "spec.blockDeviceMappings", spec.block_device_mappings
    if len(mappings) > 50:
        report.add("KERF309", path, f"At most 50 block devices, not {len(mappings)}")
    roots = [index for index, mapping in enumerate(mappings) if mapping.root_volume]
    for index in roots[1:]:
        report.add("KERF316", f"{path}[{index}].rootVolume", f"{path}[{roots[0]}] is the root volume already")
    for index, mapping in enumerate(mappings):
        if mapping.ebs is not None:
            _check_volume(report, f"{path}[{index}].ebs", mapping.ebs)


def _check_volume(report: Report, path: str, ebs: BlockDevice) -> None:
    """A-36, A-37. Of volume sizes the pattern's slips are not repeated: a bare "Ti" is refused."""
    if not ebs.snapshot_id and not ebs.volume_size:
        report.add("KERF316", path, "A volume needs a snapshotID or a volumeSize")
    if ebs.volume_size and not _VOLUME_SIZE.fullmatch(ebs.volume_size):
        message = f"{ebs.volume_size!r} is no volume size"
        report.add("KERF306", f"{path}.volumeSize", message, "Write 1Gi to 59000Gi, or the same in G, Ti or T")
    if ebs.volume_type:
        report.one_of(f"{path}.volumeType", ebs.volume_type, _VOLUME_TYPES)
    rate = ebs.volume_initialization_rate
    if rate is not None and not ebs.snapshot_id:
        report.add("KERF316", f"{path}.volumeInitializationRate", "Only a volume of a snapshot is initialised")
    _check_range(report, f"{path}.volumeInitializationRate", rate, 100, 300)


def instance_store(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-38."""
    if spec.instance_store_policy:
        report.one_of("spec.instanceStorePolicy", spec.instance_store_policy, ("RAID0",))


def network_interfaces(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-39, A-41."""
    path, interfaces = "spec.networkInterfaces", spec.network_interfaces
    _check_range(report, "spec.ipPrefixCount", spec.ip_prefix_count, 0, (1 << 31) - 1)
    if len(interfaces) > 150:
        report.add("KERF309", path, f"At most 150 network interfaces, not {len(interfaces)}")
    places: set[tuple[int | None, int | None]] = set()
    efa_only: set[int | None] = set()
    for index, interface in enumerate(interfaces):
        where, place = f"{path}[{index}]", (interface.network_card_index, interface.device_index)
        for name, value in zip(("networkCardIndex", "deviceIndex"), place, strict=True):
            if value is None:
                report.add("KERF304", f"{where}.{name}", f"A network interface needs a {name}")
            _check_range(report, f"{where}.{name}", value, 0, (1 << 31) - 1)
        report.one_of(f"{where}.interfaceType", interface.interface_type, ("interface", "efa-only"))
        if place in places:
            report.add("KERF316", where, f"Card {place[0]}, device {place[1]} is taken already")
        if interface.interface_type == "efa-only" and place[0] in efa_only:
            report.add("KERF316", where, f"Card {place[0]} has an efa-only interface already")
        places.add(place)
        if interface.interface_type == "efa-only":
            efa_only.add(place[0])
    primary = [(i.network_card_index, i.device_index, i.interface_type) for i in interfaces]
    if interfaces and (0, 0, "interface") not in primary:
        report.add("KERF316", path, "Card 0, device 0 must be there, of type interface")


def metadata_options(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-42."""
    path, options = "spec.metadataOptions", spec.metadata_options
    report.one_of(f"{path}.httpEndpoint", options.http_endpoint, _SWITCH)
    report.one_of(f"{path}.httpProtocolIPv6", options.http_protocol_ipv6, _SWITCH)
    report.one_of(f"{path}.httpTokens", options.http_tokens, ("required", "optional"))
    _check_range(report, f"{path}.httpPutResponseHopLimit", options.http_put_response_hop_limit, 1, 64)


def connection_tracking(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-43."""
    path, tracking = "spec.connectionTracking", spec.connection_tracking
    if tracking is None:
        return
    timeouts = (tracking.tcp_established_timeout, tracking.udp_stream_timeout, tracking.udp_timeout)
    if all(timeout is None for timeout in timeouts):
        report.add("KERF304", path, "connectionTracking needs at least one timeout")
    _check_range(report, f"{path}.tcpEstablishedTimeout", tracking.tcp_established_timeout, 60, 432_000)
    _check_range(report, f"{path}.udpStreamTimeout", tracking.udp_stream_timeout, 60, 180)
    _check_range(report, f"{path}.udpTimeout", tracking.udp_timeout, 30, 60)


def cpu_options(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-45."""
    if spec.cpu_options is not None and spec.cpu_options.nested_virtualization:
        report.one_of("spec.cpuOptions.nestedVirtualization", spec.cpu_options.nested_virtualization, _SWITCH)


def kubelet(spec: EC2NodeClassSpec, report: Report) -> None:
    """A-35: an open object, judged by the controller (A-50); only what no record could hold is refused here."""
    if any(isinstance(leaf, int) and abs(leaf) > LARGEST_AMOUNT for leaf in _leaves(spec.kubelet)):
        report.add("KERF309", "spec.kubelet", "An integer is beyond 64 bits")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


EC2NODECLASS_RULES: tuple[Rule, ...] = (
    subnet_terms,
    security_group_terms,
    capacity_reservation_terms,
    placement_group,
    ami_terms,
    ami_family,
    role_or_profile,
    tags,
    block_devices,
    instance_store,
    network_interfaces,
    metadata_options,
    connection_tracking,
    cpu_options,
    kubelet,
)


def _check_count(report: Report, path: str, terms: Sequence[Term], *, least: int, hint: str = "") -> None:
    if len(terms) < least:
        report.add("KERF304", path, f"{path.removeprefix('spec.')} needs at least one term", hint)
    elif len(terms) > 30:
        report.add("KERF309", path, f"At most 30 terms, not {len(terms)}")


def _check_each(
    report: Report, path: str, terms: Iterable[Term], by: tuple[str, ...], identifier: re.Pattern[str]
) -> None:
    """Each term selects by at least one of the fields `by`; its tags and its id have the right form (A-25…A-29)."""
    for index, term in enumerate(terms):
        where = f"{path}[{index}]"
        chosen = {
            "tags": bool(term.tags),
            "id": bool(term.id),
            "name": bool(getattr(term, "name", "")),
            "alias": bool(getattr(term, "alias", "")),
            "ssmParameter": bool(getattr(term, "ssm_parameter", "")),
            "instanceMatchCriteria": bool(getattr(term, "instance_match_criteria", "")),
        }
        if not any(chosen[name] for name in by):
            report.add("KERF316", where, f"The term selects nothing: it needs one of {', '.join(by)}")
        if term.id and not identifier.search(term.id):
            report.add("KERF312", f"{where}.id", f"{term.id!r} is not such an id")
        if len(term.tags) > 20:
            report.add("KERF309", f"{where}.tags", f"At most 20 tags, not {len(term.tags)}")
        for key, value in term.tags.items():
            if not key or not value:
                report.add(
                    "KERF312", f"{where}.tags[{key}]", "A tag needs a key and a value", 'Write "*" for any value'
                )


def _check_all_alone(report: Report, path: str, terms: Sequence[Term], name: str, broken: list[bool]) -> None:
    """A-46: as in the API server, only a list in which every term breaks the rule is refused; else `id` wins, then
    `name`."""
    if terms and all(broken):
        for index in range(len(terms)):
            report.add("KERF316", f"{path}[{index}].{name}", f"{name} excludes the other fields of a term")


def _check_range(report: Report, path: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        report.add("KERF309", path, f"The value is {least} to {most}, not {value}")
