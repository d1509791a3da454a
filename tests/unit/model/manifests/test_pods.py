"""Pods: facts of the object, facts of its shape, and what is refused."""

from typing import Any

import msgspec
import pytest

from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    HostPort,
    NodeTerm,
    Owner,
    PreferredNodeTerm,
    Selector,
    SpreadConstraint,
    Toleration,
    VolumeRef,
    is_provisionable,
)
from kerf.engine.model.manifests.decode import decode_object
from tests.support.manifests.small import POD, changed, decode, pod, refusals

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def with_spec(**fields: Any) -> dict[str, Any]:
    return POD | {"spec": POD["spec"] | fields}


def test_identity_and_defaults() -> None:
    found, shape = pod(POD)
    assert (found.uid, found.key, found.phase, found.node, found.created) == ("p-1", "shop/web-0", "Pending", "", 0)
    assert (shape.requests, shape.labels) == ({"cpu": 250, "memory": 2**30}, {"app": "web"})
    bare, _ = pod({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    assert (bare.uid, bare.namespace) == ("default/x", "default")


def test_status() -> None:
    document = POD | {
        "metadata": POD["metadata"]
        | {"creationTimestamp": "2026-01-15T11:00:00Z", "deletionTimestamp": "2026-01-15T12:00:00Z"},
        "spec": {"nodeName": "n-1"},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-15T11:00:01Z",
            "nominatedNodeName": "n-2",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    found, _ = pod(document)
    assert (found.phase, found.node, found.nominated, found.ready) == ("Running", "n-1", "n-2", True)
    assert (found.created, found.started, found.deleting) == (1768474800000, 1768474801000, 1768478400000)


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"])
def test_labels_that_a_pod_has_of_its_node_say_nothing_of_what_it_asks_for(key: str) -> None:
    """S-131, KEP-4742: the API server writes them when a pod is bound; the pod that comes after it has none of them."""
    labels = POD["metadata"]["labels"] | {key: "a"}
    labelled = POD | {"metadata": POD["metadata"] | {"labels": labels}}
    bound = labelled | {"spec": POD["spec"] | {"nodeName": "n-1"}}
    waiting, shape_of_waiting = pod(POD)
    found, shape = pod(bound)
    assert (found.shape, shape) == (waiting.shape, shape_of_waiting)
    assert pod(labelled)[1].labels == labels


@pytest.mark.parametrize(
    ("version", "status", "arrival"),
    [
        ("417", {}, 417),
        ("417", {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}, 0),
        ("", {}, 0),
        ("v417", {}, 0),
        ("9" * 19, {}, 0),
    ],
)
def test_the_arrival_of_a_pod_is_its_version_until_the_scheduler_says_something(
    version: str, status: dict[str, Any], arrival: int
) -> None:
    """It tells pods of one second apart. Later versions say when the pod changed, not when it came."""
    found, _ = pod(POD | {"metadata": POD["metadata"] | {"resourceVersion": version}, "status": status})
    assert found.arrival == arrival


@pytest.mark.parametrize(("reason", "waits"), [("Unschedulable", True), ("SchedulingGated", False)])
def test_a_pod_waits_for_a_node_by_the_reason_of_pod_scheduled(reason: str, waits: bool) -> None:
    """S-40: the condition's status is not looked at."""
    status = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]}
    found, _ = pod(POD | {"status": status})
    assert found.unschedulable is waits
    assert is_provisionable(found) is waits


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([], None),
        ([("apps/v1", "ReplicaSet", "r", True)], Owner("apps/v1/ReplicaSet", "r", "u")),
        ([("apps/v1", "ReplicaSet", "r", None)], None),
        ([("v1", "Node", "n", None)], Owner("v1/Node", "n", "u", controller=False)),
        ([("batch/v1", "Job", "j", True), ("apps/v1", "DaemonSet", "d", True)], Owner("apps/v1/DaemonSet", "d", "u")),
        ([("x/v1", "X", "x", None), ("apps/v1", "StatefulSet", "s", True)], Owner("apps/v1/StatefulSet", "s", "u")),
        ([("apps/v1", "StatefulSet", "s", None)], Owner("apps/v1/StatefulSet", "s", "u", controller=False)),
    ],
)
def test_owner(references: list[tuple[str, str, str, bool | None]], owner: Owner | None) -> None:
    """D-10: any reference to a DaemonSet, StatefulSet or Node counts; otherwise the controller (S-151)."""
    wires = [{"apiVersion": a, "kind": k, "name": n, "uid": "u", "controller": c} for a, k, n, c in references]
    assert pod(changed(POD, "metadata.ownerReferences", wires))[0].owner == owner


