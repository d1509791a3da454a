"""deploy/iam: the policies allow exactly the calls that kerf makes (A-384 to A-399)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from botocore import xform_name
from botocore.loaders import Loader

from tests.support.repository import ROOT

SERVICES = ("ec2", "ssm", "iam", "sqs", "pricing", "eks", "arc-zonal-shift")
CALL = re.compile(rf"({'|'.join(SERVICES).replace('-', '_')})\.([a-z_]+)\b")
BY_ANOTHER_NAME = {"sqs:DeleteMessageBatch": "sqs:DeleteMessage"}
IMPLIED = {"iam:PassRole", "iam:TagInstanceProfile"}
"""What EC2 and IAM ask for when a fleet is made, something is made with tags, or a role is handed on."""


def actions(name: str) -> set[str]:
    return {action for statement in statements(name) for action in statement["Action"]}


def statements(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "deploy" / "iam" / name).read_text())["Statement"]
    return found


def called() -> set[str]:
    """By reading the adapter: `clients.ec2.describe_images` is ec2:DescribeImages."""
    loader = Loader()
    names: dict[tuple[str, str], str] = {}
    for service in SERVICES:
        operations = loader.load_service_model(service, "service-2")["operations"]
        names |= {(service, xform_name(operation)): f"{service}:{operation}" for operation in operations}
    found = set()
    adapter = ROOT / "adapters" / "aws"
    for file in sorted(adapter.rglob("*.py")):
        if adapter / "mock" not in file.parents and file.name != "make_table.py":
            for match in CALL.finditer(file.read_text()):
                found.add(names.get((match[1].replace("_", "-"), match[2]), ""))
    return {BY_ANOTHER_NAME.get(action, action) for action in found if action}


def test_control_allows_what_is_called_and_nothing_else() -> None:
    assert actions("control.json") - IMPLIED == called()


def test_observe_only_looks() -> None:
    verbs = {action.partition(":")[2] for action in actions("observe.json")}
    assert all(verb.startswith(("Describe", "Get", "List")) for verb in verbs)
    assert actions("observe.json") <= actions("control.json")


@pytest.mark.parametrize("name", ["control.json", "observe.json"])
def test_a_policy_fits_and_grants_no_wildcards(name: str) -> None:
    """6,144 characters without white space are IAM's limit; what changes something is bound to a resource or a tag."""
    assert len(re.sub(r"\s", "", (ROOT / "deploy" / "iam" / name).read_text())) <= 6_144
    for statement in statements(name):
        assert not any("*" in action for action in statement["Action"])
        reads = all(action.partition(":")[2].startswith(("Describe", "Get", "List")) for action in statement["Action"])
        assert reads or "*" not in statement["Resource"]
