"""`kerf validate` across objects, Kubernetes versions and Timelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed, written

Run = Callable[..., tuple[int, str, str]]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def notes_of(out: str) -> list[str]:
    return [line.partition("note: ")[2] for line in out.splitlines() if "note: " in line]


def test_a_node_class_ref_that_leads_nowhere_is_noted_where_the_files_hold_classes(kerf: Run, tmp_path: Path) -> None:
    pool = changed(NODE_POOL, "spec.template.spec.nodeClassRef.name", "defualt")
    assert notes_of(kerf("validate", written(tmp_path, pool))[1]) == []
    _, out, _ = kerf("validate", written(tmp_path, pool, EC2_NODE_CLASS))
    expected = "spec.template.spec.nodeClassRef: there is no EC2NodeClass defualt in these files. Is it default?"
    assert notes_of(out) == [expected]


def test_requirements_that_leave_no_instance_type_are_noted(kerf: Run, tmp_path: Path) -> None:
    path = "spec.template.spec.requirements"
    alone = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["5000"]}
    family = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]}
    arm = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    for requirements, words in (
        ([alone], "karpenter.k8s.aws/instance-cpu Gt 5000 alone leaves none"),
        ([family, arm], "together they leave none"),
    ):
        code, out, _ = kerf("validate", written(tmp_path, changed(NODE_POOL, path, requirements)))
        (note,) = notes_of(out)
        assert (code, words in note) == (0, True)
    assert notes_of(kerf("validate", written(tmp_path, changed(NODE_POOL, path, [family])))[1]) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("karpenter.sh/capacity-type", "reserved"),
        ("karpenter.k8s.aws/capacity-reservation-id", "cr-0123"),
        ("karpenter.k8s.aws/capacity-reservation-type", "capacity-block"),
        ("topology.kubernetes.io/region", "eu-west-1"),
        ("failure-domain.beta.kubernetes.io/region", "eu-west-1"),
        ("kubernetes.io/os", "windows"),
    ],
)
def test_what_the_account_or_a_class_elsewhere_decides_is_not_noted(
    key: str, value: str, kerf: Run, tmp_path: Path
) -> None:
    requirements = [{"key": key, "operator": "In", "values": [value]}]
    pool = changed(NODE_POOL, "spec.template.spec.requirements", requirements)
    code, out, _ = kerf("validate", written(tmp_path, pool), "--strict")
    assert (code, notes_of(out)) == (0, [])


def test_an_operating_system_that_the_class_s_images_do_not_have_is_noted(kerf: Run, tmp_path: Path) -> None:
    requirements = [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]
    pool = changed(NODE_POOL, "spec.template.spec.requirements", requirements)
    (note,) = notes_of(kerf("validate", written(tmp_path, pool, EC2_NODE_CLASS))[1])
    assert "kubernetes.io/os In windows alone leaves none" in note


def test_a_toleration_of_a_taint_that_no_pool_has_is_noted(kerf: Run, tmp_path: Path) -> None:
    taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    pool = changed(NODE_POOL, "spec.template.spec.taints", taints)
    tolerations = [
        {"key": "dedicate", "operator": "Exists"},
        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
        {"operator": "Exists"},
    ]
    pod = changed(POD, "spec.tolerations", tolerations)
    assert notes_of(kerf("validate", written(tmp_path, pod))[1]) == []
    _, out, _ = kerf("validate", written(tmp_path, pool, pod))
    assert notes_of(out) == ["tolerations: no NodePool in these files has a taint dedicate. Is it dedicated?"]


def test_a_value_that_is_nearly_one_that_a_pool_gives_is_noted(kerf: Run, tmp_path: Path) -> None:
    tier = {"key": "tier", "operator": "In", "values": ["critical"]}
    pool = changed(NODE_POOL, "spec.template.spec.requirements", [tier])
    labelled = changed(NODE_POOL, "spec.template.metadata", {"labels": {"tier": "critical"}})
    anything = changed(NODE_POOL, "spec.template.spec.requirements", [{"key": "tier", "operator": "Exists"}])
    anything = changed(anything, "metadata.name", "anything")
    expression = {"key": "tier", "operator": "In", "values": ["critcal"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    selects = changed(POD, "spec.nodeSelector", {"tier": "critcal"})
    asks = changed(POD, "spec.affinity", affinity)
    for given, pod, path in ((pool, selects, "nodeSelector"), (pool, asks, "nodeAffinity"),
                             (labelled, selects, "nodeSelector")):  # fmt: skip
        expected = f"{path}: critcal is no tier that kerf knows. Is it critical?"
        assert notes_of(kerf("validate", written(tmp_path, given, pod))[1]) == [expected]
    other = changed(POD, "spec.nodeSelector", {"tier": "batch"})
    for documents in ((selects,), (anything, selects), (pool, anything, selects), (pool, other)):
        assert notes_of(kerf("validate", written(tmp_path, *documents))[1]) == []


def test_strict_fails_on_notes(kerf: Run, tmp_path: Path) -> None:
    file = written(tmp_path, changed(POD, "spec.nodeSelector", {"topology.kubernetes.io/zone": "us-wset-2a"}))
    assert (kerf("validate", file)[0], kerf("validate", file, "--strict")[0]) == (0, 1)
    good = written(tmp_path, POD, name="good.yaml")
    assert kerf("validate", good, "--strict")[0] == 0


def test_fields_and_operators_are_those_of_the_version(kerf: Run, tmp_path: Path) -> None:
    toleration = [{"key": "a", "operator": "Gt", "value": "5"}]
    file = written(tmp_path, changed(changed(POD, "spec.hostnameOverride", "h"), "spec.tolerations", toleration))
    assert kerf("validate", file)[0] == 0
    code, out, _ = kerf("validate", file, "--kubernetes-version", "v1.33")
    assert code == 1
    assert "KERF320 spec.hostnameOverride: There is no field hostnameOverride. It came with Kubernetes 1.34" in out
    assert "KERF305 spec.tolerations[0].operator: 'Gt' is not one of Exists, Equal. It came with Kubernetes 1.35" in out


@pytest.mark.parametrize("version", ["9", "1.2", "one", "1.x"])
def test_an_unknown_version_of_kubernetes_is_refused(version: str, kerf: Run, tmp_path: Path) -> None:
    code, _, err = kerf("validate", written(tmp_path, POD), "--kubernetes-version", version)
    assert (code, err[:7]) == (2, "KERF346")


def test_a_timeline_is_checked_with_what_it_applies(kerf: Run, tmp_path: Path) -> None:
    bad = changed(POD, "spec.containers", [{"name": "c", "imag": "i"}])
    actions = [
        {"at": "5m", "action": "scale", "name": "a", "replica": 5},
        {"at": "6m", "action": "apply", "object": bad},
        {"at": "7m", "action": "capacity", "instanceType": "m5.lagre", "zone": "us-west-2a"},
    ]
    timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "spec": {"actions": actions}}
    code, out, _ = kerf("validate", written(tmp_path, timeline))
    assert code == 1
    assert "KERF810 spec.actions[0]: Object contains unknown field `replica`. Is it replicas?" in out
    (note,) = notes_of(out)
    assert note.startswith("spec.actions[2].instanceType: m5.lagre is no ")
    assert note.endswith("Is it m5.large?")
    assert "spec.actions[1].object Pod/p: refused" in out
    assert "KERF320 spec.containers[0].imag: There is no field imag. Is it image?" in out


def test_a_type_error_brings_no_second_error_about_a_taint_without_a_value(kerf: Run, tmp_path: Path) -> None:
    pool = changed(NODE_POOL, "spec.template.spec.taints", [{"key": "a", "effect": "NoSchedule"}])
    _, out, _ = kerf("validate", written(tmp_path, changed(pool, "spec.weight", "5")))
    assert [line.split(":")[0].strip() for line in out.splitlines()[1:-1]] == ["KERF303 spec.weight"]


def test_an_object_that_stands_there_twice_is_noted(kerf: Run, tmp_path: Path) -> None:
    out = kerf("validate", written(tmp_path, POD, changed(POD, "metadata.namespace", "other"), POD))[1]
    assert notes_of(out) == ["metadata.name: Pod/p stands in these files twice; the last one counts"]


@pytest.mark.parametrize(("version", "noted"), [("9.9", True), ("1.25", False), ("", False)])
def test_a_version_newer_than_the_schemas_is_told_which_ones_count(
    version: str, noted: bool, kerf: Run, tmp_path: Path
) -> None:
    code, out, err = kerf("validate", written(tmp_path, POD), "--kubernetes-version", version)
    assert (code, "1 accepted" in out) == (0, True)
    assert (f" count, not of {version}\n" in err, err.count("\n")) == (noted, int(noted))