def test_annotations_that_decide() -> None:
    """do-not-disrupt and the deletion cost are read from annotations (D-12, D-36)."""
    annotations = {
        "karpenter.sh/do-not-disrupt": "30m",
        "controller.kubernetes.io/pod-deletion-cost": "-100",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    found, _ = pod(changed(POD, "metadata.annotations", annotations))
    assert (found.do_not_disrupt, found.deletion_cost) == ("30m", -100)


@pytest.mark.parametrize("text", ["cheap", "inf", "nan"])
def test_an_unreadable_deletion_cost_counts_as_zero_and_is_noted(text: str) -> None:
    """An unreadable deletion cost counts as zero and is noted (D-36)."""
    decoded = decode(changed(POD, "metadata.annotations", {"controller.kubernetes.io/pod-deletion-cost": text}))
    assert [(note.code, note.params) for note in decoded.notes] == [("deletion-cost-ignored", {"value": text})]


def test_node_affinity() -> None:
    expression = {"key": "team", "operator": "In", "values": ["red", "blue"]}
    affinity = {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}, {"matchFields": [expression]}]},
            PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [expression]}}],
        }
    }
    shape = pod(with_spec(affinity=affinity, nodeSelector={"a": "b"}))[1]
    team = Expression("team", "In", ("red", "blue"))
    assert shape.required_terms == (NodeTerm((team,)), NodeTerm((), (team,)))
    assert shape.preferred_terms == (PreferredNodeTerm(7, NodeTerm((team,))),)
    assert shape.node_selector == {"a": "b"}


def test_pod_affinity_and_anti_affinity() -> None:
    required = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["a", "b"]}
    preferred = {"weight": 40, "podAffinityTerm": {"topologyKey": "host", "namespaceSelector": {}}}
    affinity = {
        "podAffinity": {REQUIRED: [required], PREFERRED: [preferred]},
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "host", "matchLabelKeys": ["pod-template-hash"]}]},
    }
    shape = pod(with_spec(affinity=affinity))[1]
    first = AffinityTerm("zone", Selector({"app": "db"}), ("a", "b"))
    assert shape.affinity == (first, AffinityTerm("host", None, (), Selector(), 40))
    assert shape.anti_affinity == (AffinityTerm("host", match_label_keys=("pod-template-hash",)),)


def test_topology_spread_with_the_apis_defaults() -> None:
    """S-122; a missing selector matches nothing, an empty one everything (S-123)."""
    spread = [
        {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}},
        {"topologyKey": "host", "nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore", "minDomains": 3},
    ]
    assert pod(with_spec(topologySpreadConstraints=spread))[1].spread == (
        SpreadConstraint("zone", 2, "ScheduleAnyway", Selector()),
        SpreadConstraint("host", min_domains=3, node_affinity_policy="Ignore", node_taints_policy="Honor"),
    )


def test_tolerations() -> None:
    tolerations = [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 60}]
    shape = pod(with_spec(tolerations=tolerations))[1]
    assert shape.tolerations == (Toleration(operator="Exists"), Toleration("a", "Equal", "b", "NoExecute", 60))


def test_host_ports_are_sorted_and_those_of_init_containers_do_not_count() -> None:
    """S-97: an unset host IP is 0.0.0.0; protocol TCP."""
    ports = [{"containerPort": 1}, {"hostPort": 443}, {"hostPort": 80, "hostIP": "::", "protocol": "UDP"}]
    spec = {"containers": [{"ports": ports}], "initContainers": [{"ports": [{"hostPort": 9}]}]}
    assert pod(POD | {"spec": spec})[1].host_ports == (HostPort(80, "UDP", "::"), HostPort(443, "TCP", "0.0.0.0"))


def test_only_volumes_of_claims_matter() -> None:
    """Only volumes of claims matter (S-152)."""
    volumes = [
        {"name": "token", "projected": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "pvc-0"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}},
        {"name": "any", "ephemeral": {}},
    ]
    assert pod(with_spec(volumes=volumes))[1].volumes == (
        VolumeRef("data", "pvc-0"),
        VolumeRef("tmp", storage_class="gp3"),
        VolumeRef("any"),
    )


def test_priority_grace_and_resource_claims() -> None:
    shape = pod(
        with_spec(
            priority=5, priorityClassName="high", terminationGracePeriodSeconds=0, resourceClaims=[{"name": "gpu"}]
        )
    )[1]
    assert (shape.priority, shape.priority_class, shape.grace, shape.resource_claims) == (5, "high", 0, ("gpu",))
    assert pod(POD)[1].grace is None


