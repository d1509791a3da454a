"""deploy/iam allows what kerf asks of AWS, nothing else, and nothing of another cluster's (A-383 to A-399).

One life of a cluster is played: classes, launches of each kind, interruptions, clean-up. What IAM is asked for it is
held against the policies, and so is each authorization with one thing changed that is not this cluster's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.account import eks_cluster, probe
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.mock.environment import CLUSTER, Environment
from kerf.engine.model import labels
from kerf.engine.model.karpenter.ec2nodeclasses import (
    BlockDevice,
    BlockDeviceMapping,
    CapacityReservationTerm,
    EC2NodeClass,
    PlacementGroupSelector,
)
from kerf.engine.record.decisions import Offer
from tests.contract.cloud_contract import order
from tests.support.aws.boundary import watched
from tests.support.aws.iam.definitions import definitions, granted, kind_of, problems, required
from tests.support.aws.iam.least_privilege import Witness, policy
from tests.support.aws.iam.policy import Asked, allows, loosened, narrowed
from tests.support.servers.aws_world import CLOCK, AwsWorld

OWNED = f"kubernetes.io/cluster/{CLUSTER}"
ARN = f"arn:aws:eks:us-west-2:123456789012:cluster/{CLUSTER}"
READS = ("iam:GetInstanceProfile",)
"""Looking is bound to no tag: a class may name a profile that somebody else has made."""
CHINA = "ec2.amazonaws.com.cn"
"""What EC2 is called in China: no account of these tests is there."""


def life(environment: Environment) -> list[Asked]:
    """What IAM is asked for all that a controller does in control mode."""
    world, operator = AwsWorld(environment), environment.operator
    with watched() as boundary:
        witness = Witness()
        boundary.before.append(witness)
        probe(operator.shim)
        eks_cluster(operator.shim, CLUSTER)
        operator.shim.reservations = [_reservation()]
        operator.shim.placement_groups = [
            {"GroupId": "pg-1", "GroupName": "close", "Strategy": "cluster", "State": "available"}
        ]
        (plain,) = environment.node_classes
        environment.node_classes[:] = [_rich(plain)]
        facts = replace(environment.settings.facts, arn=ARN)
        settings = replace(environment.settings, facts=facts, dry_run=True, zonal_shift=True)
        cloud = AwsCloud(operator.shim, settings, lambda: environment.node_classes, CLOCK)
        cloud.observe()
        instances = []
        for kind in (labels.ON_DEMAND, labels.SPOT, labels.RESERVED):
            wanted = order(world, f"least-{kind}", kind)
            if kind == labels.RESERVED:
                wanted = replace(wanted, reservation="cr-1", offers=(Offer("m5.large", "us-west-2a", 0.0),))
            answer = cloud.launch(wanted, intent="1.0", token=wanted.claim)
            assert answer.instance, answer
            instances.append(answer.instance)
        cloud.name({instances[0]: "node-1"})
        cloud.unhealthy()
        cloud.in_ending_blocks()
        operator.interrupt_spot(instances[1])
        environment.interruptions.poll()
        environment.interruptions.acknowledge()
        for instance in instances:
            assert cloud.terminate(instance, intent="1.0").ok
        cloud.release(environment.node_classes[0])
        environment.node_classes[:] = [plain]
    operator.shim.reservations, operator.shim.placement_groups = [], []
    assert boundary.problems == []
    return witness.asked


def _reservation() -> dict[str, Any]:
    return {
        "CapacityReservationId": "cr-1", "InstanceType": "m5.large", "AvailabilityZone": "us-west-2a",
        "OwnerId": "123456789012", "InstanceMatchCriteria": "targeted", "AvailableInstanceCount": 2, "State": "active",
    }  # fmt: skip


def _rich(plain: EC2NodeClass) -> EC2NodeClass:
    """A class whose launches touch everything that launches can touch."""
    volume = BlockDeviceMapping("/dev/xvda", ebs=BlockDevice(snapshot_id="snap-1", volume_size="20Gi"))
    spec = replace(
        plain.spec,
        block_device_mappings=(volume,),
        capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-1"),),
        placement_group_selector=PlacementGroupSelector(name="close"),
    )
    return replace(plain, uid="uid-rich", spec=spec)


@pytest.fixture(scope="module")
def asked(environment: Environment) -> list[Asked]:
    return life(environment)


@pytest.fixture(scope="module")
def foreign(asked: list[Asked]) -> list[Asked]:
    return [other for one in asked for other in not_ours(one)]


def not_ours(asked: Asked) -> Iterator[Asked]:
    """The same, changed in one thing: another cluster's, another region's, or of no class or NodePool."""
    context = dict(asked.context)
    for part in ("aws:RequestTag", "aws:ResourceTag"):
        if asked.action in READS:
            continue
        profile = asked.action.startswith("iam:")
        whose = {OWNED: "shared", "topology.kubernetes.io/region": "eu-west-1"}
        whose |= {"eks:eks-cluster-name": "other"} if part == "aws:RequestTag" else {}
        for key, value in whose.items():
            if f"{part}/{key}" in context:
                yield replace(asked, context=context | {f"{part}/{key}": value})
                yield replace(asked, context=_without(context, f"{part}/{key}"))
        of = f"{part}/" + ("karpenter.k8s.aws/ec2nodeclass" if profile else "karpenter.sh/nodepool")
        if of in context:
            yield replace(asked, context=_without(context, of))
    if "ec2:CreateAction" in context:
        yield replace(asked, context=context | {"ec2:CreateAction": "CreateVolume"})
        yield replace(asked, context=_without(context, "ec2:CreateAction"))
    elif asked.action == "ec2:CreateTags":
        for key in ("karpenter.sh/nodepool", OWNED, "eks:eks-cluster-name"):
            tagged = {f"aws:RequestTag/{key}": "other", "aws:TagKeys": (*context["aws:TagKeys"], key)}
            yield replace(asked, context=context | tagged)
    if "iam:PassedToService" in context:
        yield replace(asked, context=context | {"iam:PassedToService": "lambda.amazonaws.com"})
        yield replace(asked, context=_without(context, "iam:PassedToService"))
        yield replace(asked, resource="arn:aws:iam::123456789012:role/administrator")
    if asked.action == "arc-zonal-shift:GetManagedResource":
        yield replace(asked, context=context | {"arc-zonal-shift:ResourceIdentifier": f"{ARN}-2"})
        yield replace(asked, context=_without(context, "arc-zonal-shift:ResourceIdentifier"))
    yield from (replace(asked, resource=resource) for resource in _elsewhere(asked.resource))
    if asked.action.startswith("ec2:Describe"):
        yield replace(asked, context=context | {"aws:RequestedRegion": "eu-west-1"})
        yield replace(asked, context=_without(context, "aws:RequestedRegion"))


def _elsewhere(resource: str) -> Iterator[str]:
    """Another region's, another account's where the account is named, another cluster's, or another parameter."""
    if ":us-west-2:" in resource:
        yield resource.replace(":us-west-2:", ":eu-west-1:")
    if resource.startswith(("arn:aws:iam:", "arn:aws:eks:", "arn:aws:sqs:")):
        yield resource.replace("123456789012", "210987654321")
    if resource.startswith(("arn:aws:eks:", "arn:aws:sqs:")):
        yield resource.replace(CLUSTER, "other")
    if resource.startswith("arn:aws:ssm:"):
        yield "arn:aws:ssm:us-west-2:123456789012:parameter/database/password"


