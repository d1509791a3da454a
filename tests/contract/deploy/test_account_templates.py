"""deploy/aws: what CloudFormation and Terraform make in an account. Both have deploy/iam/control.json."""

from __future__ import annotations

import json
import re
from string import Template
from typing import Any

import pytest
import yaml

from deploy.make_cloudformation import POLICY, TEMPLATE, with_policy
from kerf.adapters.aws.interruption import EVENTS
from tests.support.repository import ROOT

TERRAFORM = ROOT / "deploy" / "aws" / "terraform"
VARIABLES = set(re.findall(r"\$\{(\w+)\}", POLICY.read_text()))
MANAGED = {
    "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
}  # fmt: skip
"""A-401."""


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short functions as maps: `!Ref x` is {"Ref": "x"}."""


def _function(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    else:
        assert isinstance(node, yaml.SequenceNode)
        value = loader.construct_sequence(node, deep=True)
    return {name if name == "Ref" else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _function)


def resources() -> dict[str, Any]:
    """The resources of the CloudFormation template."""
    found: dict[str, Any] = yaml.load(TEMPLATE.read_text(), _Loader)["Resources"]
    return found


def blocks(kind: str) -> dict[str, Any]:
    """The resources of a kind in Terraform's main file, by name."""
    import hcl2

    with (TERRAFORM / "main.tf").open() as file:
        read = hcl2.load(file)
    return {
        name.strip('"'): body
        for block in read["resource"]
        for of, named in block.items()
        for name, body in named.items()
        if of.strip('"') == kind
    }


def test_cloudformation_has_the_policy_of_deploy_iam() -> None:
    assert with_policy(TEMPLATE.read_text(), POLICY.read_text()) == TEMPLATE.read_text(), "run make policy"
    text, values = resources()["ControllerPolicy"]["Properties"]["PolicyDocument"]["Fn::Sub"]
    assert json.loads(text) == json.loads(POLICY.read_text())
    assert values.keys() == VARIABLES
    assert (values["NODE_ROLE"], values["QUEUE"]) == (
        {"Ref": "NodeRole"},
        {"Fn::GetAtt": "InterruptionQueue.QueueName"},
    )


def test_a_343_cloudformation_sends_the_events_that_kerf_reads_and_lets_no_other_in() -> None:
    rules = {name: made for name, made in resources().items() if made["Type"] == "AWS::Events::Rule"}
    patterns = [rule["Properties"]["EventPattern"] for rule in rules.values()]
    assert {(*pattern["source"], *pattern["detail-type"]) for pattern in patterns} == EVENTS
    (send, deny) = resources()["InterruptionQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    senders = {source["Fn::GetAtt"].split(".")[0] for source in send["Condition"]["ArnEquals"]["aws:SourceArn"]}
    assert (send["Action"], senders, deny["Effect"]) == ("sqs:SendMessage", set(rules), "Deny")


def test_a_401_cloudformation_gives_nodes_what_they_need() -> None:
    node = resources()["NodeRole"]["Properties"]
    assert {policy["Fn::Sub"].rpartition("/")[2] for policy in node["ManagedPolicyArns"]} == MANAGED
    trust = json.loads(
        Template(
            resources()["ControllerRole"]["Properties"]["AssumeRolePolicyDocument"]["Fn::If"][2]["Fn::Sub"]
        ).safe_substitute(OidcProvider="oidc", Namespace="kerf", ServiceAccount="kerf")
    )
    assert trust["Statement"][0]["Condition"]["StringEquals"]["oidc:sub"] == "system:serviceaccount:kerf:kerf"


@pytest.mark.slow
def test_cfn_lint_finds_nothing() -> None:
    from cfnlint.api import lint_file

    assert [str(found) for found in lint_file(TEMPLATE)] == []


@pytest.mark.slow
def test_terraform_has_the_policy_of_deploy_iam_and_the_same_queue_and_roles() -> None:
    """Every file is read by a parser of HCL."""
    import hcl2

    for file in sorted(TERRAFORM.glob("*.tf")):
        with file.open() as text:
            assert hcl2.load(text), file
    policy = blocks("aws_iam_policy")["controller"]["policy"]
    path, values = re.fullmatch(r'\$\{templatefile\("\$\{path\.module\}/(.*?)", \{(.*)\}\)\}', policy).groups()  # type: ignore[union-attr]
    assert (TERRAFORM / path).resolve() == POLICY
    assert set(re.findall(r"(\w+) = ", values)) == VARIABLES
    with (TERRAFORM / "main.tf").open() as text:
        (known,) = hcl2.load(text)["locals"]
    events = {(event["source"].strip('"'), event["detail_type"].strip('"')) for event in known["events"].values()}
    assert events == EVENTS
    managed = blocks("aws_iam_role_policy_attachment")["node"]["for_each"]
    assert set(re.findall(r'\\?"(\w+)\\?"', managed)) == MANAGED
    queue, ours = blocks("aws_sqs_queue")["interruptions"], resources()["InterruptionQueue"]["Properties"]
    assert queue["message_retention_seconds"] == ours["MessageRetentionPeriod"]
    assert queue["sqs_managed_sse_enabled"] is ours["SqsManagedSseEnabled"] is True
