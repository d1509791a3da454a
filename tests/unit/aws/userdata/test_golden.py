"""The user data of each family with each option, as files to look at (A-257…A-272).

Whoever reads user data on a node has its own parser, which reads these files, too: MIME, bash, nodeadm's schema, TOML.
`pytest tests/unit/aws/userdata --golden-update` writes the files again.
"""

from __future__ import annotations

import base64
import email
import email.policy
import re
import shlex
import subprocess
import tomllib
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from msgspec.structs import replace

from kerf.adapters.aws.userdata.user_data import UNREGISTERED, user_data
from tests.support.aws.boots import SHOP
from tests.support.aws.nodeadm import NODE_CONFIG

FOLDER = Path(__file__).parent / "golden"
KUBELET = {
    "clusterDNS": ["10.100.0.53"], "cpuCFSQuota": False, "evictionHard": {"memory.available": "5%"},
    "evictionMaxPodGracePeriod": 60, "evictionSoft": {"memory.available": "10%", "nodefs.available": "15%"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s", "nodefs.available": "2m"},
    "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80,
    "kubeReserved": {"cpu": "200m", "memory": "574Mi"}, "systemReserved": {"cpu": "100m", "memory": "100Mi"},
}  # fmt: skip
MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="OWN"

--OWN
Content-Type: text/cloud-config; charset="us-ascii"

packages: [htop]

--OWN
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo from the archive

--OWN--
"""
YAML = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 8}}}\n"
TOML = """[settings.kernel]
lockdown = "integrity"

[settings.kubernetes]
max-pods = 7
cpu-manager-policy = "static"
unknown-to-kerf = true

[settings.kubernetes.node-labels]
"team" = "ours"
"floor" = "2"
"""
BARE = {"ca_bundle": "", "dns": "", "labels": {}, "taints": (UNREGISTERED,)}
EVERYWHERE: dict[str, dict[str, Any]] = {"plain": {}, "kubelet": {"kubelet": KUBELET}, "bare": BARE}
DISKS: dict[str, dict[str, Any]] = {"raid0": {"raid0": True}}
SIX: dict[str, dict[str, Any]] = {"ipv6": {"dns": "fd00:10:100::a", "cidr": "fd00:10:100::/108"}}
SCRIPTS: dict[str, dict[str, Any]] = {
    "script": {"custom": "#!/bin/bash\necho grüße\r\n"},
    "mime": {"custom": MIME},
    "mime-crlf": {"custom": MIME.replace("\n", "\r\n")},
}
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "AL2": EVERYWHERE | DISKS | SIX | SCRIPTS,
    "AL2023": EVERYWHERE | DISKS | SIX | SCRIPTS | {"yaml": {"custom": YAML}, "comment": {"custom": "# nothing\n"}},
    "Bottlerocket": EVERYWHERE | DISKS | SIX
    | {"toml": {"custom": TOML}, "raid0-new": {"raid0": True, "bind_folders": False}},
    "Windows2022": EVERYWHERE | {"script": {"custom": 'Write-Host "hello"'}},
    "Custom": {"plain": {"custom": "#!/bin/sh\njoin-the-cluster\n"}, "empty": {}},
}  # fmt: skip
CASES = [(family, option) for family, options in OPTIONS.items() for option in options]


def text(family: str, option: str) -> str:
    boot = replace(SHOP, family=family, **OPTIONS[family][option])
    return base64.b64decode(user_data(boot), validate=True).decode()


def parts(family: str, option: str) -> list[EmailMessage]:
    """The parts of the MIME text, as Python's own parser has them."""
    message = email.message_from_bytes(text(family, option).encode(), policy=email.policy.default)
    assert message.get_content_type() == "multipart/mixed"
    found = list(message.iter_parts())
    assert [defect for part in (message, *found) for defect in part.defects] == []
    return [part for part in found if isinstance(part, EmailMessage)]


def content(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def cases(*families: str) -> list[tuple[str, str]]:
    return [case for case in CASES if case[0] in families]


@pytest.mark.parametrize(("family", "option"), CASES)
def test_user_data_is_as_its_file(family: str, option: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / family / f"{option}.txt"
    if request.config.getoption("--golden-update"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text(family, option).encode())
    assert file.read_bytes().decode() == text(family, option)


def test_each_file_is_of_a_case() -> None:
    assert {(file.parent.name, file.stem) for file in FOLDER.rglob("*.txt")} == set(CASES)


@pytest.mark.parametrize(("family", "option"), cases("AL2"))
def test_a_262_bash_reads_the_last_part_and_bootstrap_gets_its_arguments(family: str, option: str) -> None:
    script = content(parts(family, option)[-1])
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=True, capture_output=True).stderr == ""
    command = shlex.split(script.split("\n", 2)[2].replace("\\\n", ""))
    assert command[:2] == ["/etc/eks/bootstrap.sh", "shop"]
    flags = dict(zip(command[2::2], command[3::2], strict=True))
    assert flags["--apiserver-endpoint"] == SHOP.endpoint
    extra = shlex.split(flags["--kubelet-extra-args"])
    arguments = dict(argument.removeprefix("--").split("=", 1) for argument in extra)
    assert arguments["max-pods"] == "29"
    assert arguments["register-with-taints"].endswith("karpenter.sh/unregistered:NoExecute")
    assert flags.get("--local-disks") == ("raid0" if option == "raid0" else None)
    assert flags.get("--ip-family") == ("ipv6" if option == "ipv6" else None)


@pytest.mark.parametrize(("family", "option"), cases("AL2023"))
def test_a_264_the_last_part_is_a_node_config_by_nodeadms_schema(family: str, option: str) -> None:
    configs = [part for part in parts(family, option) if part.get_content_type() == "application/node.eks.aws"]
    documents = [yaml.safe_load(content(part)) for part in configs]
    for document in documents:
        if document is not None:
            jsonschema.Draft202012Validator(NODE_CONFIG).validate(document)
    spec = documents[-1]["spec"]
    assert (spec["cluster"]["name"], spec["kubelet"]["config"]["maxPods"]) == ("shop", 29)
    assert len(documents) == (2 if option in ("yaml", "comment") else 1)


@pytest.mark.parametrize(("family", "option"), [case for case in cases("AL2", "AL2023") if "mime" in case[1]])
def test_a_263_the_parts_of_an_archive_come_first(family: str, option: str) -> None:
    first, second, _ = parts(family, option)
    assert [first.get_content_type(), second.get_content_type()] == ["text/cloud-config", "text/x-shellscript"]
    assert yaml.safe_load(content(first)) == {"packages": ["htop"]}
    assert content(second).startswith("#!/bin/bash\necho from the archive")


@pytest.mark.parametrize(("family", "option"), cases("Bottlerocket"))
def test_a_267_toml_is_read_as_settings(family: str, option: str) -> None:
    settings = tomllib.loads(text(family, option))["settings"]
    kubernetes = settings["kubernetes"]
    assert (kubernetes["cluster-name"], kubernetes["max-pods"]) == ("shop", 29)
    assert kubernetes["node-taints"]["karpenter.sh/unregistered"] == [":NoExecute"]
    assert ("bootstrap-commands" in settings) == option.startswith("raid0")
    if option == "toml":
        assert settings["kernel"] == {"lockdown": "integrity"}
        assert "unknown-to-kerf" not in kubernetes
        assert kubernetes["node-labels"]["floor"] == "2"


@pytest.mark.parametrize(("family", "option"), cases("Windows2022"))
def test_a_271_powershell_stands_in_its_tags_and_quotes_are_closed(family: str, option: str) -> None:
    found = re.fullmatch(r"<powershell>\n(.*)\n</powershell>", text(family, option), re.DOTALL)
    assert found is not None
    call = found[1].split("\n")[-1]
    assert call.startswith("& $EKSBootstrapScriptFile -EKSClusterName 'shop'")
    flags = dict(re.findall(r"-(\w+) '([^']*)'", call))
    assert re.sub(r"'[^']*'", "", call).count("'") == 0
    assert flags["APIServerEndpoint"] == SHOP.endpoint
    assert "--max-pods=29" in flags["KubeletExtraArgs"]


def test_a_272_custom_is_the_users_alone() -> None:
    assert (text("Custom", "plain"), text("Custom", "empty")) == ("#!/bin/sh\njoin-the-cluster\n", "")
