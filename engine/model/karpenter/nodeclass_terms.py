"""What a NodeClass asks of its instances, as far as drift compares it, in one form for all providers (A-333…A-341)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_templates import Template
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from kerf.engine.model.names import (
    NODECLASS_SETTINGS,
    ImageId,
    KeyedHash,
    PlacementGroupName,
    Plain,
    ReservationId,
    SecurityGroupId,
    SubnetId,
)

MADE = "kerf5"
"""The way in which `NodeClassTerms.hash` is made; every hash begins with it.

Raise it with any change of what is hashed, so that an upgrade of kerf drifts no node (A-65).
"""
_OURS = "kerf"
"""How each of kerf's own ways begins."""
SHOWN = 80
"""Longer values are shown by their beginning and a digest."""
USER_DATA = "userData"
CA_BUNDLE = "clusterCA"
_ITEM_NAME = "deviceName"
"""What names a block device; items of other lists have no name."""
_DIGEST = "blake2b-128:"
_IS_DIGEST = re.compile(_DIGEST + "[0-9a-f]{32}")
NO_USER_DATA = f"{_DIGEST}none"
"""What stands for the user data of a class without any."""


class Image(Struct, frozen=True, omit_defaults=True):
    """A machine image, and requirements for the instance types that can boot it."""

    id: ImageId
    requirements: tuple[RequirementSpec, ...] = ()


class NodeClassTerms(Struct, frozen=True, omit_defaults=True):
    """The terms. `static` are the fields that drift by a change of their own (A-341), and `hash` is their digest.

    The other fields drift by what they select: `images` in order of preference (A-114), the rest sorted ids. Empty
    means not known. `zones`: the subnets of each zone.
    """

    hash: KeyedHash = ""
    static: Annotated[Template, NODECLASS_SETTINGS] = {}
    images: tuple[Image, ...] = ()
    subnets: tuple[SubnetId, ...] = ()
    security_groups: tuple[SecurityGroupId, ...] = ()
    reservations: tuple[ReservationId, ...] = ()
    placement_group: PlacementGroupName = ""  # its id, where the class names one and it is there
    zones: dict[Plain, tuple[SubnetId, ...]] = {}


def made(terms_hash: str) -> str:
    """Returns in which way a hash was made. Only hashes made in the same way can be compared."""
    return terms_hash.rpartition("/")[0]


def made_anew(own: str, now: str, *, drifted: bool) -> str:
    """Returns the hash that a claim has today, if it was launched with the hash `own` and the NodeClass's is `now`
    (A-66).

    If the two were made in different ways, the claim counts as matching its NodeClass, unless it had drifted before.
    """
    if own and made(own) == made(now):
        return own
    return f"{made(now)}/{own.rpartition('/')[2]}" if own and drifted else now


def boots(requirements: Iterable[RequirementSpec], kind: InstanceType) -> bool:
    """Returns whether instances of this type can boot an image with these requirements (A-110…A-115)."""
    for requirement in requirements:
        values = kind.requirements.get(requirement.key, ())
        match requirement.operator:
            case "Exists":
                fits = bool(values)
            case "DoesNotExist":
                fits = not values
            case _:
                fits = bool(set(values) & set(requirement.values))
        if not fits:
            return False
    return True


def unselected_reservation(labels: Mapping[str, str], terms: NodeClassTerms) -> str:
    """The capacity reservation that a claim's labels name and its NodeClass does not select; "" for none (A-338)."""
    mine = labels.get(RESERVATION_ID, "") if labels.get(CAPACITY_TYPE) == RESERVED else ""
    return "" if mine in terms.reservations else mine


def image_for(images: Sequence[Image], kind: InstanceType) -> str:
    """Returns the first image that the type boots, "" for none (A-115)."""
    return next((image.id for image in images if boots(image.requirements, kind)), "")


def class_hashes(annotations: Mapping[str, str]) -> dict[str, str]:
    """Returns the hash that another controller wrote on a NodeClass, and its version (A-66)."""
    return {key: value for key, value in sorted(annotations.items()) if key.endswith(("-hash", "-hash-version"))}


def hash_annotations(key: str, terms_hash: str, annotations: Mapping[str, str]) -> dict[str, str]:
    """Returns the annotations, under `key` and `key`-version, with a hash of terms and how it was made (A-65, A-318).

    Empty for an object whose `annotations` have another controller's hash: what has drifted by that one has to stay
    drifted (A-66).
    """
    version, _, digest = terms_hash.rpartition("/")
    theirs = annotations.get(f"{key}-version", version)
    return {key: digest, f"{key}-version": version} if digest and theirs.startswith(_OURS) else {}


def own_hash(key: str, annotations: Mapping[str, str]) -> str:
    """Returns the hash of terms that kerf has written under `key` (`hash_annotations`); "" for none, and for another
    controller's.
    """
    digest, version = annotations.get(key, ""), annotations.get(f"{key}-version", "")
    return f"{version}/{digest}" if digest and version.startswith(_OURS) else ""


def user_data_digest(user_data: str) -> str:
    """Returns what stands for user data wherever kerf keeps or shows it, because passwords stand in it."""
    return _DIGEST + blake2b(user_data.encode(), digest_size=16).hexdigest() if user_data else NO_USER_DATA


def known_user_data(terms: NodeClassTerms | None) -> str:
    """Returns the digest of a class's user data; empty if the record does not have it. Older records have the user
    data's beginning in its place.
    """
    told = terms.static.get(USER_DATA, NO_USER_DATA) if terms is not None else ""
    return told if told.startswith(_DIGEST) else ""


