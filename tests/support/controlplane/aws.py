"""An AWS on 127.0.0.1 for `kerf run --provider aws`, and what boots on its instances."""

from __future__ import annotations

import base64
import email
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.mock.environment import CLUSTER, DISCOVERY, ROLE, Operator, demo_environment
from kerf.adapters.aws.mock.moto_shim import MotoShim
from kerf.adapters.aws.tags import tag_map
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import node_pool
from tests.support.servers.aws_endpoint import AwsEndpoint

BOOTS = 0.3  # seconds between looks for instances that have become running
SHUTDOWN = 2_000  # ms for which instances shut down; each test waits for the end of some
MERGE = "application/merge-patch+json"


class Aws:
    """The account of `demo_environment`, served. `operator` does to it what people and AWS do; instances join the plane
    as nodes by what their user data says, while `joining`."""

    def __init__(self, plane: ControlPlane, operator: Operator) -> None:
        self.operator = operator
        self.shim: MotoShim = operator.shim
        self.shim.shutdown = SHUTDOWN
        self.endpoint = AwsEndpoint(self.shim)
        self.joining = True
        self.nodes: dict[str, str] = {}  # instance → its Node's name
        self._plane = plane
        self._stopping = threading.Event()

    def start(self) -> None:
        self.endpoint.start()
        threading.Thread(target=self._boot, name="kubelets", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        self.endpoint.stop()

    def instances(self, *states: str, tagged: str = CLUSTER) -> list[dict[str, Any]]:
        """Those of the cluster in these states (default: pending or running), oldest first."""
        wanted = [
            {"Name": "tag:eks:eks-cluster-name", "Values": [tagged]},
            {"Name": "instance-state-name", "Values": list(states or ("pending", "running"))},
        ]
        with self.endpoint.locked():
            answer = self.shim.ec2.describe_instances(Filters=wanted)
        found = [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]
        return sorted(found, key=lambda each: (each["LaunchTime"], each["InstanceId"]))

    def calls(self, operation: str) -> int:
        return self.endpoint.calls.count(operation)

    # ── kubelets ────────────────────────────────────────────────────────────────────────────────────────────

    def _boot(self) -> None:
        while not self._stopping.wait(BOOTS):
            if self.joining:
                for instance in self.instances("running"):
                    if instance["InstanceId"] not in self.nodes:
                        self._join(instance)

    def _join(self, instance: dict[str, Any]) -> None:
        """The Node that a kubelet with this user data makes; KWOK keeps it alive from there on."""
        config = node_config(self.user_data(instance["InstanceId"]))
        name = str(instance["PrivateDnsName"])
        kubelet = config["spec"]["kubelet"]
        facts = tables().types[instance["InstanceType"]]
        amounts = {
            "cpu": str(facts.vcpus),
            "memory": f"{facts.memory * 95 // 100}Mi",
            "ephemeral-storage": "20Gi",
            "pods": str(kubelet["config"]["maxPods"]),
        }
        zone = instance["Placement"]["AvailabilityZone"]
        marks = {
            **labels_of(kubelet),
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": facts.arch,
            "node.kubernetes.io/instance-type": instance["InstanceType"],
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": zone[:-1],
        }
        status, said = self._plane.request(
            "POST",
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": marks, "annotations": {"kwok.x-k8s.io/node": "fake"}},
                "spec": {
                    "providerID": f"aws:///{zone}/{instance['InstanceId']}",
                    "taints": kubelet["config"].get("registerWithTaints", []),
                },
                "status": {"capacity": amounts, "allocatable": amounts},
            },
        )
        assert status in (201, 409), said
        self.nodes[instance["InstanceId"]] = name

    def user_data(self, instance: str) -> str:
        """As the instance sees it."""
        with self.endpoint.locked():
            answer = self.shim.ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        return base64.b64decode(answer["UserData"]["Value"]).decode()


def node_config(user_data: str) -> dict[str, Any]:
    """nodeadm's document, the last of the parts (A-266)."""
    parts = [part for part in email.message_from_string(user_data).walk() if not part.is_multipart()]
    assert parts[-1].get_content_type() == "application/node.eks.aws"
    found: dict[str, Any] = yaml.safe_load(str(parts[-1].get_payload()))
    return found


def labels_of(kubelet: dict[str, Any]) -> dict[str, str]:
    (flag,) = kubelet["flags"]
    pairs = str(flag).removeprefix('--node-labels="').removesuffix('"').split(",")
    return dict(pair.split("=", 1) for pair in pairs)


@contextmanager
def aws_of(plane: ControlPlane) -> Iterator[Aws]:
    """One at a time: moto keeps one account a process."""
    told = plane.request("GET", "/version")[1]
    version = f"{told['major']}.{told['minor']}"
    with demo_environment(lambda: time.time_ns() // 1_000_000, version=version) as environment:
        made = Aws(plane, environment.operator)
        made.start()
        try:
            yield made
        finally:
            made.stop()
        assert made.endpoint.problems == [], "AWS would refuse these calls"


def ec2_node_class(name: str = "default", **spec: Any) -> dict[str, Any]:
    """The EC2NodeClass of the getting-started guide."""
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": DISCOVERY}],
            "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
            "role": ROLE,
            **spec,
        },
    }


def ec2_node_pool(name: str = "default", node_class: str = "default", **spec: Any) -> dict[str, Any]:
    """On demand, from the families c, m and r from the fifth generation on, as the guide's."""
    pool = node_pool(name, **spec)
    template = pool["spec"]["template"]["spec"]
    template["nodeClassRef"] = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class}
    template["requirements"] += [
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
    ]
    return pool


def tags_of(instance: dict[str, Any]) -> dict[str, str]:
    return tag_map(instance.get("Tags"))
