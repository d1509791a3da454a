"""A whole AWS in this process, ready to use: for `kerf demo` and for the contract tests of the adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from kerf.adapters.aws.ami_families import image_queries
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.mock.faults import Fault, FaultPlan, Shortage
from kerf.adapters.aws.session import Client
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    EC2NodeClassSpec,
    SecurityGroupTerm,
    SubnetTerm,
)

CLUSTER, VERSION = "eks-workshop", "1.34"
ROLE = f"KarpenterNodeRole-{CLUSTER}"
CIDR = "10.100.0.0/16"  # of its services
DISCOVERY = {"karpenter.sh/discovery": CLUSTER}


class Operator:
    """What a person, or AWS itself, does to the account while kerf runs."""

    def __init__(self, shim: Any, queue_url: str, clock: Callable[[], int]) -> None:
        self._shim = shim
        self.queue_url = queue_url
        self._clock = clock
        self._sent = 0

    @property
    def shim(self) -> Any:
        """All of its clients, and its faults (moto_shim.MotoShim)."""
        return self._shim

    @property
    def plan(self) -> FaultPlan:
        return self._shim.plan  # type: ignore[no-any-return]

    @property
    def ec2(self) -> Client:
        return self._shim.ec2

    @property
    def sqs(self) -> Client:
        return self._shim.sqs

    def fault(self, operation: str, kind: str, count: int = 1) -> None:
        """The next `count` calls fail (`faults.Fault`)."""
        self.plan.faults.append(Fault(operation, kind, count))

    def shortage(self, **pool: Any) -> None:
        """Offerings lose their capacity (`faults.Shortage`)."""
        self.plan.shortages.append(Shortage(**pool))

    def send(self, body: str) -> None:
        """Any text on the interruption queue."""
        self._shim.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body)

    def send_event(self, detail_type: str, detail: dict[str, Any], source: str = "aws.ec2", id: str = "") -> str:
        """An EventBridge event on the queue; gives its id."""
        self._sent += 1
        event = id or f"event-{self._sent}"
        time = datetime.fromtimestamp(self._clock() / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        head = {"version": "0", "id": event, "detail-type": detail_type, "source": source, "time": time}
        self.send(json.dumps({**head, "region": self._shim.region, "resources": [], "detail": detail}))
        return event

    def interrupt_spot(self, instance: str) -> str:
        """The two minutes' warning (A-346)."""
        detail = {"instance-id": instance, "instance-action": "terminate"}
        return self.send_event("EC2 Spot Instance Interruption Warning", detail)

    def publish_images(self, version: str) -> None:
        """The images of the aliases for another Kubernetes version."""
        _images(self._shim, version)

    def reclaim(self, instance: str) -> None:
        """End an instance behind kerf's back."""
        self._shim.ec2.terminate_instances(InstanceIds=[instance])


class Environment(Struct, frozen=True):
    """AWS with kerf's adapter on it. `node_classes` may be changed: the cloud reads it anew each time."""

    cloud: AwsCloud
    interruptions: AwsInterruptions
    operator: Operator
    settings: AwsSettings
    node_classes: list[EC2NodeClass]
    restart: Callable[[], AwsCloud]
    """A second adapter on the same account, as after a crash: it remembers nothing."""


