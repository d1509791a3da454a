"""User data: what an instance is told at boot (A-257…A-272). Pure, except that a bad custom part raises
`InputError`.

MIME for AL2 and AL2023, PowerShell for Windows, TOML for Bottlerocket; Custom is the user's alone.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from email import message_from_string
from email.errors import CloseBoundaryNotFoundDefect
from ipaddress import IPv4Address
from typing import Any

import yaml

from kerf.adapters.aws.userdata import bottlerocket
from kerf.adapters.aws.userdata.boot import Boot, cluster_dns
from kerf.engine.errors import InputError
from kerf.engine.model import labels
from kerf.engine.model.kubernetes.pods import Taint

_NOT_SELF_SET = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_SHELL = 'text/x-shellscript; charset="us-ascii"'
_NODE_CONFIG = "application/node.eks.aws"
_LOG = "exec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1"
_NO_TEXT_TO_GO = re.compile(
    r"[yYnN]|[-+]?0[bBoOxX][0-9a-fA-F_]+|[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"
)
"""Texts that nodeadm's YAML takes for truth, a number or a time, where they stand without quotes; PyYAML knows some."""
UNREGISTERED = Taint(labels.UNREGISTERED_TAINT, "NoExecute")


def user_data(boot: Boot) -> str:
    """Base64, as a launch template takes it. Raises `InputError` KERF520 or KERF521."""
    match boot.family:
        case "AL2023":
            text = _mime([*_custom_parts(boot.custom, yaml_too=True), (_NODE_CONFIG, _node_config(boot))])
        case "AL2":
            text = _mime([*_custom_parts(boot.custom, yaml_too=False), (_SHELL, _bootstrap(boot))])
        case "Custom":
            text = boot.custom
        case family if family.startswith("Windows"):
            text = _powershell(boot)
        case "Bottlerocket":
            text = bottlerocket.settings(boot)
        case _:
            raise InputError(
                f"kerf writes no user data for {boot.family} yet",
                where="spec.amiFamily",
                hint="Use a family that EC2NodeClasses have, or Custom with user data that joins the node by itself",
                code="KERF520",
            )
    return base64.b64encode(text.encode()).decode()


def node_labels(claim_labels: Mapping[str, str], capacity_type: str, family: str) -> dict[str, str]:
    """The labels that a kubelet may set on its own node, sorted (A-258)."""
    wanted = {**claim_labels, labels.CAPACITY_TYPE: capacity_type}
    if family != "Custom":
        wanted[labels.DO_NOT_SYNC_TAINTS] = "true"
    return {key: value for key, value in sorted(wanted.items()) if not _reserved(key)}