def test_pods_that_differ_only_in_what_scheduling_ignores_share_a_shape() -> None:
    other = changed(POD, "metadata.name", "web-1")
    other = changed(other, "spec.volumes", [{"name": "kube-api-access-x7k", "projected": {}}])
    other = changed(other, "spec.containers.0.env", [{"name": "A", "value": "1"}])
    assert pod(other)[0].shape == pod(POD)[0].shape
    assert pod(changed(POD, "metadata.labels", {"app": "db"}))[0].shape != pod(POD)[0].shape


@pytest.mark.parametrize(
    ("path", "value", "code", "where"),
    [
        ("metadata.name", ..., "KERF304", "metadata.name"),
        ("metadata.labels", {"a": 1, "b": "x"}, "KERF303", "metadata.labels[a]"),
        ("metadata.creationTimestamp", "yesterday", "KERF308", "metadata.creationTimestamp"),
        ("status.phase", "Sleeping", "KERF305", "status.phase"),
        (
            "spec.containers.0.resources.requests.memory",
            "1GB",
            "KERF306",
            "spec.containers[0].resources.requests[memory]",
        ),
        ("spec.containers.0.resources.limits", {"cpu": "-1"}, "KERF306", "spec.containers[0].resources.limits[cpu]"),
        ("spec.containers", {}, "KERF303", "spec.containers"),
        (
            "spec.containers.0.ports",
            [{"hostPort": 1, "protocol": "IP"}],
            "KERF305",
            "spec.containers[0].ports[0].protocol",
        ),
        ("spec.nodeSelector", {"a": True}, "KERF303", "spec.nodeSelector[a]"),
        ("spec.tolerations", [{"operator": "Like"}], "KERF305", "spec.tolerations[0].operator"),
        ("spec.tolerations", [{"effect": "Never"}], "KERF305", "spec.tolerations[0].effect"),
        (
            "spec.topologySpreadConstraints",
            [{"topologyKey": "z", "whenUnsatisfiable": "Perhaps"}],
            "KERF305",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        ("spec.topologySpreadConstraints", [{}], "KERF304", "spec.topologySpreadConstraints[0].topologyKey"),
        (
            "spec.topologySpreadConstraints",
            [{"topologyKey": "z", "maxSkew": 0}],
            "KERF309",
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            "spec.affinity.nodeAffinity",
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}},
            "KERF305",
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
        (
            "spec.affinity.podAntiAffinity",
            {REQUIRED: [{"labelSelector": {}}]},
            "KERF304",
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
        ),
        (
            "spec.affinity.podAffinity",
            {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]},
            "KERF309",
            f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
        ),
        (
            "metadata.annotations",
            {"karpenter.sh/do-not-disrupt": True},
            "KERF303",
            "metadata.annotations[karpenter.sh/do-not-disrupt]",
        ),
    ],
)
def test_refusals_name_the_field(path: str, value: Any, code: str, where: str) -> None:
    assert refusals(changed(POD, path, value)) == {where: code}


@pytest.mark.parametrize(
    "path", ["spec.nodeSelector", "spec.volumes", "spec.tolerations", "status.conditions", "spec.affinity"]
)
def test_null_is_an_absent_field(path: str) -> None:
    assert decode(changed(POD, path, None)) == decode(POD)


def test_a_refused_shape_is_refused_again() -> None:
    """Only good shapes are remembered."""
    bad = changed(POD, "spec.tolerations", [{"operator": "Like"}])
    assert refusals(bad) == refusals(bad) != {}


def test_items_of_typed_lists_name_no_kind() -> None:
    item = {key: value for key, value in POD.items() if key not in ("apiVersion", "kind")}
    assert decode_object(msgspec.json.encode(item), assume="v1/Pod").object == decode(POD).object


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**80])
def test_an_integer_beyond_the_apis_width_is_refused(value: int) -> None:
    """A record keeps integers of 64 bits: a wider one would end the loop when it is written."""
    assert refusals(changed(POD, "spec.priority", value)) == {"spec.priority": "KERF309"}


def test_amounts_beyond_64_bits_count_as_the_largest() -> None:
    huge = [{"name": name, "resources": {"requests": {"cpu": "10E", "memory": "10E"}}} for name in "ab"]
    assert pod(with_spec(containers=huge))[1].requests == {"cpu": 2**63 - 1, "memory": 2**63 - 1}
    annotations = {"controller.kubernetes.io/pod-deletion-cost": "1e300"}
    assert pod(changed(POD, "metadata.annotations", annotations))[0].deletion_cost == 2**63 - 1
