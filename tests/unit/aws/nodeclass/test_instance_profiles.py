"""Instance profiles of EC2NodeClasses (A-116 to A-123), against an IAM of a few lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from kerf.adapters.aws.nodeclass.instance_profiles import (
    KNOWN_FOR,
    MISSING_FOR,
    InstanceProfiles,
    legacy_name,
    profile_name,
)
from kerf.adapters.aws.nodeclass.resolved import ready
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus

FACTS = ClusterFacts(endpoint="https://demo", kubernetes_version="1.34")
SETTINGS = AwsSettings(cluster="demo", region="us-west-2", facts=FACTS)
NOT_FOUND = "NoSuchEntity"


class IAM:
    """Profiles by name, each with its path and roles; `calls` are the operations asked for, in order."""

    def __init__(self, *roles: str) -> None:
        self.roles = set(roles)
        self.profiles: dict[str, tuple[str, list[str]]] = {}
        self.calls: list[str] = []

    def _no(self, what: str) -> ClientError:
        return ClientError({"Error": {"Code": NOT_FOUND, "Message": f"The {what} cannot be found."}}, "IAM")

    def _found(self, name: str) -> tuple[str, list[str]]:
        if name not in self.profiles:
            raise self._no("instance profile")
        return self.profiles[name]

    def get_instance_profile(self, **given: Any) -> dict[str, Any]:
        self.calls.append("get")
        roles = self._found(given["InstanceProfileName"])[1]
        return {"InstanceProfile": {"Roles": [{"RoleName": role} for role in roles]}}

    def create_instance_profile(self, **given: Any) -> dict[str, Any]:
        self.calls.append("create")
        self.profiles[given["InstanceProfileName"]] = (given["Path"], [])
        return {}

    def add_role_to_instance_profile(self, **given: Any) -> dict[str, Any]:
        self.calls.append("add " + given["RoleName"])
        if given["RoleName"] not in self.roles:
            raise self._no("role")
        roles = self._found(given["InstanceProfileName"])[1]
        if roles:
            raise ClientError({"Error": {"Code": "LimitExceeded", "Message": "one role at most"}}, "IAM")
        roles.append(given["RoleName"])
        return {}

    def remove_role_from_instance_profile(self, **given: Any) -> dict[str, Any]:
        self.calls.append("remove")
        self._found(given["InstanceProfileName"])[1].remove(given["RoleName"])
        return {}

    def delete_instance_profile(self, **given: Any) -> dict[str, Any]:
        self.calls.append("delete")
        roles = self._found(given["InstanceProfileName"])[1]
        if roles:
            raise ClientError({"Error": {"Code": "DeleteConflict", "Message": "it has roles"}}, "IAM")
        del self.profiles[given["InstanceProfileName"]]
        return {}

    def list_instance_profiles(self, **given: Any) -> dict[str, Any]:
        self.calls.append("list")
        found = [name for name, (path, _) in self.profiles.items() if path.startswith(given["PathPrefix"])]
        return {"InstanceProfiles": [{"InstanceProfileName": name} for name in found]}


class Account:
    """An IAM with the role `node`, and kerf's view of it."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.iam = IAM("node", "other")
        self.profiles = self.new()

    def new(self) -> InstanceProfiles:
        clients: Any = SimpleNamespace(iam=self.iam)
        return InstanceProfiles(clients, SETTINGS, lambda: self.now)


@pytest.fixture
def account() -> Account:
    return Account()


def node_class(name: str = "default", role: str = "node", profile: str = "", status: str = "") -> EC2NodeClass:
    spec = EC2NodeClassSpec(role=role, instance_profile=profile)
    return EC2NodeClass(name, spec, EC2NodeClassStatus(instance_profile=status), uid=f"uid-{name}")


def test_a116_a_named_profile_is_taken_at_its_word(account: Account) -> None:
    name, condition = account.profiles.resolve(node_class(role="", profile="mine"), "")
    assert (name, condition.status, account.iam.calls) == ("mine", "True", [])


def test_a119_a_profile_is_made_for_the_role_and_then_known_for_a_quarter_of_an_hour(account: Account) -> None:
    name, condition = account.profiles.resolve(node_class(), "")
    assert condition.status == "True"
    assert account.iam.profiles == {name: ("/karpenter/us-west-2/demo/uid-default/", ["node"])}
    del account.iam.calls[:]
    assert account.profiles.resolve(node_class(), name)[0] == name
    account.now += KNOWN_FOR - 1
    assert account.profiles.resolve(node_class(), name)[0] == name
    assert account.iam.calls == []
    account.now += 1
    assert account.profiles.resolve(node_class(), name)[0] == name
    assert account.iam.calls == ["get"]