def node_taints(claim_taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """A node's first taints: the claim's, and `karpenter.sh/unregistered` (A-259)."""
    known = any(taint.same(UNREGISTERED) for taint in claim_taints)
    return tuple(claim_taints) if known else (*claim_taints, UNREGISTERED)


def _reserved(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == d or domain.endswith("." + d) for d in _NOT_SELF_SET)


# ── AL2023 ─────────────────────────────────────────────────────────────────────────────────────────────────


def _node_config(boot: Boot) -> str:
    """The NodeConfig of AL2023: the kubelet's own document with what kerf decides in it (A-264)."""
    config: dict[str, Any] = {**boot.kubelet, "maxPods": boot.max_pods}
    if boot.dns and not config.get("clusterDNS"):
        config["clusterDNS"] = [boot.dns]
    if boot.taints:
        config["registerWithTaints"] = [
            {"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})} for t in boot.taints
        ]
    kubelet: dict[str, Any] = {"config": config}
    if boot.labels:
        kubelet["flags"] = [f'--node-labels="{_pairs(boot.labels)}"']
    spec: dict[str, Any] = {
        "cluster": {
            "name": boot.cluster,
            "apiServerEndpoint": boot.endpoint,
            "certificateAuthority": boot.ca_bundle,
            "cidr": boot.cidr,
        },
        "kubelet": kubelet,
    }
    if boot.raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    return "# made by kerf\n" + yaml.dump(document, Dumper=_Dumper, sort_keys=True, width=1 << 20)


class _Dumper(yaml.SafeDumper):
    """Writes texts so that nodeadm reads them as texts."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _NO_TEXT_TO_GO.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


# ── AL2 and Windows ────────────────────────────────────────────────────────────────────────────────────────


def _bootstrap(boot: Boot) -> str:
    """The shell script that calls EKS' bootstrap.sh on AL2 (A-262)."""
    dns = cluster_dns(boot)
    arguments = [f"/etc/eks/bootstrap.sh '{boot.cluster}' --apiserver-endpoint '{boot.endpoint}'"]
    if boot.ca_bundle:
        arguments[0] += f" --b64-cluster-ca '{boot.ca_bundle}'"
    if dns and not _is_ipv4(dns):
        arguments.append("--ip-family ipv6")
    if dns:
        arguments.append(f"--dns-cluster-ip '{dns}'")
    arguments.append("--use-max-pods false")
    arguments.append(f"--kubelet-extra-args '{_extra_arguments(boot)}'")
    if boot.raid0:
        arguments.append("--local-disks raid0")
    return "#!/bin/bash -xe\n" + _LOG + "\n" + " \\\n".join(arguments) + "\n"


def _powershell(boot: Boot) -> str:
    """The script that calls EKS' bootstrap on Windows (A-271)."""
    call = f"& $EKSBootstrapScriptFile -EKSClusterName '{boot.cluster}' -APIServerEndpoint '{boot.endpoint}'"
    if boot.ca_bundle:
        call += f" -Base64ClusterCA '{boot.ca_bundle}'"
    call += f" -KubeletExtraArgs '{_extra_arguments(boot)}'"
    if dns := cluster_dns(boot):
        call += f" -DNSClusterIP '{dns}'"
    script = r'[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"'
    lines = ["<powershell>", *([boot.custom] if boot.custom else []), script, call, "</powershell>"]
    return "\n".join(lines)


def _extra_arguments(boot: Boot) -> str:
    """The arguments of the kubelet; maps are sorted (A-260)."""
    kubelet = boot.kubelet
    taints = ",".join(f"{t.key}{'=' + t.value if t.value else ''}:{t.effect}" for t in boot.taints)
    arguments: list[tuple[str, str]] = [
        ("node-labels", _quoted(_pairs(boot.labels))),
        ("register-with-taints", _quoted(taints)),
        ("max-pods", str(boot.max_pods)),
        ("pods-per-core", _plain(kubelet.get("podsPerCore"))),
        ("system-reserved", _quoted(_pairs(kubelet.get("systemReserved", {})))),
        ("kube-reserved", _quoted(_pairs(kubelet.get("kubeReserved", {})))),
        ("eviction-hard", _quoted(_pairs(kubelet.get("evictionHard", {}), "<"))),
        ("eviction-soft", _quoted(_pairs(kubelet.get("evictionSoft", {}), "<"))),
        ("eviction-soft-grace-period", _quoted(_pairs(kubelet.get("evictionSoftGracePeriod", {})))),
        ("eviction-max-pod-grace-period", _plain(kubelet.get("evictionMaxPodGracePeriod"))),
        ("image-gc-high-threshold", _plain(kubelet.get("imageGCHighThresholdPercent"))),
        ("image-gc-low-threshold", _plain(kubelet.get("imageGCLowThresholdPercent"))),
        ("cpu-cfs-quota", _plain(kubelet.get("cpuCFSQuota"))),
    ]
    return " ".join(f"--{name}={value}" for name, value in arguments if value)


def _pairs(values: Mapping[str, Any], sign: str = "=") -> str:
    return ",".join(f"{key}{sign}{value}" for key, value in sorted(values.items()))


def _quoted(text: str) -> str:
    return f'"{text}"' if text else ""


def _plain(value: Any) -> str:
    return "" if value is None else json.dumps(value)


def _is_ipv4(address: str) -> bool:
    try:
        IPv4Address(address)
    except ValueError:
        return False
    return True


# ── MIME ───────────────────────────────────────────────────────────────────────────────────────────────────


def _mime(parts: Sequence[tuple[str, str]]) -> str:
    """A MIME archive: each part has one or more header lines, a blank line and its text, all with line feeds only
    (A-263)."""
    text = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
    for content_type, body in parts:
        header = content_type if "\n" in content_type else f"Content-Type: {content_type}"
        text += f"--//\n{header.rstrip()}\n\n{body.rstrip()}\n\n"
    return (text + "--//--\n").replace("\r", "")


def _custom_parts(custom: str, *, yaml_too: bool) -> list[tuple[str, str]]:
    """The user's own parts, which come first (A-263, A-266)."""
    text = custom.strip()
    if not text:
        return []
    if text.startswith(("MIME-Version:", "Content-Type:")):
        return _archive(text)
    if yaml_too and _is_yaml_mapping(text):
        return [(_NODE_CONFIG, custom)]
    return [(_SHELL, custom)]


_NOTHING = ("\n", "")
"""The part after a last boundary that does not close the archive."""


def _archive(text: str) -> list[tuple[str, str]]:
    message = message_from_string(text)
    if not message.is_multipart():
        hint = "Give it a multipart/mixed Content-Type with a boundary, or write a plain script"
        raise _bad_mime("the MIME text is not multipart", hint)
    parts = []
    for part in message.walk():
        if part.is_multipart():
            continue
        headers = "\n".join(f"{name}: {value}" for name, value in part.items())
        parts.append((headers + "\n", str(part.get_payload())))
    if not any(isinstance(defect, CloseBoundaryNotFoundDefect) for defect in message.defects):
        return parts
    if parts[-1:] != [_NOTHING]:
        raise _bad_mime("the MIME text breaks off within a part", "End it with the boundary between -- and --")
    return parts[:-1]


def _bad_mime(message: str, hint: str) -> InputError:
    return InputError(message, where="spec.userData", hint=hint, code="KERF521")


def _is_yaml_mapping(text: str) -> bool:
    """Whether a text is a NodeConfig: its first document counts, as in Karpenter. A text of comments alone is an empty
    document, not a script (A-455). Raises `InputError` (KERF521) for YAML with a value that is none."""
    try:
        document = next(yaml.safe_load_all(text), None)
    except (yaml.YAMLError, RecursionError):
        return False
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:  # PyYAML's: !!bool maybe
        message = "the user data is YAML with a value that does not suit its tag"
        raise InputError(message, where="spec.userData", hint="Put it in quotes", code="KERF521") from error
    return document is None or isinstance(document, dict)
