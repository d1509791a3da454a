"""What is spelt nearly like a known label, value or kind is told with what may be meant."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.manifests.validate import Judgement, judge
from kerf.engine.model.mistyped import CLOSED, NOTES, near_value, values_of

EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
FAMILY = "karpenter.k8s.aws/instance-family"
KNOWN = {**CLOSED, lbl.INSTANCE_TYPE: ("m5.large", "m5.xlarge", "c5.large"), FAMILY: ("m5", "c5")}


def pool(key: str, *values: str, ref: dict[str, str] = EC2, labels: dict[str, str] | None = None) -> Judgement:
    requirements = [{"key": key, "operator": "In", "values": list(values)}]
    template = {"metadata": {"labels": labels or {}}, "spec": {"nodeClassRef": ref, "requirements": requirements}}
    document: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": template},
    }  # fmt: skip
    return judge(document, KNOWN)


@pytest.mark.parametrize("key", ["karpenter.k8s.aws/instance-famly", "karpenter.sh/instance-family"])
def test_a_key_that_is_refused_is_told_with_the_one_that_may_be_meant(key: str) -> None:
    """A key that is refused is told with the one that may be meant (L-30, L-31)."""
    for found in (pool(key, "m5"), pool(lbl.ARCH, "amd64", labels={key: "m5"})):
        assert [(violation.code, violation.hint) for violation in found.violations] == [("KERF311", f"Is it {FAMILY}?")]


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        ("node.kubernetes.io/instance-typ", "m5.large", lbl.INSTANCE_TYPE),
        ("topology.kubernetes.io/zon", "us-west-2a", lbl.ZONE),
        (lbl.INSTANCE_TYPE, "m5.lagre", "m5.large"),
        ("beta.kubernetes.io/instance-type", "m5.lagre", "m5.large"),
        (FAMILY, "m55", "m5"),
        (lbl.ARCH, "arm", "arm64"),
    ],
)
def test_what_the_controllers_take_is_noted(key: str, value: str, near: str) -> None:
    found = pool(key, value)
    assert found.verdict == "accepted"
    assert [note.params["near"] for note in found.notes] == [near]
    assert {note.code for note in found.notes} <= set(NOTES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (lbl.INSTANCE_TYPE, "m5.large"), (lbl.INSTANCE_TYPE, "u-24tb1.metal"), ("example.com/team", "a"),
        ("karpenter.k8s.aws/instance-cpu", "17"), ("beta.kubernetes.io/arch", "arm64"), ("zone", "a"),
    ],
)  # fmt: skip
def test_what_is_known_or_like_nothing_is_left_alone(key: str, value: str) -> None:
    assert pool(key, value) == Judgement("NodePool/p", "accepted")


def test_l39_a_closed_set_none_of_which_is_asked_for_is_wrong() -> None:
    found = pool(lbl.CAPACITY_TYPE, "on-demnad")
    assert [(violation.code, violation.hint) for violation in found.violations] == [("KERF305", "Is it on-demand?")]
    assert not found.notes, "once is enough"
    assert pool(lbl.CAPACITY_TYPE, "cheap").violations[0].hint == ""
    some = pool(lbl.CAPACITY_TYPE, "spot", "on-demnad")
    assert (some.verdict, [note.params["given"] for note in some.notes]) == ("accepted", ["on-demnad"])


@pytest.mark.parametrize("ref", [EC2 | {"kind": "EC2NodeClas"}, EC2 | {"group": "karpenter.aws"}])
def test_a_mistyped_kind_of_node_class_is_refused(ref: dict[str, str]) -> None:
    """L-48: nothing would ever be launched for it."""
    found = pool(lbl.ARCH, "amd64", ref=ref)
    assert [(violation.code, violation.hint) for violation in found.violations] == [
        ("KERF305", "Is it karpenter.k8s.aws/EC2NodeClass?")
    ]


def test_the_kind_of_another_provider_is_noted() -> None:
    found = pool(lbl.ARCH, "amd64", ref={"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "a"})
    assert (found.verdict, [note.code for note in found.notes]) == ("accepted", ["unknown-node-class"])


def test_what_pods_ask_for_is_looked_at_too() -> None:
    term = {"matchExpressions": [{"key": lbl.CAPACITY_TYPE, "operator": "In", "values": ["sopt"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    spec = {"nodeSelector": {lbl.INSTANCE_TYPE: "m5.lagre"}, "affinity": affinity, "containers": [{"name": "c"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }  # fmt: skip
    for document in (pod, deployment):
        found = judge(document, KNOWN)
        assert found.verdict == "accepted"
        assert sorted(str(note.params["near"]) for note in found.notes) == ["m5.large", "spot"]


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("us-wset-2a", "us-west-2a"), ("us-west2b", "us-west-2b"), ("us-west-2a", ""),
        ("us-west-2d", ""), ("us-west-2-lax-1a", ""), ("test-zone-a", ""),
    ],
)  # fmt: skip
def test_another_zone_of_a_region_is_not_mistyped(zone: str, near: str) -> None:
    assert near_value(zone, ("us-west-2a", "us-west-2b")) == near


def test_what_a_catalogue_sells_is_known() -> None:
    kind = InstanceType("m5.large", {}, {}, {FAMILY: ("m5",)}, (Offering("z", "spot", 1.0),))
    known = values_of(Catalogue((kind,)))
    assert near_value("m5.lareg", known[lbl.INSTANCE_TYPE]) == "m5.large"
    assert set(known[FAMILY]) == {"m5"}
    assert set(CLOSED) <= set(known)


def test_a_216_dedicated_hardware_is_noted_where_no_price_of_it_is_known() -> None:
    known = {**KNOWN, lbl.TENANCY: ("default",)}

    def notes(*values: str, known: dict[str, Any] = known) -> list[str]:
        requirement = {"key": lbl.TENANCY, "operator": "In", "values": list(values)}
        template = {"spec": {"nodeClassRef": EC2, "requirements": [requirement]}}
        document = {
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"template": template},
        }  # fmt: skip
        return [note.code for note in judge(document, known).notes]

    assert notes("dedicated") == ["no-dedicated-price"]
    assert notes("default") == notes("default", "dedicated") == []
    assert notes("dedicated", known={**KNOWN, lbl.TENANCY: ("dedicated", "default")}) == []


@pytest.mark.parametrize(
    ("expire_after", "noted"),
    [("0s", ["0s"]), ("30s", ["30s"]), ("4m59s", ["4m59s"]), ("5m", []), ("720h", []), ("Never", []), (None, [])],
)
def test_l240_nodes_that_expire_before_pods_run_on_them_are_noted(expire_after: str | None, noted: list[str]) -> None:
    """Nodes of `0s` are launched every few seconds for as long as a pod waits."""
    spec = {"nodeClassRef": EC2, "requirements": []} | ({"expireAfter": expire_after} if expire_after else {})
    document = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
        "spec": {"template": {"spec": spec}},
    }  # fmt: skip
    found = judge(document, KNOWN)
    assert [note.params["given"] for note in found.notes if note.code == "short-lived-nodes"] == noted
    assert found.verdict == "accepted"


def test_s69_a_limit_on_what_no_node_has_is_noted() -> None:
    limits = {"cpu": "10", "mem": "5Gi", "memory": "5Gi", "hugepages-2Mi": "1Gi", "nodes": "3", "example.com/gpu": "4"}
    spec = {"limits": limits, "template": {"spec": {"nodeClassRef": EC2, "requirements": []}}}
    found = judge({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": spec}, KNOWN)
    assert [(note.code, note.params["path"]) for note in found.notes] == [("limits-nothing", "spec.limits[mem]")]


@pytest.mark.parametrize(
    ("memory", "noted"), [("512m", ["1"]), ("512", ["512"]), (1, ["1"]), ("1Mi", []), ("0", []), (None, [])]
)
def test_a_request_for_memory_without_its_unit_is_noted(memory: str | int | None, noted: list[str]) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {} if memory is None else {"memory": memory}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    found = judge(pod, KNOWN)
    assert found.verdict == "accepted"
    assert [note.params["given"] for note in found.notes if note.code == "tiny-memory"] == noted


@pytest.mark.parametrize(
    ("kind", "text", "noted"),
    [
        ("Pod", "", True), ("Pod", "yes", True), ("Pod", "0s", True), ("Pod", "-5m", True), ("Pod", "30m", False),
        ("Pod", "true", False), ("Pod", "false", False), ("Deployment", "", True), ("Deployment", "true", False),
        ("NodePool", "", True), ("NodePool", "30m", True), ("NodePool", "true", False),
    ],
)  # fmt: skip
def test_d12_d30_a_do_not_disrupt_that_protects_nothing_is_noted(kind: str, text: str, noted: bool) -> None:
    """An empty one counts for nothing, on nodes a duration, too."""
    annotated = {"annotations": {lbl.DO_NOT_DISRUPT: text}}
    container = {"name": "c", "image": "x"}
    documents: dict[str, dict[str, Any]] = {
        "Pod": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **annotated},
            "spec": {"containers": [container]},
        },
        "Deployment": {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}, **annotated}, "spec": {"containers": [container]}},
            },
        },
        "NodePool": {
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"template": {"metadata": annotated, "spec": {"nodeClassRef": EC2, "requirements": []}}},
        },
    }  # fmt: skip
    found = judge(documents[kind], KNOWN)
    assert found.verdict == "accepted"
    place = "metadata.annotations[karpenter.sh/do-not-disrupt]"
    place = place if kind == "Pod" else f"spec.template.{place}"
    codes = [(note.code, note.params["path"]) for note in found.notes]
    assert codes == ([("protects-nothing", place)] if noted else [])
