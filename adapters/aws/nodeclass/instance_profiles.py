"""Instance profiles: which one the nodes of a class boot with, and deleting those that are not used any more
(A-116…A-123)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from kerf.adapters.aws import tags
from kerf.adapters.aws.nodeclass.resolved import ready
from kerf.adapters.aws.session import AwsError, Clients, call
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_hash import fnv

KNOWN_FOR = 900_000
"""How long (ms) IAM is not asked again about a profile (A-85)."""
MISSING_FOR = 60_000
"""How long (ms) IAM is not asked again for a role that it does not have (A-120)."""


_NAME = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)
"""What IAM takes for the name of a profile (A-81)."""


class InstanceProfiles:
    def __init__(self, clients: Clients, settings: AwsSettings, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}  # name → when it was asked for, its roles
        self._missing: dict[str, tuple[int, AwsError]] = {}  # role → when IAM did not have it

    def resolve(self, node_class: EC2NodeClass, before: str) -> tuple[str, Condition]:
        """The profile of a class: its own, else the one that it has (`before`) if that has the class's role, else one
        of kerf's. Its name follows from class and role, so that a retry makes no second one (A-116, A-119). Raises
        `AwsError`."""
        if node_class.spec.instance_profile:
            return node_class.spec.instance_profile, ready("InstanceProfileReady")
        role = node_class.spec.role.rpartition("/")[2]  # IAM tells roles without their paths
        if before and role in (self._roles(before) or ()):
            return before, ready("InstanceProfileReady")
        name = profile_name(self._settings, node_class)
        roles = self._roles(name)
        if roles is None or role not in roles:
            self._make(name, role, node_class, roles)
        return name, ready("InstanceProfileReady")

    def release(self, node_class: EC2NodeClass) -> None:
        """Delete all profiles that were made for a class (A-81), that of a Karpenter before 1.7 too. Raises
        `AwsError`."""
        for name in self._under(self._path(node_class)):
            self._delete(name)
        legacy = legacy_name(self._settings, node_class)
        if _NAME.fullmatch(legacy):
            self._delete(legacy)

    def collect(self, node_classes: Iterable[EC2NodeClass], in_use: Iterable[str]) -> list[str]:
        """Delete the profiles of this cluster that no class and no claim (`in_use`) names, and return their names
        (A-123). Raises `AwsError` at the first that cannot be deleted."""
        kept = {*in_use, *(node_class.status.instance_profile for node_class in node_classes)}
        kept |= {profile_name(self._settings, node_class) for node_class in node_classes}
        settings = self._settings
        gone = [name for name in self._under(f"/karpenter/{settings.region}/{settings.cluster}/") if name not in kept]
        for name in gone:
            self._delete(name)
        return gone

    # ── one profile ─────────────────────────────────────────────────────────────────────────────────────────

    def _roles(self, name: str) -> tuple[str, ...] | None:
        """The roles in a profile; None if there is no such profile."""
        at, roles = self._known.get(name, (0, ()))
        if at and self._clock() < at + KNOWN_FOR:
            return roles
        try:
            answer = call(self._clients.iam.get_instance_profile, InstanceProfileName=name)
        except AwsError as error:
            if error.not_found:
                return None
            raise
        roles = tuple(role["RoleName"] for role in answer["InstanceProfile"].get("Roles", ()))
        self._note(name, roles)
        return roles

    def _note(self, name: str, roles: tuple[str, ...]) -> None:
        now = self._clock()
        self._known = {profile: known for profile, known in self._known.items() if now < known[0] + KNOWN_FOR}
        self._known[name] = now, roles

    def _make(self, name: str, role: str, node_class: EC2NodeClass, before: tuple[str, ...] | None) -> None:
        """Make the profile, or give it its role in place of those that somebody else gave it (`before`; A-120): IAM
        takes one."""
        at, missing = self._missing.get(role, (0, None))
        if missing is not None and self._clock() < at + MISSING_FOR:
            raise missing
        if before is None:
            self._create(name, node_class)
        for other in before or ():
            self._remove(name, other)
        try:
            call(self._clients.iam.add_role_to_instance_profile, InstanceProfileName=name, RoleName=role)
        except AwsError as error:
            if error.not_found and "role" in error.detail.lower():
                now = self._clock()
                self._missing = {
                    missing_role: known for missing_role, known in self._missing.items() if now < known[0] + MISSING_FOR
                }
                self._missing[role] = now, error
            raise
        self._note(name, (role,))

    def _create(self, name: str, node_class: EC2NodeClass) -> None:
        settings = self._settings
        own = tags.profile_tags(settings.cluster, node_class.name, settings.region, node_class.spec.tags)
        call(
            self._clients.iam.create_instance_profile,
            InstanceProfileName=name,
            Path=self._path(node_class),
            Tags=tags.tag_list(own),
        )

    def _delete(self, name: str) -> None:
        """Delete a profile. That it is gone already, or has no role, is no error (A-122)."""
        self._known.pop(name, None)
        roles = self._roles(name)
        if roles is None:
            return
        for role in roles:
            self._remove(name, role)
        try:
            call(self._clients.iam.delete_instance_profile, InstanceProfileName=name)
        except AwsError as error:
            if not error.not_found:
                raise

    def _remove(self, name: str, role: str) -> None:
        call(self._clients.iam.remove_role_from_instance_profile, InstanceProfileName=name, RoleName=role)
        self._known.pop(name, None)

    def _under(self, path: str) -> list[str]:
        names: list[str] = []
        marker: dict[str, Any] = {}
        while True:
            answer = call(self._clients.iam.list_instance_profiles, PathPrefix=path, **marker)
            names += [profile["InstanceProfileName"] for profile in answer.get("InstanceProfiles", ())]
            if not answer.get("IsTruncated"):
                return sorted(names)
            marker = {"Marker": answer["Marker"]}

    def _path(self, node_class: EC2NodeClass) -> str:
        return f"/karpenter/{self._settings.region}/{self._settings.cluster}/{node_class.uid}/"


def profile_name(settings: AwsSettings, node_class: EC2NodeClass) -> str:
    """`<cluster>_<u64>`. Another role gives another profile (A-119)."""
    text = "/".join((settings.region, node_class.name, node_class.uid, node_class.spec.role))
    return f"{settings.cluster}_{int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big')}"


def legacy_name(settings: AwsSettings, node_class: EC2NodeClass) -> str:
    """The profile that a Karpenter before 1.7 made for the class (A-118)."""
    return f"{settings.cluster}_{fnv(f'{settings.region}{node_class.name}'.encode())}"