def recorded(node_class: Struct) -> Struct:
    """Returns a NodeClass as it is recorded: an EC2NodeClass with a digest in place of its user data. One that comes
    out of a record has that already.
    """
    if not isinstance(node_class, EC2NodeClass) or not node_class.spec.user_data:
        return node_class
    if _IS_DIGEST.fullmatch(node_class.spec.user_data):
        return node_class
    spec = replace(node_class.spec, user_data=user_data_digest(node_class.spec.user_data))
    return replace(node_class, spec=spec)


def ec2_terms(node_class: EC2NodeClass, ca_bundle: str = "") -> NodeClassTerms:
    """Returns the terms of an EC2NodeClass, from its spec and resolved status.

    `ca_bundle` is the certificate authority of the cluster, where it is known. A node that holds another one drifts
    (A-64); an image of the user's own (family Custom) is told none.
    """
    status = node_class.status
    static = _static(node_class)
    if ca_bundle and node_class.ami_family != "Custom":
        static[CA_BUNDLE] = _DIGEST + blake2b(ca_bundle.encode(), digest_size=16).hexdigest()
    return NodeClassTerms(
        hash=f"{MADE}/{blake2b(msgspec.json.encode(static, order='sorted'), digest_size=8).hexdigest()}",
        static=static,
        images=tuple(Image(image.id, image.requirements) for image in status.amis),
        subnets=tuple(sorted(subnet.id for subnet in status.subnets)),
        zones={
            zone: tuple(sorted(subnet.id for subnet in status.subnets if subnet.zone == zone))
            for zone in sorted({subnet.zone for subnet in status.subnets})
        },
        security_groups=tuple(sorted(group.id for group in status.security_groups)),
        reservations=tuple(sorted(reservation.id for reservation in status.capacity_reservations)),
    )


def _static(node_class: EC2NodeClass) -> Template:
    """Returns the hashed fields that say something (A-64).

    Fields that are absent, zero or the default are left out, even if the author wrote them. The order of lists does not
    count.
    """
    spec = node_class.spec
    hashed: dict[str, Any] = {
        "amiFamily": node_class.ami_family,
        USER_DATA: user_data_digest(spec.user_data) if spec.user_data else "",
        "role": spec.role,
        "instanceProfile": spec.instance_profile,
        "placementGroupSelector": spec.placement_group_selector,
        "blockDeviceMappings": spec.block_device_mappings,
        "instanceStorePolicy": spec.instance_store_policy,
        "networkInterfaces": spec.network_interfaces,
        "detailedMonitoring": spec.detailed_monitoring,
        "associatePublicIPAddress": spec.associate_public_ip_address,
        "connectionTracking": spec.connection_tracking,
        "context": spec.context,
        "cpuOptions": spec.cpu_options,
    }
    maps = {"tags": spec.tags, "kubelet": spec.kubelet, "metadataOptions": _plain(spec.metadata_options)}
    static: Template = {}
    for field, value in hashed.items():
        static |= _flat(field, _plain(value)) if value else {}
    for field, entries in maps.items():
        for key, value in entries.items():
            static |= _flat(f"{field} {key}", _plain(value)) if value is not None else {}
    return static


def _flat(path: str, plain: Any) -> Template:
    """Returns a value as path → text, so that each part of it is compared and told by itself.

    A path is "field", "field key" or "field key rest": blockDeviceMappings /dev/xvda ebs.volumeSize.
    """
    if isinstance(plain, dict) and plain:
        return {at: text for key in sorted(plain) for at, text in _flat(_below(path, key), plain[key]).items()}
    if isinstance(plain, list) and any(isinstance(item, dict) for item in plain):
        items = _named(plain)
        return {at: text for name in sorted(items) for at, text in _flat(_below(path, name), items[name]).items()}
    return {path: _text(plain)}


def _below(path: str, step: str) -> str:
    return f"{path}.{step}" if path.count(" ") > 1 else f"{path} {step}"


def _named(items: list[Any]) -> dict[str, Any]:
    """Returns the items of a list by what names them, else by their number. The order of lists does not count."""
    ordered = sorted(items, key=lambda item: msgspec.json.encode(item, order="sorted"))
    names = [str(item.get(_ITEM_NAME, "")) if isinstance(item, dict) else "" for item in ordered]
    if all(names) and len(set(names)) == len(names):
        return {name: item if len(item) == 1 else _without(item) for name, item in zip(names, ordered, strict=True)}
    return {str(number): item for number, item in enumerate(ordered)}


def _without(item: dict[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in item.items() if key != _ITEM_NAME}


def _plain(value: Any) -> Any:
    """Returns a part of the API's object as plain JSON, without empty and default values.

    msgspec alone would leave out only defaults that nobody wrote.
    """
    if isinstance(value, Struct):
        found = ((known, getattr(value, known.name)) for known in fields(value))
        return {known.encode_name: _plain(part) for known, part in found if part and part != known.default}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _text(plain: Any) -> str:
    """Returns one value as text, the values of a list with commas between them."""
    if isinstance(plain, list):
        text = ", ".join(sorted(map(_text, plain)))
    else:
        text = plain if isinstance(plain, str) else msgspec.json.encode(plain, order="sorted").decode()
    if len(text) <= SHOWN:
        return text
    return f"{text[: SHOWN // 2]}… ({len(text)} characters, {blake2b(text.encode(), digest_size=4).hexdigest()})"
