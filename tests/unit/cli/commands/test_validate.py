"""`kerf validate` and `kerf convert`: verdicts, exit codes, and wrong input."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed, written
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs" / "examples"
OLD_POOL = {
    "apiVersion": "karpenter.sh/v1beta1",
    "kind": "NodePool",
    "metadata": {"name": "old"},
    "spec": {
        "disruption": {"consolidationPolicy": "WhenUnderutilized", "consolidateAfter": "Never", "expireAfter": "24h"},
        "template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": [], "kubelet": {"maxPods": 20}}},
    },
}
OLD_CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1beta1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "amiFamily": "AL2",
        "role": "r",
        "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
Run = Callable[..., tuple[int, str, str]]


# ── validate ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_good_manifests_are_accepted(kerf: Run) -> None:
    for folder in ("workshop", "workshop/v1beta1", "black-belt", "resource-definitions"):
        code, out, _ = kerf("validate", EXAMPLES / folder)
        assert (code, " 0 refused" in out.splitlines()[-1]) == (0, True), out


@pytest.mark.parametrize("file", sorted((EXAMPLES / "refused").iterdir()), ids=lambda file: file.stem)
def test_bad_manifests_are_refused(kerf: Run, file: Path) -> None:
    code, out, _ = kerf("validate", file)
    assert code == 1
    assert f"{file}:1 " in out
    assert "KERF3" in out


@pytest.mark.parametrize(("command", "meant"), [("validate", " Did you mean --strict?"), ("convert", "")])
def test_a_mistyped_flag_is_taken_for_no_file(kerf: Run, command: str, meant: str) -> None:
    code, out, err = kerf(command, EXAMPLES / "workshop", "--strct")
    assert (code, out) == (2, "")
    assert err == f"KERF200: Unknown option: --strct.{meant} Try --help\n"


def test_a_file_that_is_no_text_is_named_once(kerf: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xff\x00")
    code, out, _ = kerf("validate", file)
    assert (code, out.splitlines()[0]) == (1, f"{file}: refused")


def test_all_that_is_wrong_is_told_at_once(kerf: Run, tmp_path: Path) -> None:
    bad = changed(changed(NODE_POOL, "spec.weight", 0), "spec.disruption.consolidationPolicy", "WhenUnderutilized")
    bad = changed(changed(bad, "spec.template.spec.expireAftr", "1h"), "metadata.name", "Default")
    code, out, _ = kerf("validate", written(tmp_path, NODE_POOL, bad, CONFIG_MAP), "--json")
    found = msgspec.json.decode(out)
    assert (code, found["accepted"], found["refused"], found["unchecked"]) == (1, 1, 1, 1)
    good, refused, other = found["objects"]
    assert (good["object"], good["verdict"]) == ("NodePool/default", "accepted")
    assert (refused["place"], refused["object"]) == (f"{tmp_path}/m.yaml:19", "NodePool/Default")
    assert {violation["path"]: violation["code"] for violation in refused["violations"]} == {
        "metadata.name": "KERF312",
        "spec.weight": "KERF309",
        "spec.disruption.consolidationPolicy": "KERF305",
        "spec.template.spec.expireAftr": "KERF320",
    }
    hints = {violation["path"]: violation.get("hint") for violation in refused["violations"]}
    assert hints["spec.template.spec.expireAftr"] == "Is it expireAfter?"
    assert other["verdict"] == "unchecked"


def test_a_field_in_a_wrong_place_is_told_the_right_one(kerf: Run, tmp_path: Path) -> None:
    """As of a wrong indentation. A field that may stand in several places (`image`) is not told one of them."""
    file = tmp_path / "pool.yaml"
    file.write_text(
        """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
  taints: "a text, where taints are a list"
  disruption:
  consolidateAfter: 30s
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  image: nginx
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: nginx, tolerations: [{key: a}]}
"""
    )
    _, out, _ = kerf("validate", file)
    assert [line.strip() for line in out.splitlines() if "KERF320" in line] == [
        "KERF320 spec.taints: There is no field taints",
        "KERF320 spec.consolidateAfter: There is no field consolidateAfter. "
        "Move it to spec.disruption.consolidateAfter",
        "KERF320 spec.image: There is no field image",
        "KERF320 spec.template.spec.containers[0].tolerations: There is no field tolerations. "
        "Move it to spec.template.spec.tolerations",
    ]


def test_what_only_controllers_refuse_is_refused_too(kerf: Run, tmp_path: Path) -> None:
    """What only controllers refuse is refused too (L-36, L-37, A-37)."""
    pool = changed(NODE_POOL, "spec.template.metadata.labels", {"not a key": "x"})
    sizeless = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "Ti"}}]
    nodes = changed(EC2_NODE_CLASS, "spec.blockDeviceMappings", sizeless)
    code, out, _ = kerf("validate", written(tmp_path, pool, nodes))
    assert (code, "KERF312" in out, "KERF306" in out) == (1, True, True)


def test_d18_a_schedule_that_the_api_server_takes_and_nobody_can_read(kerf: Run, tmp_path: Path) -> None:
    budgets = [{"nodes": "10%"}, {"nodes": "1", "schedule": "61 0 * * *", "duration": "1h"}]
    code, out, _ = kerf("validate", written(tmp_path, changed(NODE_POOL, "spec.disruption.budgets", budgets)))
    assert code == 1
    assert "KERF314 spec.disruption.budgets[1].schedule: '61 0 * * *' is no schedule" in out


def test_the_old_version_is_checked_as_what_it_becomes_with_the_paths_that_were_written(
    kerf: Run, tmp_path: Path
) -> None:
    code, out, _ = kerf("validate", written(tmp_path, OLD_POOL))
    assert (code, "kerf convert writes it as v1" in out) == (0, True)
    bad = changed(OLD_POOL, "spec.disruption.expireAfter", "1d")
    code, out, _ = kerf("validate", written(tmp_path, bad))
    assert (code, "KERF307 spec.disruption.expireAfter" in out) == (1, True)
    misspelled = changed(OLD_POOL, "spec.disruption.budget", [])
    code, out, _ = kerf("validate", written(tmp_path, misspelled))
    assert (code, "KERF320 spec.disruption.budget: There is no field budget. Is it budgets?" in out) == (1, True)


def test_lists_are_taken_apart(kerf: Run, tmp_path: Path) -> None:
    bad = changed(NODE_POOL, "spec.weight", 101)
    whole = {"apiVersion": "v1", "kind": "List", "items": [NODE_POOL, bad]}
    untyped = {key: field for key, field in bad.items() if key not in {"apiVersion", "kind"}}
    typed = {"apiVersion": "karpenter.sh/v1", "kind": "NodePoolList", "items": [untyped]}
    code, out, _ = kerf("validate", written(tmp_path, whole, typed))
    assert code == 1
    assert "m.yaml:1[1] NodePool/default: refused" in out
    assert out.splitlines()[-1] == "3 objects: 1 accepted, 2 refused"


def test_a_field_may_be_as_deep_as_it_likes(kerf: Run, tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"a": deep}
    found = []
    for name in ("kubelet", "other", "role"):
        file = tmp_path / f"{name}.json"
        file.write_bytes(msgspec.json.encode(changed(EC2_NODE_CLASS, f"spec.{name}", deep)))
        code, out, _ = kerf("validate", file)
        found.append((code, out.splitlines()[1].split(":")[0].strip()))
    assert found == [(1, "KERF320 spec.kubelet.a"), (1, "KERF320 spec.other"), (1, "KERF303 spec.role")]


def test_a50_a_malformed_kubelet_is_refused_beside_classes_that_are_good(kerf: Run, tmp_path: Path) -> None:
    bad = changed(EC2_NODE_CLASS, "spec.kubelet", {"evictionHard": {"memory.available": 100}, "podsPerCore": "x"})
    good = changed(EC2_NODE_CLASS, "metadata.name", "good")
    code, out, _ = kerf("validate", written(tmp_path, bad, good))
    assert code == 1
    assert "KERF303 spec.kubelet.evictionHard[memory.available]: Expected a string, got 100" in out
    assert "KERF303 spec.kubelet.podsPerCore: Expected an integer" in out
    assert "EC2NodeClass/good: accepted" in out


def test_a50_a_pool_of_a_class_with_a_malformed_kubelet_is_checked(kerf: Run, tmp_path: Path) -> None:
    bad = changed(EC2_NODE_CLASS, "spec.kubelet", {"evictionHard": {"memory.available": 100}})
    none = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["5000"]}
    pool = changed(NODE_POOL, "spec.template.spec.requirements", [none])
    code, out, _ = kerf("validate", written(tmp_path, bad, pool))
    assert (code, out.splitlines()[-1]) == (1, "2 objects: 1 accepted, 1 refused")
    assert "KERF303 spec.kubelet.evictionHard[memory.available]" in out
    assert "instance-cpu Gt 5000 alone leaves none" in out


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (
            "spec.template.spec.requirements",
            [{"key": "team", "operator": "In", "values": ["a", "bad value!"]}],
            "KERF312 spec.template.spec.requirements[0].values[1]: 'bad value!' is not a label value.",
        ),
        (
            "spec.template.spec.requirements",
            [{"key": "team", "operator": "NotIn", "values": [64 * "x"]}],
            "KERF312 spec.template.spec.requirements[0].values[0]: ",
        ),
        (
            "spec.template.spec.requirements",
            [{"key": f"a/{64 * 'x'}", "operator": "Exists"}],
            "KERF312 spec.template.spec.requirements[0].key: ",
        ),
        (
            "spec.template.spec.requirements",
            [
                {"key": "team", "operator": "In", "values": ["a"]},
                {"key": "team", "operator": "NotIn", "values": ["a"]},
            ],
            "KERF312 spec.template.spec.requirements[1]: no value of label team meets team In [a] and team NotIn [a].",
        ),
        (
            "spec.template.metadata",
            {"labels": {"topology.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/zone": "b"}},
            "KERF312 spec.template.metadata.labels[topology.kubernetes.io/zone]: no value of label topology",
        ),
        ("spec.template.metadata", {"labels": {64 * "x": "a"}}, "KERF312 spec.template.metadata.labels[xxx"),
        (
            "spec.template.spec.taints",
            [{"key": 64 * "x", "effect": "NoSchedule"}],
            "KERF312 spec.template.spec.taints[0].key: ",
        ),
        (
            "spec.template.spec.requirements",
            [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "foo"], "minValues": 2}],
            "KERF313 spec.template.spec.requirements[0].values: minValues asks for 2 values, and known of these",
        ),
    ],
)
def test_l34_l509_l510_a_nodepool_that_would_never_be_ready_is_refused(
    kerf: Run, tmp_path: Path, field: str, value: object, said: str
) -> None:
    code, out, _ = kerf("validate", written(tmp_path, changed(NODE_POOL, field, value)))
    assert code == 1
    assert said in out


@pytest.mark.parametrize(
    ("alias", "user_data", "said"),
    [
        ("bottlerocket@latest", "[settings\nsecret", "the user data is no TOML: it is wrong at "),
        ("al2023@latest", "MIME-Version: 1.0\n\nsecret", "the MIME text is not multipart"),
        ("al2023@latest", "a: !!bool secret", "the user data is YAML with a value that does not suit its tag"),
        ("al2@latest", "#!/bin/sh\n# " + 2_400 * "secret ", "the user data has"),
    ],
)
def test_a63_user_data_that_no_node_can_boot_with_is_refused(
    kerf: Run, tmp_path: Path, alias: str, user_data: str, said: str
) -> None:
    terms = changed(EC2_NODE_CLASS, "spec.amiSelectorTerms", [{"alias": alias}])
    bad, good = changed(terms, "spec.userData", user_data), changed(EC2_NODE_CLASS, "metadata.name", "good")
    code, out, _ = kerf("validate", written(tmp_path, bad, good))
    assert code == 1
    assert f"KERF521 spec.userData: {said}" in out
    assert "EC2NodeClass/good: accepted" in out
    assert "secret" not in out, "it may be a password"


def test_a63_user_data_is_checked_of_v1beta1_too(kerf: Run, tmp_path: Path) -> None:
    bad = changed(OLD_CLASS, "spec.userData", "Content-Type: text/plain\n\nx")
    _, out, _ = kerf("validate", written(tmp_path, bad))
    assert "KERF521 spec.userData: the MIME text is not multipart" in out


@pytest.mark.parametrize("user_data", ["", "#!/bin/sh\necho [", "apiVersion: node.eks.aws/v1alpha1", 16_000 * "x"])
def test_a63_user_data_that_is_no_archive_is_a_script(kerf: Run, tmp_path: Path, user_data: str) -> None:
    code, out, _ = kerf("validate", written(tmp_path, changed(EC2_NODE_CLASS, "spec.userData", user_data)))
    assert code == 0, out


def test_a50_a_kubelet_is_checked_also_where_another_field_is_wrong(kerf: Run, tmp_path: Path) -> None:
    bad = changed(changed(EC2_NODE_CLASS, "spec.kubelet", {"maxPods": -1}), "spec.tags", {"": "x"})
    _, out, _ = kerf("validate", written(tmp_path, bad))
    assert [line.split(":")[0].strip() for line in out.splitlines()[1:3]] == [
        "KERF312 spec.tags[]",
        "KERF309 spec.kubelet.maxPods",
    ]


def test_l126_a_kubelet_of_a_v1beta1_pool_is_checked(kerf: Run, tmp_path: Path) -> None:
    old = changed(OLD_POOL, "spec.template.spec.kubelet", {"podsPerCore": "x"})
    code, out, _ = kerf("validate", written(tmp_path, old))
    assert code == 1
    assert "KERF303 spec.template.spec.kubelet.podsPerCore" in out


def test_a_long_text_is_not_repeated(kerf: Run, tmp_path: Path) -> None:
    for path in ("spec.disruption.consolidateAfter", "spec.weight"):
        code, out, _ = kerf("validate", written(tmp_path, changed(NODE_POOL, path, "x " * 50_000)))
        assert (code, max(map(len, out.splitlines())) < 500) == (1, True)


def test_an_object_of_the_cluster_is_checked_without_what_the_cluster_added(kerf: Run, tmp_path: Path) -> None:
    stored = changed(NODE_POOL, "metadata.managedFields", [{"manager": "kubectl"}])
    stored = changed(stored, "status", {"anything": "goes"})
    assert kerf("validate", written(tmp_path, stored))[0] == 0


@pytest.mark.slow
def test_standard_input() -> None:
    """`kubectl get … -o yaml | kerf validate -`"""
    done = subprocess.run(
        [sys.executable, "-m", "kerf", "validate", "-"],
        input=yaml.safe_dump(changed(NODE_POOL, "spec.weight", 0)),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "-:1 NodePool/default: refused")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("plan -", "stdin: refused"), ("disrupt -", "stdin: refused"), ("convert -", "apiVersion"),
        ("simulate - --quiet", "virtual time"), ("check docs/examples/ci/policy.yaml -", "assertions hold"),
    ],
)  # fmt: skip
def test_commands_that_read_files_read_standard_input(command: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kerf", *command.split()],
        input=yaml.safe_dump(NODE_POOL),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert said in done.stdout


@pytest.mark.parametrize("command", ["log", "sweep", "verify", "whatif"])
def test_commands_that_do_not_read_standard_input_say_what_to_give(kerf: Run, command: str) -> None:
    told = f"KERF200: kerf {command} does not read standard input (-). Give a file. Try --help\n"
    assert kerf(command, "-") == (2, "", told)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"a: [", "KERF331"),
        (b"- a\n- b\n", "KERF331"),
        (b"\xff\xfe", "KERF331"),
        (b"kind: NodePool\n", "KERF302"),
        (b"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\n", "KERF302"),
        (b"apiVersion: karpenter.sh/v2\nkind: NodePool\n", "KERF302"),
        (b"apiVersion: karpenter.sh/v1\nkind: NodePool\n", "KERF304"),
        (b"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: 3\nspec: []\n", "KERF303"),
        (b"apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {weight: .inf}\n", "KERF3"),
        (b"apiVersion: [1]\nkind: {a: b}\n", "KERF302"),
        (b"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nspec: {template: 3}\n", "KERF303"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n", "KERF303"),
        (b"{" * 5000, "KERF3"),
    ],
)
def test_wrong_input_is_a_coded_refusal(kerf: Run, tmp_path: Path, content: bytes, code: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(content)
    for command in ("validate", "convert"):
        done, out, err = kerf(command, file)
        assert "Traceback" not in out + err
        if command == "validate" or code in {"KERF331", "KERF302"}:
            assert done == 1, (command, out, err)
            assert code in out + err


@pytest.mark.parametrize("command", ["validate", "convert"])
def test_wrong_usage(kerf: Run, tmp_path: Path, command: str) -> None:
    assert kerf(command)[0] == 2
    code, _, err = kerf(command, tmp_path / "none.yaml")
    assert (code, err[:7]) == (2, "KERF330")
    assert kerf(command, tmp_path)[0] == 2  # a folder without manifests
    (tmp_path / "empty.yaml").touch()
    code, _, err = kerf(command, tmp_path / "empty.yaml")
    assert (code, err[:7]) == (2, "KERF331")


# ── convert ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_old_version_becomes_v1_and_the_rest_stays(kerf: Run, tmp_path: Path) -> None:
    """The old version becomes v1 and the rest stays (L-107, L-128, L-129, L-133)."""
    code, out, err = kerf("convert", written(tmp_path, OLD_POOL, OLD_CLASS, NODE_POOL, CONFIG_MAP))
    pool, nodes, same, other, own = yaml.safe_load_all(out)
    assert (code, own["metadata"]["name"], own["spec"]["kubelet"]) == (0, "default-old", {"maxPods": 20})
    assert (pool["apiVersion"], pool["spec"]["template"]["spec"]["expireAfter"]) == ("karpenter.sh/v1", "24h")
    assert pool["spec"]["disruption"]["consolidateAfter"] == "Never"
    assert nodes["spec"]["amiSelectorTerms"] == [{"alias": "al2@latest"}]
    assert nodes["metadata"] == {"name": "default"}
    assert (same, other) == (NODE_POOL, CONFIG_MAP)
    assert "m.yaml:1: consolidateAfter Never with WhenUnderutilized" in err
    assert kerf("validate", written(tmp_path, pool, own, nodes, name="new.yaml"))[0] == 0


def test_what_is_refused_is_not_written(kerf: Run, tmp_path: Path) -> None:
    bad = changed(OLD_POOL, "spec.weight", 500)
    code, out, err = kerf("convert", written(tmp_path, bad, OLD_CLASS), "--json")
    assert (code, [converted["kind"] for converted in msgspec.json.decode(out)["items"]]) == (1, ["EC2NodeClass"])
    assert "KERF309: The value is 1 to 100, not 500" in err


def test_times_and_numbers_as_keys_come_out_as_kubernetes_reads_them(kerf: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        yaml.safe_dump(OLD_POOL).replace("name: old", "name: old\n  creationTimestamp: 2026-01-01T00:00:00Z")
    )
    (pool,) = yaml.safe_load_all(io.StringIO(kerf("convert", file)[1]))
    assert pool["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("zone", "note"),
    [
        ("us-wset-2a", "us-wset-2a is no topology.kubernetes.io/zone that kerf knows. Is it us-west-2a?"),
        ("us-west-2z", ""), ("us-west-2-lax-1a", ""), ("rack-7", ""),
    ],
)  # fmt: skip
def test_a_mistyped_zone_is_noted(zone: str, note: str, kerf: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    spec = {"nodeSelector": {"topology.kubernetes.io/zone": zone}, "containers": [{"name": "c", "image": "i"}]}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}))
    code, out, _ = kerf("validate", file)
    assert code == 0
    notes = [line.strip() for line in out.splitlines() if line.strip().startswith("note:")]
    assert notes == ([f"note: nodeSelector: {note}"] if note else [])


# ── kinds ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("apps/v1", "Deploymnet", "apps/v1/Deploymnet is no kind that kerf reads. kerf reads apps/v1/Deployment"),
        ("app/v1", "Deployment", "app/v1/Deployment is no kind that kerf reads. kerf reads apps/v1/Deployment"),
        ("v1", "pod", "v1/pod is no kind that kerf reads. kerf reads v1/Pod"),
        ("v1", None, "kind: kind is missing. Say what it is"),
        (None, "Deployment", "apiVersion: apiVersion is missing. Write apiVersion: apps/v1"),
        ("example.com/v1", None, "kind: kind is missing. Say what it is"),
    ],
)
def test_a_kind_that_is_misspelt_or_missing_is_refused(
    version: str | None, kind: str | None, words: str, kerf: Run, tmp_path: Path
) -> None:
    """`kerf simulate` refuses it, too: no other kind is meant."""
    head = {"apiVersion": version, "kind": kind}
    document = {"metadata": {"name": "x"}} | {field: text for field, text in head.items() if text}
    code, out, _ = kerf("validate", written(tmp_path, document))
    assert code == 1
    assert f"KERF302 {words}" in out


@pytest.mark.parametrize(
    ("version", "kind"),
    [("serving.example.com/v1", "Service"), ("batch/v2", "Job"), ("v1", "ServiceAccount"), ("apps/v1", "Other")],
)
def test_a_kind_of_somebody_else_is_not_checked(version: str, kind: str, kerf: Run, tmp_path: Path) -> None:
    code, out, _ = kerf("validate", written(tmp_path, {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}))
    assert (code, out.strip()) == (0, "0 objects: 0 accepted, 0 refused; 1 of other kinds not checked")