def _without(context: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in context.items() if name != key}


def test_each_authorization_is_one_that_aws_has(asked: list[Asked]) -> None:
    assert sorted({problem for one in asked for problem in problems(one)}) == []
    for action in definitions()["actions"]:
        assert required(action) <= {kind_of(one.resource) for one in asked if one.action == action}, action


def test_a_383_to_a_399_what_kerf_asks_for_is_allowed(asked: list[Asked]) -> None:
    control = policy("control.json")
    assert [str(one) for one in asked if not allows(control, one)] == []


def test_a_383_what_is_not_this_clusters_is_refused(foreign: list[Asked]) -> None:
    control = policy("control.json")
    assert [str(one) for one in foreign if allows(control, one)] == []
    assert len(foreign) > 200


def test_nothing_is_allowed_that_no_call_needs(asked: list[Asked]) -> None:
    for statement in policy("control.json")["Statement"]:
        alone = {"Statement": [statement]}
        used = {(one.action, kind_of(one.resource)) for one in asked if allows(alone, one)}
        assert granted(statement) - used == set(), statement["Sid"]


def test_a_policy_with_one_thing_less_refuses_a_call(asked: list[Asked]) -> None:
    """One action, one resource, one value that a condition takes."""
    enough = [what for what, less in narrowed(policy("control.json")) if all(allows(less, one) for one in asked)]
    assert enough == [f"PassTheNodesRole without iam:PassedToService {CHINA}"]


def test_a_policy_with_one_condition_less_allows_what_is_not_ours(foreign: list[Asked]) -> None:
    still = [what for what, free in loosened(policy("control.json")) if not any(allows(free, one) for one in foreign)]
    assert still == []


# ── observe mode ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def looked(environment: Environment) -> list[Asked]:
    """What IAM is asked for all that a controller does in observe mode."""

    shim = environment.operator.shim
    with watched() as boundary:
        witness = Witness()
        boundary.before.append(witness)
        eks_cluster(shim, CLUSTER)
        facts = replace(environment.settings.facts, arn=ARN)
        settings = replace(environment.settings, facts=facts, zonal_shift=True)
        (plain,) = environment.node_classes
        cloud = AwsCloud(shim, settings, lambda: [_rich(plain)], CLOCK, observing=True)
        cloud.observe()
        cloud.unhealthy()
        cloud.in_ending_blocks()
        cloud.listing()
    return witness.asked


def test_observe_mode_is_allowed_to_look(looked: list[Asked]) -> None:
    observe = policy("observe.json")
    assert [str(one) for one in looked if not allows(observe, one)] == []
    assert not any(allows(observe, other) for one in looked for other in not_ours(one))


def test_observe_mode_is_allowed_nothing_else(looked: list[Asked]) -> None:
    observe = policy("observe.json")
    for statement in observe["Statement"]:
        used = {(one.action, kind_of(one.resource)) for one in looked}
        assert granted(statement) - used == set(), statement["Sid"]
    others = [other for one in looked for other in not_ours(one)]
    assert [what for what, less in narrowed(observe) if all(allows(less, one) for one in looked)] == []
    assert [what for what, free in loosened(observe) if not any(allows(free, other) for other in others)] == []
