"""Nodes, workloads, budgets, namespaces, NodeClaims; lists, unknown kinds and documents that are none."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.engine.errors import InputError
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject, condition_is_true
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import PodShape, Selector, Taint
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.manifests.decode import KINDS, decode_many, decode_object
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.model.manifests.violations import ManifestError
from tests.support.manifests.nodes_and_claims import CLAIM, NODE
from tests.support.manifests.small import POD, changed, decode, pod, refusals

TEMPLATE = {"metadata": {"labels": {"app": "x"}, "annotations": {"n": "1"}}, "spec": POD["spec"]}


def test_a_node() -> None:
    assert decode(NODE).object == Node(
        name="n-1",
        uid="u",
        provider_id="aws:///us-west-2a/i-1",
        created=1768474800000,
        labels={"a": "b"},
        annotations={"karpenter.sh/do-not-disrupt": "true"},
        taints=(Taint("k", "NoSchedule"),),
        capacity={"cpu": 2000, "memory": 2**33, "pods": 29},
        allocatable={"cpu": 1930, "memory": 7238320128, "pods": 29},
        ready=True,
        ready_since=1768474835000,
    )


def test_d108_the_taint_of_a_proposed_disruption_is_none_that_pods_must_tolerate() -> None:
    """kerf plans, compares and drains as if it were not there."""
    own = {"key": "kerf.dev/disruption-proposed", "effect": "PreferNoSchedule"}
    plain, found = decode(NODE).object, decode(changed(NODE, "spec.taints", [*NODE["spec"]["taints"], own])).object
    assert isinstance(plain, Node)
    assert isinstance(found, Node)
    assert found == replace(plain, proposed=True)


def test_refusals_of_a_node() -> None:
    assert refusals(changed(NODE, "spec.taints", [{"effect": "NoWay"}])) == {
        "spec.taints[0].key": "KERF304",
        "spec.taints[0].effect": "KERF305",
    }
    assert refusals(changed(NODE, "status.capacity.cpu", "two")) == {"status.capacity[cpu]": "KERF306"}
    late = changed(NODE, "status.conditions.1.lastTransitionTime", "late")
    assert refusals(late) == {"status.conditions[1].lastTransitionTime": "KERF308"}


def test_a_daemonset_has_the_shape_of_its_template() -> None:
    """A DaemonSet has the shape of its template (S-79)."""
    decoded = decode(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": TEMPLATE}}
    )
    assert isinstance(decoded.object, DaemonSet)
    assert (decoded.object.uid, decoded.object.namespace) == ("default/d", "default")
    shape = decoded.blobs[decoded.object.shape]
    assert isinstance(shape, PodShape)
    assert (shape.requests, shape.labels) == ({"cpu": 250, "memory": 2**30}, {"app": "x"})


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_workload(kind: str) -> None:
    metadata = {"name": "w", "uid": "u", "labels": {"l": "1"}, "creationTimestamp": None}
    document = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"template": TEMPLATE}}
    decoded = decode(document)
    assert isinstance(decoded.object, Workload)
    found = decoded.object
    assert (found.kind, found.replicas, found.labels, found.created) == (f"apps/v1/{kind}", 1, {"l": "1"}, 0)
    assert (found.template_labels, found.template_annotations) == ({"app": "x"}, {"n": "1"})
    assert list(decoded.blobs) == [found.shape]
    assert refusals(changed(document, "spec.replicas", -1)) == {"spec.replicas": "KERF309"}
    assert refusals(changed(document, "spec.template", ...)) == {"spec.template.spec": "KERF304"}
    bad = changed(document, "spec.template.spec.containers.0.resources.requests.cpu", "much")
    assert refusals(bad) == {"spec.template.spec.containers[0].resources.requests[cpu]": "KERF306"}


def test_the_pod_of_a_template_has_the_templates_shape() -> None:
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {"template": TEMPLATE},
    }
    shape = pod(changed(POD, "metadata.labels", {"app": "x"}))[0].shape
    assert list(decode(document).blobs) == [shape]


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "uid": "u"},
        "spec": spec,
    }


def test_a_pod_disruption_budget() -> None:
    selector = {"matchLabels": {"app": "x"}}
    document = budget(selector=selector, maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    status = {"disruptionsAllowed": 2, "expectedPods": 5, "desiredHealthy": 3}
    assert decode(document | {"status": status}).object == PodDisruptionBudget(
        "u", "default", "b", Selector({"app": "x"}), "0", None, 2, True, 5, 3
    )
    assert decode(budget(minAvailable="50%")).object == PodDisruptionBudget("u", "default", "b", min_available="50%")


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"maxUnavailable": -1}, "KERF309"),
        ({"maxUnavailable": "half"}, "KERF309"),
        ({"maxUnavailable": 1.5}, "KERF303"),
        ({"maxUnavailable": 1, "minAvailable": 1}, "KERF310"),
    ],
)
def test_refusals_of_a_pod_disruption_budget(spec: dict[str, Any], code: str) -> None:
    assert refusals(budget(**spec)) == {"spec.maxUnavailable": code}


def test_a_namespace() -> None:
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"env": "prod"}}}
    assert decode(document).object == Namespace("n", {"env": "prod"})


def test_a_node_claim() -> None:
    """L-41…L-46. The nodepool key is allowed here (L-42)."""
    claim = decode(CLAIM).object
    assert claim == NodeClaimObject(
        name="default-x7k",
        node_class=NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default"),
        labels={"karpenter.sh/nodepool": "default"},
        requirements=(RequirementSpec("karpenter.sh/nodepool", "In", ("default",), 1),),
        taints=(Taint("k", "NoExecute", "v"),),
        requests={"cpu": 100},
        expire_after=None,
        termination_grace_period=600_000,
        provider_id="aws:///us-west-2a/i-1",
        node="n-1",
        image="ami-1",
        capacity={"cpu": 2000},
        allocatable={"cpu": 1930},
        conditions=(Condition("Launched", "True", "Launched", "", 1768474835000),),
        last_pod_event=1768474800000,
    )
    assert condition_is_true(claim, "Launched")
    assert not condition_is_true(claim, "Drifted")


def test_a_node_claim_expires_after_30_days_unless_it_says_otherwise() -> None:
    """A node claim expires after 30 days unless it says otherwise (L-42)."""
    claim = decode(changed(CLAIM, "spec.expireAfter", ...)).object
    assert isinstance(claim, NodeClaimObject)
    assert claim.expire_after == 2_592_000_000


def test_a_kwok_node_class_is_ready_from_birth() -> None:
    """A KWOK NodeClass is ready from birth (L-63)."""
    document = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "d"}}
    assert decode(document).object == KWOKNodeClass("d")
    delayed = decode(document | {"spec": {"nodeRegistrationDelay": "5s"}}).object
    assert delayed == KWOKNodeClass("d", registration_delay=5000)


def test_the_items_of_a_list_are_decoded_each_by_itself() -> None:
    bad = changed(NODE, "metadata.name", 7)
    decoded, refused = decode_many({"apiVersion": "v1", "kind": "List", "items": [POD, bad, NODE]}, source="f.yaml")
    assert [type(d.object).__name__ for d in decoded] == ["Pod", "Node"]
    assert [str(error) for error in refused] == [
        'KERF303: Expected a string, got an integer 7 [f.yaml[1]: Node/7: metadata.name]. Put it in quotes: "7"'
    ]


def test_a_typed_list_gives_its_kind_to_its_items() -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
    decoded, refused = decode_many({"apiVersion": "v1", "kind": "NamespaceList", "items": items})
    assert ([d.object for d in decoded], refused) == ([Namespace("a"), Namespace("b")], [])


def test_one_object_is_a_list_of_one() -> None:
    assert decode_many(POD) == ([decode(POD)], [])


def test_a_list_without_items_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"KERF303: .*items"):
        decode_many({"apiVersion": "v1", "kind": "List", "items": {}})


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b'{"kind": 1e999}',
        b"[" * 100_000,
        b'{"kind":"Pod","apiVersion":"v1",}',
    ],
)
def test_what_is_no_json_object_is_refused(document: bytes) -> None:
    with pytest.raises(ManifestError) as refused:
        decode_object(document, source="stdin")
    assert (refused.value.code, refused.value.where) == ("KERF301", "stdin: document")


@pytest.mark.parametrize("value", [object(), {"a": {1, object()}}, {"a": "\ud800"}, {(1, 2): 3}])
def test_what_cannot_be_json_is_refused(value: Any) -> None:
    with pytest.raises(ManifestError) as refused:
        decode_object(value)
    assert refused.value.code == "KERF301"


def test_yaml_with_dates_and_integer_keys_is_read_as_json() -> None:
    """YAML 1.1 makes numbers of keys; kubectl makes texts of them again."""
    found, shape = pod(changed(POD, "spec.nodeSelector", {1: "x"}))
    assert shape.node_selector == {"1": "x"}
    assert found.name == "web-0"


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("v1", "ConfigMap", "kerf reads apps/v1/DaemonSet"),
        ("karpenter.sh/v1alpha5", "Provisioner", "kerf reads karpenter.sh/v1/NodePool, karpenter.sh/v1beta1/NodePool"),
        ("v2", "Pod", "kerf reads v1/Pod"),
        ("karpenter.sh/v1", "NodePol", "kerf reads karpenter.sh/v1/NodePool"),
        (1, ["Pod"], "kerf reads"),
    ],
)
def test_unknown_kinds_are_refused_with_what_there_is(version: Any, kind: Any, hint: str) -> None:
    """L-138 for the old names."""
    with pytest.raises(ManifestError) as refused:
        decode({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}})
    assert refused.value.code == "KERF302"
    assert refused.value.hint.startswith(hint)


def test_a_document_without_a_kind_is_refused() -> None:
    with pytest.raises(
        ManifestError, match=r"KERF302: The document has no apiVersion and kind \[object/x\]\. Say what it is, such as"
    ):
        decode({"metadata": {"name": "x"}})


@pytest.mark.parametrize("name", sorted(KINDS))
def test_an_empty_object_of_each_kind_is_refused_for_its_missing_name(name: str) -> None:
    version, _, kind = name.rpartition("/")
    assert refusals({"apiVersion": version, "kind": kind})["metadata.name"] == "KERF304"


def test_every_violation_is_found_whatever_its_kind() -> None:
    document = changed(NODE, "metadata.labels.x", 1)
    document = changed(document, "spec.taints.0.effect", ["NoSchedule"])
    document = changed(document, "status.capacity.cpu", "two")
    with pytest.raises(ManifestError) as refused:
        decode(document)
    assert [(v.code, v.path) for v in refused.value.violations] == [
        ("KERF303", "metadata.labels[x]"),
        ("KERF303", "spec.taints[0].effect"),
        ("KERF306", "status.capacity[cpu]"),
    ]
    assert isinstance(refused.value, InputError)
    assert str(refused.value).count("\n") == 2


def test_a_document_with_more_mistakes_than_can_be_named_is_refused_all_the_same() -> None:
    with pytest.raises(ManifestError) as refused:
        decode(changed(NODE, "spec.taints", [7] * 500))
    assert len(refused.value.violations) == 100


@pytest.mark.parametrize(
    ("attributes", "code", "path"),
    [
        ({"a": {"int": 1}, "b": {"version": True}}, "KERF303", "attributes[b].version"),
        ({"a": {"version": "1.0.0"}, "b": {"version": 1}}, "KERF303", "attributes[b].version"),
        ({"a": {"int": 1}, "b": {"int": 1 << 64}}, "KERF309", "attributes[b].int"),
        ({"a": {"int": 1}, "b": {"int": -(1 << 64)}}, "KERF309", "attributes[b].int"),
        ({"a": {"bool": True}, "b": []}, "KERF303", "attributes[b]"),
        ({"a": None, "b": {"version": []}}, "KERF303", "attributes[b].version"),
    ],
)
def test_s195_a_wrong_value_inside_of_one_of_many_is_named(attributes: dict[str, Any], code: str, path: str) -> None:
    """Of the first, decoding ended in a StopIteration: with it a command, and the controller that watches slices. Of
    others, an attribute was blamed that is right."""
    spec = {
        "driver": "d.io",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "g", "attributes": attributes}],
    }
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    assert refusals(document) == {f"spec.devices[0].{path}": code}


def test_bytes_and_documents_decode_alike() -> None:
    for document in (POD, NODE, CLAIM):
        assert decode_object(document) == decode_object(msgspec.json.encode(document))
