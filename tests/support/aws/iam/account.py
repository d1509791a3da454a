"""What IAM looks up of a request's resources in the account: their tags, and what a launch template holds. Read from
moto's own state, so that no call is counted and no fault used up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Tags = Mapping[str, str]


class Template(Struct, frozen=True):
    id: str
    tags: Tags
    data: Mapping[str, Any]


class Profile(Struct, frozen=True):
    """An instance profile: where it is (`path` ends in a slash), its tags, and the names of its roles."""

    path: str = "/"
    tags: Tags = {}
    roles: tuple[str, ...] = ()


class Account:
    """moto's account `number` in a region."""

    def __init__(self, number: str, region: str) -> None:
        from moto.backends import get_backend

        self.number, self.region = number, region
        self._ec2: Any = get_backend("ec2")[number][region]
        self._iam: Any = get_backend("iam")[number]["aws"]

    def template(self, name: str) -> Template | None:
        found = self._ec2.launch_template_name_to_ids.get(name)
        if found is None:
            return None
        template = self._ec2.launch_templates[found]
        return Template(template.id, self._tags(template.id), template.latest_version().data)

    def instance_tags(self, instance: str) -> Tags:
        return self._tags(instance)

    def profile(self, name: str) -> Profile | None:
        found = next((p for p in self._iam.instance_profiles.values() if p.name == name), None)
        if found is None:
            return None
        tags = {tag["Key"]: tag["Value"] for tag in found.tags}
        return Profile(found.path, tags, tuple(role.name for role in found.roles))

    def _tags(self, resource: str) -> Tags:
        return {tag["key"]: tag["value"] for tag in self._ec2.describe_tags(filters={"resource-id": [resource]})}
