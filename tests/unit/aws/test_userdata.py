"""User data for each AMI family (A-257…A-272, A-453…A-457)."""

import base64
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kerf.adapters.aws.userdata import UNREGISTERED, Boot, node_labels, node_taints, user_data
from kerf.engine.errors import InputError
from kerf.engine.model.pods import Taint

BOOT = Boot(
    family="AL2",
    cluster="shop",
    endpoint="https://api",
    ca_bundle="Y2E=",
    cidr="10.100.0.0/16",
    dns="10.100.0.10",
    max_pods=29,
    labels={"a": "1", "b": "2"},
    taints=(Taint("dedicated", "NoSchedule", "web"), UNREGISTERED),
)


def text(boot: Boot) -> str:
    return base64.b64decode(user_data(boot)).decode()


def parts(boot: Boot) -> list[tuple[str, str]]:
    """Header and body of each MIME part."""
    whole = text(boot)
    assert whole.startswith('MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n')
    assert whole.endswith("\n--//--\n")
    assert "\r" not in whole
    found = whole.removesuffix("--//--\n").split("--//\n")[1:]
    return [(header, body.strip()) for header, _, body in (part.partition("\n\n") for part in found)]


def test_a_262_al2() -> None:
    ((header, script),) = parts(BOOT)
    assert header == 'Content-Type: text/x-shellscript; charset="us-ascii"'
    lines = script.split("\n")
    assert lines[0] == "#!/bin/bash -xe"
    assert lines[2].startswith(
        "/etc/eks/bootstrap.sh 'shop' --apiserver-endpoint 'https://api' --b64-cluster-ca 'Y2E='"
    )
    assert lines[3:] == [
        "--dns-cluster-ip '10.100.0.10' \\",
        "--use-max-pods false \\",
        '--kubelet-extra-args \'--node-labels="a=1,b=2" --register-with-taints='
        '"dedicated=web:NoSchedule,karpenter.sh/unregistered:NoExecute" --max-pods=29\'',
    ]


def test_a_262_al2_ipv6_and_raid0() -> None:
    ((_, script),) = parts(replace(BOOT, dns="fd00::a", raid0=True))
    assert "--ip-family ipv6 \\\n--dns-cluster-ip 'fd00::a'" in script
    assert script.endswith("--local-disks raid0")


