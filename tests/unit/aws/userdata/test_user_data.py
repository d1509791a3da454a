"""User data for each AMI family (A-257…A-272, A-453…A-457)."""

import base64
import tomllib
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.bottlerocket import binds_folders
from kerf.adapters.aws.userdata.user_data import UNREGISTERED, node_labels, node_taints, user_data
from kerf.engine.errors import InputError
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedAMI,
)
from kerf.engine.model.kubernetes.pods import Taint
from tests.support.aws.boots import SHOP

BOOT = replace(
    SHOP, family="AL2", endpoint="https://api", ca_bundle="Y2E=", labels={"a": "1", "b": "2"},
    taints=(Taint("dedicated", "NoSchedule", "web"), UNREGISTERED),
)  # fmt: skip


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


def test_a_264_an_empty_list_of_dns_addresses_is_none() -> None:
    """Its pods would ask the DNS of the VPC, which knows no Service."""
    config = node_config(replace(BOOT, family="AL2023", kubelet={"clusterDNS": []}))["spec"]["kubelet"]["config"]
    assert config["clusterDNS"] == [BOOT.dns]


@pytest.mark.parametrize(
    "value",
    ["y", "N", "1e3", "12e+4", "0o17", "0X1F", "08", "012345678901", "1_000", "+.5", "2026-1-1", "true", "null"],
)
def test_a_264_a_text_is_one_to_nodeadm_too(value: str) -> None:
    """Go's YAML reads more texts as truth, numbers and times than PyYAML: nodeadm would refuse the whole document, and
    the node never joined."""
    boot = replace(BOOT, family="AL2023", taints=(Taint("a", "NoSchedule", value),))
    assert f"value: '{value}'\n" in parts(boot)[-1][1]


@pytest.mark.parametrize("value", ["web", "5%", "1m30s", "100Mi", "v1", "yes-sir", "1.2.3.4"])
def test_a_264_other_texts_stand_as_they_are(value: str) -> None:
    boot = replace(BOOT, family="AL2023", taints=(Taint("a", "NoSchedule", value),))
    assert f"value: {value}\n" in parts(boot)[-1][1]


@pytest.mark.parametrize("family", ["AL2", "AL2023"])
def test_a_453_a_script_is_the_first_part(family: str) -> None:
    first, last = parts(replace(BOOT, family=family, custom="echo hello"))
    assert first == ('Content-Type: text/x-shellscript; charset="us-ascii"', "echo hello")
    assert last[1] != "echo hello"


@pytest.mark.parametrize(
    "custom",
    [
        "apiVersion: node.eks.aws/v1alpha1\nspec: {kubelet: {config: {maxPods: 42}}}",
        "# only a comment",
        "---\nkind: NodeConfig\n---\nkind: NodeConfig",
    ],
)
def test_a_454_a_455_a_475_yaml_is_an_earlier_node_config(custom: str) -> None:
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


OPEN = 'Content-Type: multipart/mixed; boundary="//"\n\n--//\nContent-Type: text/x-shellscript\n\necho hi\n'


@pytest.mark.parametrize("end", ["--//--\n", "--//--", "--//\n", "--//", "--//--\n\nafter the end\n"])
@pytest.mark.parametrize("family", ["AL2", "AL2023"])
def test_a_263_an_archive_ends_with_a_boundary_of_either_kind(family: str, end: str) -> None:
    """A page of Karpenter shows one that is not closed: it got a part without a header, which no boot can read."""
    found = parts(replace(BOOT, family=family, custom=OPEN + end))
    assert [header for header, _ in found[:-1]] == ["Content-Type: text/x-shellscript"]
    assert found[0][1] == "echo hi"


@pytest.mark.parametrize("end", ["", "--/", "--//\nContent-Type: text/plain\n\nhalf"])
def test_a_263_an_archive_that_breaks_off_is_refused(end: str) -> None:
    with pytest.raises(InputError, match="KERF521"):
        user_data(replace(BOOT, custom=OPEN + end))


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