def test_a119_another_role_gets_another_profile_and_the_old_one_keeps_its_own(account: Account) -> None:
    """Another role gets another profile and the old one keeps its own (A-460)."""
    first, _ = account.profiles.resolve(node_class(), "")
    second, _ = account.profiles.resolve(node_class(role="other"), first)
    assert first != second
    assert {name: roles for name, (_, roles) in account.iam.profiles.items()} == {first: ["node"], second: ["other"]}


def test_a119_what_the_status_names_stays_where_its_role_is_right(account: Account) -> None:
    account.iam.profiles["from-karpenter"] = ("/karpenter/us-west-2/demo/uid-default/", ["node"])
    assert account.profiles.resolve(node_class(), "from-karpenter")[0] == "from-karpenter"
    assert account.iam.calls == ["get"]


def test_a120_a_role_that_is_not_there_is_not_asked_for_again_within_a_minute(account: Account) -> None:
    absent = node_class(role="absent")
    for _ in range(2):
        with pytest.raises(AwsError, match="role cannot be found"):
            account.profiles.resolve(absent, "")
    assert account.iam.calls.count("add absent") == 1
    account.now += MISSING_FOR
    account.iam.roles.add("absent")
    assert account.profiles.resolve(absent, "")[1].status == "True"


def test_a120_a121_the_path_of_a_role_makes_no_difference(account: Account) -> None:
    with_path = node_class(role="team/path/node")
    name, _ = account.profiles.resolve(with_path, "")
    assert "add node" in account.iam.calls
    account.now += KNOWN_FOR
    assert account.profiles.resolve(with_path, name)[0] == name
    assert len(account.iam.profiles) == 1


def test_a122_a81_what_was_made_for_a_class_goes_with_it_role_first(account: Account) -> None:
    own, _ = account.profiles.resolve(node_class(), "")
    other, _ = account.profiles.resolve(node_class("other"), "")
    account.profiles.release(node_class())
    assert list(account.iam.profiles) == [other]
    assert account.iam.calls[-4:] == ["get", "remove", "delete", "get"], "the last is for a profile of older Karpenters"
    account.profiles.release(node_class())
    assert own not in account.iam.profiles, "one that is gone is as good"


def test_a120_a_role_that_somebody_else_gave_the_profile_makes_room(account: Account) -> None:
    name, _ = account.profiles.resolve(node_class(), "")
    account.iam.profiles[name][1][:] = ["other"]
    account.now += KNOWN_FOR
    del account.iam.calls[:]
    assert account.profiles.resolve(node_class(), name) == (name, ready("InstanceProfileReady"))
    assert account.iam.profiles[name][1] == ["node"]
    assert account.iam.calls == ["get", "remove", "add node"]


def test_a118_a81_the_profile_of_an_older_karpenter_goes_with_its_class(account: Account) -> None:
    """Its hash is hashstructure's of the text "us-west-2default": FNV-1 over 64 bits."""
    legacy = f"demo_{_hashstructure('us-west-2default')}"
    assert legacy_name(SETTINGS, node_class()) == legacy
    account.iam.profiles |= {legacy: ("/", ["node"]), "demo_1": ("/", ["node"])}
    account.profiles.release(node_class())
    assert list(account.iam.profiles) == ["demo_1"]
    account.profiles.release(node_class())


def test_a81_a_name_that_iam_would_not_take_is_not_asked_for(account: Account) -> None:
    settings = replace(SETTINGS, cluster="x" * 128)
    clients: Any = SimpleNamespace(iam=account.iam)
    InstanceProfiles(clients, settings, lambda: account.now).release(node_class())
    assert account.iam.calls == ["list"]


def _hashstructure(text: str) -> int:
    """As hash/fnv's New64 of Go sums."""
    total = 0xCBF29CE484222325
    for byte in text.encode():
        total = (total * 0x100000001B3) % 2**64 ^ byte
    return total


def test_a123_what_neither_a_class_nor_an_instance_has_is_garbage(account: Account) -> None:
    path = "/karpenter/us-west-2/demo/uid-gone/"
    account.iam.profiles |= {
        "in-a-status": (path, []), "on-an-instance": (path, []), "unused": (path, ["node"]),
        "of-another-cluster": ("/karpenter/us-west-2/other/uid-gone/", []), "somebodys": ("/", []),
    }  # fmt: skip
    made, _ = account.profiles.resolve(node_class(), "")
    gone = account.new().collect([node_class(status="in-a-status")], ["on-an-instance"])
    assert gone == ["unused"]
    assert sorted(account.iam.profiles) == sorted(
        ["in-a-status", "on-an-instance", "of-another-cluster", "somebodys", made]
    )
    assert made == profile_name(SETTINGS, node_class())
