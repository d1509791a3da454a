"""What the tests' boundary finds wrong with a call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kerf.adapters.aws.account import probe
from tests.support.aws.boundary import Boundary, watched
from tests.support.aws.limits import documented_problems
from tests.support.aws.service_model import answer_problems, request_problems

CONFIG = {"LaunchTemplateSpecification": {"LaunchTemplateName": "karpenter.k8s.aws/1", "Version": "$Latest"}}
FLEET: dict[str, Any] = {
    "Type": "instant",
    "ClientToken": "kerf-1",
    "LaunchTemplateConfigs": [CONFIG],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
}
TAGGED = [{"ResourceType": "fleet", "Tags": [{"Key": "aws:mine", "Value": ""}]}]
NAMED_TWICE = [{**CONFIG, "Overrides": [{"InstanceType": "m5.large", "SubnetId": "subnet-1"}] * 2}]


@pytest.mark.parametrize(
    ("method", "parameters", "told"),
    [
        ("create_fleet", FLEET | {"Type": "soon"}, "'soon' is none of request, maintain, instant"),
        ("create_fleet", {"Type": "instant"}, ".LaunchTemplateConfigs: is missing"),
        ("create_fleet", FLEET | {"Wish": 1}, ".Wish: there is no such member"),
        ("create_fleet", FLEET | {"SpotOptions": {"AllocationStrategy": 3}}, "int in place of string"),
        ("create_fleet", FLEET | {"ClientToken": "k" * 65}, "longer than 64"),
        ("create_fleet", FLEET | {"TagSpecifications": TAGGED}, "'aws:mine'='' is no tag"),
        ("create_fleet", FLEET | {"LaunchTemplateConfigs": NAMED_TWICE}, "one type and one subnet"),
        ("create_launch_template", {"LaunchTemplateName": "a b", "LaunchTemplateData": {}}, "'a b' is no name"),
        ("describe_instance_types", {"MaxResults": 101}, "101 is not between 5 and 100"),
        ("describe_subnets", {"Filters": [{"Name": "subnet", "Values": ["a"]}]}, "has no filter subnet"),
        ("describe_instances", {"Filters": [{"Name": "instance-state-name", "Values": ["dead"]}]}, "dead is none of"),
        ("describe_instances", {}, "is not asked for by pages"),
        ("describe_instances", {"InstanceIds": ["i-1"], "MaxResults": 5}, "refuses it beside InstanceIds"),
        ("delete_message_batch", {"QueueUrl": "u", "Entries": [{"Id": "1", "ReceiptHandle": "r"}] * 2}, "different"),
    ],
)
def test_a_call_that_aws_would_refuse(method: str, parameters: dict[str, Any], told: str) -> None:
    found = [*request_problems(method, parameters), *documented_problems(method, parameters)]
    assert any(told in problem for problem in found), found


def test_a_call_that_aws_would_take() -> None:
    assert [*request_problems("create_fleet", FLEET), *documented_problems("create_fleet", FLEET)] == []


def test_an_answer_that_aws_would_not_give() -> None:
    assert answer_problems("describe_subnets", {"Subnets": [{"SubnetId": 7}]}) == [
        ".Subnets[0].SubnetId: int in place of string"
    ]
    assert answer_problems("describe_subnets", {"Subnets": [], "ResponseMetadata": {}}) == []


def test_a_stub_answers_what_aws_always_tells() -> None:
    def get_instance_profile(**_: Any) -> dict[str, Any]:
        return {"InstanceProfile": {"Roles": [{"RoleName": "node"}]}}

    with watched() as made:
        made_of = made.call(get_instance_profile, InstanceProfileName="p")["InstanceProfile"]
    assert {"Arn", "CreateDate", "Path"} <= made_of.keys()
    assert made_of["Roles"][0]["RoleName"] == "node"
    assert made.problems == []


def test_what_kerf_asks_is_seen(boundary: Boundary) -> None:
    def describe_instance_types(**_: Any) -> dict[str, Any]:
        return {}

    probe(SimpleNamespace(ec2=SimpleNamespace(describe_instance_types=describe_instance_types)))  # type: ignore[arg-type]
    assert [(made.method, made.parameters) for made in boundary.calls] == [
        ("describe_instance_types", {"DryRun": True})
    ]