def test_an_unknown_family_is_refused_rather_than_booted_wrongly() -> None:
    with pytest.raises(InputError, match="KERF520"):
        user_data(replace(BOOT, family="Ubuntu"))


# ── Bottlerocket ───────────────────────────────────────────────────────────────────────────────────────────

BOTTLEROCKET = replace(BOOT, family="Bottlerocket")


def settings(boot: Boot) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text(boot))["settings"]
    return found


def test_a_267_bottlerockets_settings() -> None:
    kubelet = {
        "systemReserved": {"cpu": "100m"}, "evictionHard": {"memory.available": "5%"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"}, "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 85, "cpuCFSQuota": False,
    }  # fmt: skip
    taints = (Taint("dedicated", "NoSchedule", "web"), Taint("dedicated", "NoExecute"), UNREGISTERED)
    assert settings(replace(BOTTLEROCKET, kubelet=kubelet, taints=taints)) == {
        "kubernetes": {
            "api-server": "https://api",
            "cluster-certificate": "Y2E=",
            "cluster-name": "shop",
            "cluster-dns-ip": "10.100.0.10",
            "max-pods": 29,
            "node-labels": {"a": "1", "b": "2"},
            "node-taints": {
                "dedicated": ["web:NoSchedule", ":NoExecute"],
                "karpenter.sh/unregistered": [":NoExecute"],
            },
            "system-reserved": {"cpu": "100m"},
            "eviction-hard": {"memory.available": "5%"},
            "eviction-soft-grace-period": {"memory.available": "1m30s"},
            "eviction-max-pod-grace-period": 60,
            "image-gc-high-threshold-percent": "85",
            "cpu-cfs-quota-enforced": False,
        }
    }


def test_a_267_a_456_the_users_own_settings_stay_where_kerf_has_none() -> None:
    custom = """
    [settings.host-containers.admin]
    enabled = true
    superpowered = "say \\"yes\\""

    [settings.kubernetes]
    cluster-name = "another"
    log-level = 3
    unheard-of = true
    allowed-unsafe-sysctls = ["net.core.somaxconn", "kernel.msg*"]

    [settings.kubernetes.node-labels]
    "example.com/own" = "yes"
    a = "theirs"

    [settings.kubernetes.node-taints]
    own = ["x:NoSchedule"]
    """
    found = settings(replace(BOTTLEROCKET, custom=custom))
    assert found["host-containers"] == {"admin": {"enabled": True, "superpowered": 'say "yes"'}}
    kubernetes = found["kubernetes"]
    assert kubernetes["node-labels"] == {"example.com/own": "yes", "a": "1", "b": "2"}
    assert (kubernetes["cluster-name"], kubernetes["log-level"]) == ("shop", 3)
    assert "unheard-of" not in kubernetes
    assert "own" not in kubernetes["node-taints"]
    assert kubernetes["allowed-unsafe-sysctls"] == ["net.core.somaxconn", "kernel.msg*"]


@pytest.mark.parametrize(
    "value",
    [
        "{a = 1, b = [1, 2]}",
        "[{x = 1}, {y = 'z'}]",
        '"\\u007f\\n"',
        "1.5",
        "inf",
        "-7",
        "2026-11-22T03:04:05Z",
        "''",
        "'\u00e9\t'",
        "[]",
    ],
)
def test_what_toml_can_say_comes_out_as_it_went_in(value: str) -> None:
    custom = f"[settings.motd]\nkey = {value}\n'a key' = 1\n[settings.empty]\n"
    found = tomllib.loads(text(replace(BOTTLEROCKET, custom=custom)))["settings"]
    assert {name: found[name] for name in ("motd", "empty")} == tomllib.loads(custom)["settings"]


@pytest.mark.parametrize("custom", ["not toml", "settings = 1", "[settings]\nkubernetes = 1"])
def test_user_data_that_is_no_toml_is_refused(custom: str) -> None:
    with pytest.raises(InputError, match="KERF521"):
        user_data(replace(BOTTLEROCKET, custom=custom))


def test_a_269_instance_storage() -> None:
    custom = "[settings.bootstrap-commands.own]\ncommands = [['apiclient', 'get']]\nmode = 'once'\n"
    commands = settings(replace(BOTTLEROCKET, raid0=True, custom=custom))["bootstrap-commands"]
    assert commands["own"]["mode"] == "once"
    storage = commands["000-mount-instance-storage"]
    assert (storage["mode"], storage["essential"]) == ("always", True)
    assert storage["commands"][0] == ["apiclient", "ephemeral-storage", "init"]
    assert storage["commands"][1][3:] == ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
    newer = settings(replace(BOTTLEROCKET, raid0=True, bind_folders=False))["bootstrap-commands"]
    assert newer["000-mount-instance-storage"]["commands"][1] == ["apiclient", "ephemeral-storage", "bind"]


@pytest.mark.parametrize(
    ("term", "image", "named"),
    [
        (AMITerm(alias="bottlerocket@latest"), "", False),
        (AMITerm(alias="bottlerocket@v1.45.2"), "", True),
        (AMITerm(alias="bottlerocket@1.46.0"), "", False),
        (AMITerm(name="bottlerocket-aws-k8s-1.34-x86_64-v1.50.0-*"), "", False),
        (AMITerm(id="ami-1"), "own-v1.47.1-build", False),
        (AMITerm(tags={"a": "b"}), "bottlerocket-aws-k8s-1.34-x86_64-v1.19.0-1a2b", True),
        (AMITerm(tags={"a": "b"}), "nothing-to-see-v9.9.9", True),
    ],
)
def test_a_269_the_version_says_whether_folders_are_named(term: AMITerm, image: str, named: bool) -> None:
    node_class = EC2NodeClass(
        "default",
        EC2NodeClassSpec(ami_selector_terms=(term,)),
        EC2NodeClassStatus(amis=(ResolvedAMI("ami-1", image),) if image else ()),
    )
    assert binds_folders(node_class) is named


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


@pytest.mark.parametrize("toml", ["a = hunter2", "x = {hunter2 = 1, hunter2 = 2}", "[hunter2]\n[hunter2]", "hunter2"])
def test_a_refusal_of_toml_does_not_show_what_it_holds(toml: str) -> None:
    from kerf.adapters.aws.userdata.bottlerocket import _given

    with pytest.raises(InputError, match="wrong at") as refused:
        _given(toml)
    assert "hunter2" not in f"{refused.value} {refused.value.__cause__}"


@pytest.mark.parametrize("value", ["!!bool maybe", "!!int ''", "!!float ''", "!!timestamp x", "2001-99-99", "9" * 5000])
def test_yaml_with_a_value_that_is_none_is_refused(value: str) -> None:
    """PyYAML's own mistake ended the reconciliation as a defect of kerf (KERF605)."""
    with pytest.raises(InputError) as refused:
        user_data(replace(BOOT, family="AL2023", custom=f"a: {value}"))
    assert (refused.value.code, refused.value.where) == ("KERF521", "spec.userData")


@pytest.mark.parametrize(
    "toml",
    [
        "a = " + "[" * 3000 + "]" * 3000,
        "a = " + "{b = " * 3000 + "1" + "}" * 3000,
        "[" + ".".join("a" * 3000) + "]\nb = 1",
        "a = " + "9" * 5000,
        "a = 0x" + "f" * 5000,
    ],
    ids=["lists", "tables", "dotted", "digits", "hexadecimal digits"],
)
def test_toml_beyond_what_can_be_read_is_refused(toml: str) -> None:
    with pytest.raises(InputError) as refused:
        user_data(replace(BOOT, family="Bottlerocket", custom=toml))
    assert (refused.value.code, refused.value.where) == ("KERF521", "spec.userData")


@pytest.mark.parametrize("version", ["v1.²", "1.٤٧", "v1." + "9" * 5000])
def test_a_version_of_other_digits_is_not_known(version: str) -> None:
    """It ended as a defect: isdigit() takes digits that int() does not, and int() has a limit."""
    alias = AMITerm(alias=f"bottlerocket@{version}")
    assert binds_folders(EC2NodeClass("c", EC2NodeClassSpec(ami_selector_terms=(alias,))))