def test_a_260_kubelet_arguments_in_their_order() -> None:
    kubelet = {
        "podsPerCore": 4,
        "systemReserved": {"memory": "100Mi", "cpu": "100m"},
        "kubeReserved": {"cpu": "200m"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"memory.available": "10%"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 50,
        "cpuCFSQuota": False,
    }
    ((_, script),) = parts(replace(BOOT, kubelet=kubelet, labels={}, taints=()))
    arguments = script.partition("--kubelet-extra-args '")[2].removesuffix("'")
    assert arguments.split(" ") == [
        "--max-pods=29",
        "--pods-per-core=4",
        '--system-reserved="cpu=100m,memory=100Mi"',
        '--kube-reserved="cpu=200m"',
        '--eviction-hard="memory.available<5%"',
        '--eviction-soft="memory.available<10%"',
        '--eviction-soft-grace-period="memory.available=1m30s"',
        "--eviction-max-pod-grace-period=60",
        "--image-gc-high-threshold=80",
        "--image-gc-low-threshold=50",
        "--cpu-cfs-quota=false",
    ]


def node_config(boot: Boot) -> dict[str, Any]:
    header, body = parts(boot)[-1]
    assert header == "Content-Type: application/node.eks.aws"
    document: dict[str, Any] = yaml.safe_load(body)
    return document


def test_a_264_al2023_keeps_every_kubelet_key() -> None:
    boot = replace(BOOT, family="AL2023", kubelet={"maxPods": 10, "registryPullQPS": 7, "clusterDNS": ["1.2.3.4"]})
    config = node_config(boot)
    assert config["spec"]["kubelet"]["config"] == {
        "maxPods": 29,
        "registryPullQPS": 7,
        "clusterDNS": ["1.2.3.4"],
        "registerWithTaints": [
            {"key": "dedicated", "effect": "NoSchedule", "value": "web"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ],
    }
    assert "instance" not in config["spec"]
    raid = node_config(replace(boot, raid0=True))
    assert raid["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
def test_a_453_a_script_is_the_first_part(family: str) -> None:
    first, last = parts(replace(BOOT, family=family, custom="echo hello"))
    assert first == ('Content-Type: text/x-shellscript; charset="us-ascii"', "echo hello")
    assert last[1] != "echo hello"


@pytest.mark.parametrize(
    "custom", ["apiVersion: node.eks.aws/v1alpha1\nspec: {kubelet: {config: {maxPods: 42}}}", "# only a comment"]
)
def test_a_454_a_455_yaml_is_an_earlier_node_config(custom: str) -> None:
    first, last = parts(replace(BOOT, family="AL2023", custom=custom))
    assert first == ("Content-Type: application/node.eks.aws", custom)
    assert yaml.safe_load(last[1])["spec"]["kubelet"]["config"]["maxPods"] == 29


def test_a_263_parts_of_a_mime_archive_are_copied_with_their_headers() -> None:
    archive = (
        'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="B"\r\n\r\n--B\r\n'
        "Content-Type: text/cloud-config\r\nX-Own: 1\r\n\r\n#cloud-config\r\n--B\r\n"
        "Content-Type: text/x-shellscript\r\n\r\necho hi\r\n--B--\r\n"
    )
    found = parts(replace(BOOT, custom=archive))
    assert found[:2] == [
        ("Content-Type: text/cloud-config\nX-Own: 1", "#cloud-config"),
        ("Content-Type: text/x-shellscript", "echo hi"),
    ]
    assert len(found) == 3


def test_a_263_mime_that_is_not_multipart_is_refused() -> None:
    with pytest.raises(InputError, match="KERF521"):
        user_data(replace(BOOT, custom="Content-Type: text/plain\n\nhello"))


def test_a_271_windows() -> None:
    lines = text(replace(BOOT, family="Windows2022", custom="Write-Host hi")).split("\n")
    assert (lines[0], lines[1], lines[-1]) == ("<powershell>", "Write-Host hi", "</powershell>")
    assert lines[3].startswith("& $EKSBootstrapScriptFile -EKSClusterName 'shop' -APIServerEndpoint 'https://api'")
    assert lines[3].endswith("-DNSClusterIP '10.100.0.10'")


def test_a_272_custom_is_passed_on_unchanged() -> None:
    assert text(replace(BOOT, family="Custom", custom="#!ipxe\r\n")) == "#!ipxe\r\n"


def test_bottlerocket_is_refused_rather_than_booted_wrongly() -> None:
    with pytest.raises(InputError, match="KERF520"):
        user_data(replace(BOOT, family="Bottlerocket"))


def test_a_258_a_457_labels_that_a_kubelet_may_not_set_are_left_out() -> None:
    claim = {
        "team": "a",
        "topology.kubernetes.io/zone": "z",
        "node.kubernetes.io/instance-type": "t",
        "kubernetes.io/arch": "amd64",
        "x.k8s.io/y": "1",
        "a.node-restriction.kubernetes.io/b": "1",
        "karpenter.k8s.aws/instance-cpu": "2",
        "notkubernetes.io/kept": "1",
    }
    assert node_labels(claim, "spot", "AL2023") == {
        "karpenter.k8s.aws/instance-cpu": "2",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/do-not-sync-taints": "true",
        "notkubernetes.io/kept": "1",
        "team": "a",
    }
    assert "karpenter.sh/do-not-sync-taints" not in node_labels(claim, "spot", "Custom")


def test_a_259_the_unregistered_taint_comes_last_and_once() -> None:
    own = Taint("karpenter.sh/unregistered", "NoExecute", "mine")
    assert node_taints(()) == (UNREGISTERED,)
    assert node_taints((Taint("a", "NoSchedule"),)) == (Taint("a", "NoSchedule"), UNREGISTERED)
    assert node_taints((own, Taint("a", "NoSchedule"))) == (own, Taint("a", "NoSchedule"))