@contextmanager
def demo_environment(
    clock: Callable[[], int], region: str = "us-west-2", zones: int = 3, version: str = VERSION
) -> Iterator[Environment]:
    """An account with a VPC, a subnet in each of `zones` zones, a security group, a node role, an EKS cluster, a queue,
    and images for Kubernetes `version`.

    moto keeps one account per process, so one environment can be open at a time. The SDK's pauses between
    retries take no time. Needs the extra `demo` (moto).
    """
    names = [f"{region}{letter}" for letter in "abcdef"[:zones]]
    with ExitStack() as stack:
        stack.enter_context(_no_profile())
        _import_moto(region)
        from kerf.adapters.aws.mock.moto_shim import ACCOUNT, MotoShim

        stack.enter_context(patch("moto.settings.ec2_load_default_amis", return_value=False))
        stack.enter_context(patch("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None)))
        stack.callback(_reset)
        _reset()
        shim = MotoShim(region, names, clock)
        _network(shim.ec2, names)
        _images(shim, version)
        shim.iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
        shim.eks.create_cluster(
            name=CLUSTER,
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/cluster",
            resourcesVpcConfig={},
            kubernetesNetworkConfig={"serviceIpv4Cidr": CIDR},
        )
        queue = shim.sqs.create_queue(QueueName=CLUSTER)["QueueUrl"]
        settings = AwsSettings(
            cluster=CLUSTER,
            region=region,
            facts=ClusterFacts(
                endpoint="https://kerf-demo.invalid",
                ca_bundle="a2VyZg==",
                cidr=CIDR,
                dns="10.100.0.10",
                kubernetes_version=version,
            ),
            interruption_queue=CLUSTER,
        )
        classes = [node_class()]

        def cloud() -> AwsCloud:
            return AwsCloud(shim, settings, lambda: classes, clock)

        yield Environment(
            cloud=cloud(),
            interruptions=AwsInterruptions(shim.sqs, CLUSTER, wait=0),
            operator=Operator(shim, queue, clock),
            settings=settings,
            node_classes=classes,
            restart=cloud,
        )


def node_class(name: str = "default") -> EC2NodeClass:
    """The EC2NodeClass of the getting-started guide."""
    return EC2NodeClass(
        name=name,
        uid=f"uid-{name}",
        generation=1,
        spec=EC2NodeClassSpec(
            subnet_selector_terms=(SubnetTerm(tags=DISCOVERY),),
            security_group_selector_terms=(SecurityGroupTerm(tags=DISCOVERY),),
            ami_selector_terms=(AMITerm(alias="al2023@latest"),),
            role=ROLE,
        ),
    )


@contextmanager
def _no_profile() -> Iterator[None]:
    """Hide the profile and files that the user's shell names: moto opens SDK sessions of its own, which would read
    them."""
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
        yield


def _import_moto(region: str) -> None:
    """Import moto without the type offerings of every region, which take 100 MB and a second."""
    from moto.utilities import utils

    load = utils.load_resource

    def only_here(path: str) -> Any:
        elsewhere = "instance_type_offerings" in path and f"/{region}." not in path
        return [] if elsewhere else load(path)

    with patch.object(utils, "load_resource", only_here):
        from moto.ec2.models import instance_types
    offerings = instance_types.INSTANCE_TYPE_OFFERINGS["availability-zone"]
    if not offerings[region]:  # imported before, for another region
        offerings[region] = load(f"ec2/resources/instance_type_offerings/availability-zone/{region}.json.gz")


def _reset() -> None:
    """An empty account, in each of the services that the environment uses."""
    from moto.backends import get_backend

    for service in ("ec2", "eks", "iam", "sqs", "ssm"):
        get_backend(service).reset()


def _network(ec2: Client, zones: list[str]) -> None:
    def tagged(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in DISCOVERY.items()]}]

    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for index, zone in enumerate(zones):
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{32 * index}.0/19",
            AvailabilityZone=zone,
            TagSpecifications=tagged("subnet"),
        )
    ec2.create_security_group(
        GroupName="nodes", Description="nodes", VpcId=vpc, TagSpecifications=tagged("security-group")
    )


def _images(shim: Any, version: str) -> None:
    """One image for each public parameter of the aliases, under its parameter."""
    for alias in ("al2023@latest", "bottlerocket@latest"):
        for query in image_queries(alias, version):
            arch = "arm64" if "arm64" in query.parameter else "x86_64"
            name = query.parameter.strip("/").replace("/", "-")
            shim.publish_image(query.parameter, name, arch)
