"""Good and bad manifests, made from a table of the specification's rules: what the API server must say to each.

A row changes one field of a small valid object to values that a rule allows, and to values that it refuses. The same
cases are asked of kerf's offline check (tests/unit/model/manifests/test_corpus.py) and of a real API server
(tests/controlplane/objects/test_crds.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, Document, changed

CLAIM: Document = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "default-x7k2m"},
    "spec": NODE_POOL["spec"]["template"]["spec"],
}
OVERLAY: Document = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "NodeOverlay",
    "metadata": {"name": "cheaper"},
    "spec": {"requirements": []},
}
BUFFER: Document = {
    "apiVersion": "autoscaling.x-k8s.io/v1beta1",
    "kind": "CapacityBuffer",
    "metadata": {"name": "room", "namespace": "default"},
    "spec": {},
}
KWOK: Document = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
    "spec": {},
}


class Case(NamedTuple):
    """`name` is "rule kind path number"."""

    name: str
    document: Document
    accepted: bool


class Row(NamedTuple):
    rule: str
    path: str
    good: Sequence[Any] = ()
    bad: Sequence[Any] = ()


def requirement(**fields: Any) -> list[dict[str, Any]]:
    return [{"key": "team", "operator": "In", "values": ["a"]} | fields]


def requirements(*rows: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [requirement(**row) for row in rows]


def many(count: int, value: Any = "x") -> dict[str, Any]:
    return {f"k{number}": value for number in range(count)}


DURATIONS = ["0s", "30m", "1h30m", "90s", "720h", "1h1h"]
NO_DURATIONS = ["", "30", "30d", "1.5h", "-5m", "5m ", "5ms", "never", " 5m", 30]
QUANTITIES = [{"cpu": "100"}, {"cpu": 100}, {"memory": "1.5Gi"}, {"x.y/z": "1e3"}, {"nodes": ".5"}, {"cpu": "+1"}, {}]
NO_QUANTITIES = [
    {"cpu": "lots"},
    {"cpu": ""},
    {"cpu": "1 Gi"},
    {"cpu": "1gi"},
    {"cpu": "1.2.3"},
    {"cpu": True},
    ["cpu"],
]
KEYS = ["team", "example.com/team", "A", "a.b-c_d", "kubernetes.io/arch", "node.k8s.io/x", "karpenter.sh/capacity-type",
        "karpenter.k8s.aws/instance-cpu", "karpenter.kwok.sh/instance-family", "a" * 63, "a" * 316]  # fmt: skip
NO_KEYS = ["", "-a", "a-", "Example.com/a", "a/b/c", "/a", "a b", "karpenter.sh/other", "foo.karpenter.sh/x",
           "notkarpenter.sh/x", "karpenter.sh", "karpenter.k8s.aws/instance-pods", "karpenter.kwok.sh/x",
           "kubernetes.io/hostname", "a" * 317]  # fmt: skip
TAINTS = [
    [],
    [{"key": "k", "effect": "NoSchedule"}],
    [{"key": "example.com/k", "value": "v", "effect": "NoExecute"}],
    [{"key": "k", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
]
NO_TAINTS = [
    [{"effect": "NoSchedule"}],
    [{"key": "", "effect": "NoSchedule"}],
    [{"key": "k"}],
    [{"key": "k", "effect": ""}],
    [{"key": "k", "effect": "noschedule"}],
    [{"key": "k!", "effect": "NoSchedule"}],
    [{"key": "k", "value": "", "effect": "NoSchedule"}],
    [{"key": "k", "value": "a b", "effect": "NoSchedule"}],
    [{"key": "k", "effect": "NoSchedule", "timeAdded": "yesterday"}],
    {"key": "k", "effect": "NoSchedule"},
]
REFS = [{"group": "g", "kind": "K", "name": "n"}, {"group": "a.b.c", "kind": "K", "name": "n"}]
NO_REFS = [
    ..., {}, "default", {"kind": "K", "name": "n"}, {"group": "g", "name": "n"}, {"group": "g", "kind": "K"},
    {"group": "", "kind": "K", "name": "n"}, {"group": "g", "kind": "", "name": "n"},
    {"group": "g", "kind": "K", "name": ""}, {"group": "g/v1", "kind": "K", "name": "n"},
    {"group": "g", "kind": "K", "name": "n", "apiVersion": "g/v1"},
]  # fmt: skip
LISTS = requirements(
    {"values": ["a", "b"]}, {"operator": "NotIn"}, {"operator": "NotIn", "values": []}, {"operator": "Exists"},
    {"operator": "DoesNotExist", "values": []}, {"operator": "Gt", "values": ["0"]},
    {"operator": "Gte", "values": ["9223372036854775807"]}, {"operator": "Lt", "values": ["5"]},
    {"operator": "Lte", "values": ["+5"]}, {"values": ["bad value!"]}, {"values": ["a", "b"], "minValues": 2},
    {"operator": "Exists", "values": [], "minValues": 50}, {"operator": "Exists", "values": ["a"]},
)  # fmt: skip
NO_LISTS = requirements(
    {"values": []}, {"values": None}, {"operator": "in"}, {"operator": ""}, {"operator": None}, {"values": [4]},
    {"values": "a"}, {"operator": "Gt", "values": []}, {"operator": "Gt", "values": ["1", "2"]},
    {"operator": "Gt", "values": ["x"]}, {"operator": "Lt", "values": ["-1"]}, {"operator": "Lt", "values": ["1.5"]},
    {"operator": "Gte", "values": ["9223372036854775808"]}, {"operator": "Lte", "values": [""]}, {"minValues": 0},
    {"minValues": 51, "values": ["a"] * 60}, {"minValues": 2}, {"minValues": "1"}, {"key": None}, {"extra": 1},
)  # fmt: skip


def claim_rows(path: str, *, keys: Sequence[str], no_keys: Sequence[str]) -> list[Row]:
    """The rows of what a NodePool's template and a NodeClaim have in common (L-42)."""
    return [
        Row("L-12", f"{path}.taints", TAINTS, NO_TAINTS),
        Row("L-12", f"{path}.startupTaints", TAINTS[1:2], NO_TAINTS[:3]),
        Row("L-13", f"{path}.requirements", [[], requirement() * 100], [..., requirement() * 101, {}, "x"]),
        Row("L-14", f"{path}.nodeClassRef", REFS, NO_REFS),
        Row("L-15", f"{path}.expireAfter", [*DURATIONS, "Never"], NO_DURATIONS),
        Row("L-16", f"{path}.terminationGracePeriod", DURATIONS[:2], ["Never", "30d", ""]),
        Row("L-32", f"{path}.requirements", requirements(*({"key": k} for k in keys))),
        Row("L-32", f"{path}.requirements", (), requirements(*({"key": k} for k in no_keys))),
        Row("L-33", f"{path}.requirements", LISTS, NO_LISTS),
    ]


def static(**fields: Any) -> Document:
    spec: Document = NODE_POOL["spec"] | {"replicas": 2} | fields
    return spec


BUDGETS = "spec.disruption.budgets"
POOL_ROWS = [
    Row("L-9", "spec", (), [..., {}, None, "x", {"template": {}}, {"template": {"spec": {}}}]),
    Row("L-10", "spec.template.metadata.labels",
        [{}, {"team": "a"}, {"team": ""}, {"a": "x" * 63}, many(100), {"karpenter.sh/capacity-type": "spot"},
         {"karpenter.k8s.aws/instance-cpu": "4"}, {"kubernetes.io/x": "y"}, {"not a key": "x"}],
        [{"a": "x" * 64}, {"a": "-"}, {"a": "b c"}, many(101), {"karpenter.sh/nodepool": "x"},
         {"kubernetes.io/hostname": "x"}, {"karpenter.sh/x": "y"}, {"notkarpenter.sh/x": "y"}, {"karpenter.sh": "y"},
         {"karpenter.k8s.aws/instance-pods": "4"}, {"a": 1}, ["a"]]),
    Row("L-11", "spec.template.metadata.annotations", [{}, {"a": "any thing"}], [{"a": 1}, "a"]),
    *claim_rows("spec.template.spec", keys=KEYS, no_keys=[*NO_KEYS, "karpenter.sh/nodepool"]),
    Row("L-17", "spec.disruption", [{}, {"consolidateAfter": "0s"}], ["x", [], {"expireAfter": "720h"}]),
    Row("L-18", "spec.disruption.consolidateAfter", [*DURATIONS[:2], "Never", None], ["30d", "soon", 0]),
    Row("L-19", "spec.disruption.consolidationPolicy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        ["WhenUnderutilized", "", "whenempty"]),
    Row("L-20", BUDGETS, [[], [{}], [{"nodes": "0"}] * 50], [[{"nodes": "0"}] * 51, {}, [None]]),
    Row("L-20", BUDGETS, [[{"schedule": "@daily", "duration": "1h"}]],
        [[{"schedule": "@daily"}], [{"duration": "1h"}], [{"nodes": "1"}, {"schedule": "@daily"}]]),
    Row("L-21", f"{BUDGETS}", [[{"nodes": n}] for n in ("0", "5", "0%", "99%", "100%", "007", "12345678901")],
        [[{"nodes": n}] for n in ("", "101%", "-1", "5 %", "1.5", "100 ", 5, "%")]),
    Row("L-22", f"{BUDGETS}", [[{"schedule": s, "duration": "1h"}]
                               for s in ("@daily", "@hourly", "0 2 * * *", "*/5 * * * 1-5", "a b c d e", "@dailyfoo")],
        [[{"schedule": s, "duration": "1h"}] for s in ("", "daily", "0 2 * *", "@", "@reboot", 5)]),
    Row("L-23", f"{BUDGETS}", [[{"schedule": "@daily", "duration": d}] for d in ("8h", "30m", "1h30m", "8h0s", "0m")],
        [[{"schedule": "@daily", "duration": d}] for d in ("90s", "1h90s", "30m1h", "", "1d", "Never", "8h1s")]),
    Row("L-24", f"{BUDGETS}", [[{"nodes": "1", "reasons": r}] for r in ([], ["Empty"], ["Drifted", "Underutilized"])],
        [[{"nodes": "1", "reasons": r}] for r in (["empty"], ["Expired"], [""], "Empty", ["Empty", "Empty"])]),
    Row("L-25", "spec.limits", QUANTITIES, NO_QUANTITIES),
    Row("L-26", "spec.weight", [1, 100, None], [0, 101, -1, "10", 1.5]),
    Row("L-27", "spec.replicas", [0, 5, (1 << 31) - 1], [-1, "1", 1 << 31, 1 << 64]),
    Row("L-29", "spec", [static(limits={"nodes": 3}), static(limits={}), static()],
        [static(limits={"cpu": 1}), static(limits={"nodes": 3, "cpu": 1}), static(weight=1)]),
    Row("unknown", "spec.template.spec.kubelet", (), [{"maxPods": 20}]),
    Row("unknown", "spec.tempalte", (), [{}, None]),
    Row("name", "metadata.name", ["a", "a.b-c", "0"], ["A", "a_b", "-a", "a" * 254]),
]  # fmt: skip

CLAIM_ROWS = [
    *claim_rows("spec", keys=["karpenter.sh/nodepool", *KEYS[:2]], no_keys=NO_KEYS[-6:]),
    Row("L-43", "spec.resources", [{}, {"requests": {}}, {"requests": {"cpu": "1"}}],
        [{"requests": {"cpu": "x"}}, {"limits": {"cpu": 1}}, []]),
]  # fmt: skip

OVERLAY_ROWS = [
    Row("L-49", "spec.requirements", [[], *LISTS[:1], *LISTS[3:8]],
        [..., *NO_LISTS[:8], *requirements({"operator": "NotIn", "values": None}, {"operator": "NotIn", "values": []},
                                           {"operator": "Exists", "minValues": 1})]),
    Row("L-49", "spec.requirements", requirements({"key": "karpenter.sh/nodepool"}, {"key": KEYS[7]}),
        requirements({"key": "kubernetes.io/hostname"}, {"key": "karpenter.sh/x"},
                     {"key": "karpenter.k8s.aws/instance-tenancy"},
                     {"key": "karpenter.k8s.aws/capacity-reservation-id"},
                     {"key": "karpenter.k8s.aws/placement-group-id"})),
    Row("L-50", "spec.price", ["0", "1", "0.25", "100.5"], ["", "-1", "+1", ".5", "1.", "1e3", 1, "1 USD"]),
    Row("L-50", "spec.priceAdjustment", ["+0.5", "-.3", "+250%", "-15%", "-15.5%", "-100%", "-3", "+1000"],
        ["", "0.5", "20%", "-150%", "-101%", "+", "+-1", "+1 %", 1]),
    Row("L-50", "spec", (), [{"requirements": [], "price": "1", "priceAdjustment": "+1"}]),
    Row("L-52", "spec.capacity", [{}, {"x/y": 1}, {"nvidia.com/gpu": "2"}],
        [{"cpu": 1}, {"memory": "1Gi", "x/y": 1}, {"ephemeral-storage": 1}, {"pods": 1}, {"x/y": "z"}]),
    Row("L-52", "spec.weight", [1, 10_000], [0, 10_001, "1"]),
    Row("L-49", "spec", (), [...]),
]  # fmt: skip

BUFFER_ROWS = [
    Row("L-57", "spec", [
        {}, {"podTemplateRef": {"name": "t"}, "replicas": 1}, {"podTemplateRef": {"name": "t"}, "limits": {"cpu": 1}},
        {"scalableRef": {"kind": "Deployment", "name": "d"}, "percentage": 20},
        {"scalableRef": {"apiGroup": "apps", "kind": "D", "name": "d"}}, {"provisioningStrategy": "any"},
    ], [
        ..., {"podTemplateRef": {"name": "t"}}, {"podTemplateRef": {"name": ""}, "replicas": 1},
        {"podTemplateRef": {}, "replicas": 1}, {"scalableRef": {"kind": "", "name": "d"}},
        {"scalableRef": {"kind": "D"}}, {"scalableRef": {"kind": "D", "name": "d"}, "replicas": 1,
                                         "podTemplateRef": {"name": "t"}},
        {"replicas": -1}, {"percentage": -1}, {"replicas": "1"}, {"replicas": 1 << 31}, {"limits": {"cpu": "x"}},
        {"size": 1},
    ]),
]  # fmt: skip

KWOK_ROWS = [
    Row("L-63", "spec.nodeRegistrationDelay", DURATIONS[:3], ["Never", "1d", "", 5]),
    Row("L-63", "spec", [..., {}], ["x", {"delay": "5s"}]),
]

TAGS = [{}, {"a": "b"}, {"a": "*"}, many(20)]
NO_TAGS = [{"": "b"}, {"a": ""}, many(21), {"a": 1}, ["a"]]


def ec2(**fields: Any) -> Document:
    spec = EC2_NODE_CLASS["spec"] | fields
    return {key: value for key, value in spec.items() if value is not ...}


def images(*terms: list[dict[str, Any]]) -> list[Document]:
    return [ec2(amiFamily="AL2023", amiSelectorTerms=term) for term in terms]


def ebs(*volumes: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [[{"deviceName": "/dev/xvda", "ebs": volume}] for volume in volumes]


def interfaces(*places: tuple[int, int, str]) -> list[dict[str, Any]]:
    names = ("networkCardIndex", "deviceIndex", "interfaceType")
    return [dict(zip(names, place, strict=True)) for place in places]


PRIMARY = (0, 0, "interface")
AMIS = "spec.amiSelectorTerms"
EC2_ROWS = [
    Row("A-25", "spec.subnetSelectorTerms",
        [[{"id": "subnet-1"}], [{"id": "x-subnet-1"}], [{"tags": {"a": "b"}}] * 30, *([{"tags": t}] for t in TAGS),
         [{"id": "subnet-1", "tags": {"a": "b"}}, {"id": "subnet-2"}]],
        [..., [], [{}], [{"id": "vpc-1"}], [{"id": ""}], [{"id": "subnet-1"}] * 31, *([{"tags": t}] for t in NO_TAGS),
         [{"id": "subnet-1", "tags": {"a": "b"}}], [{"name": "x"}], {}]),
    Row("A-26", "spec.securityGroupSelectorTerms",
        [[{"id": "sg-1"}], [{"name": "n"}], [{"name": ""}], [{"id": "sg-1", "name": "n"}, {"name": "m"}]],
        [..., [], [{}], [{"id": "g"}], [{"id": "sg-1", "name": "n"}], [{"name": "n", "tags": {"a": "b"}}],
         [{"id": "sg-1"}] * 31]),
    Row("A-27", "spec.capacityReservationSelectorTerms",
        [[], [{"id": "cr-1"}], [{"tags": {"a": "b"}, "ownerID": "123456789012"}], [{"instanceMatchCriteria": "open"}]],
        [[{}], [{"ownerID": "123456789012"}], [{"id": "x-cr-1"}], [{"id": "cr-1", "ownerID": "123456789012"}],
         [{"tags": {"a": "b"}, "ownerID": "me"}], [{"instanceMatchCriteria": "any"}], [{"id": "cr-1"}] * 31]),
    Row("A-28", "spec.placementGroupSelector", [{"name": "n"}, {"id": "pg-1"}],
        [{}, {"name": ""}, {"id": "x"}, {"name": "n", "id": "pg-1"}]),
    Row("A-29", "spec", images([{"id": "ami-1"}], [{"name": "n", "owner": "self"}], [{"ssmParameter": "/x"}],
                               [{"tags": {"a": "b"}}, {"id": "ami-2"}], [{"alias": "al2023@latest"}]),
        images([], [{}], [{"owner": "self"}], [{"id": "x"}], [{"id": "ami-1", "name": "n"}],
               [{"id": "ami-1", "owner": "self"}], [{"id": "ami-1", "tags": {"a": "b"}}, {"id": "ami-2"}],
               [{"alias": "al2023@latest"}, {"id": "ami-1"}], [{"alias": "al2023@latest", "name": "n"}],
               [{"alias": "al2023@latest"}] * 2, [{"id": "ami-1"}] * 31)),
    Row("A-30", AMIS, [[{"alias": a}] for a in ("al2@latest", "al2023@v20240807", "bottlerocket@v1.10.0",
                                                "windows2022@latest", "windows2025@latest")],
        [[{"alias": a}] for a in ("al2", "al2@", "@latest", "ubuntu@latest", "windows2022@v1", "", "al2@" + "x" * 27,
                                  "AL2023@latest", "Windows2025@latest",
                                  "al 2@latest")]),
    Row("A-31", "spec.amiFamily", ["AL2023", "Custom", None], ["AL2", "Ubuntu", "", "al2023", "Windows2022"]),
    Row("A-31", "spec", [ec2(amiFamily=f, amiSelectorTerms=[{"id": "ami-1"}]) for f in
                         ("AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")],
        [ec2(amiSelectorTerms=[{"id": "ami-1"}])]),
    Row("A-32", "spec.userData", ["", "#!/bin/sh"], [["#!"], 1]),
    Row("A-33", "spec", [ec2(role=..., instanceProfile="p")],
        [ec2(instanceProfile="p"), ec2(role=...), ec2(role=""), ec2(role=..., instanceProfile="")]),
    Row("A-34", "spec.tags", [{}, {"a": ""}, {"a": "b"}, {"karpenter.sh/x": "y"}, many(60)],
        [{"": "x"}, {"eks:eks-cluster-name": "c"}, {"kubernetes.io/cluster/x": "owned"}, {"kubernetes.io/cluster": ""},
         {"karpenter.sh/nodepool": "x"}, {"karpenter.sh/nodeclaim": "x"}, {"karpenter.k8s.aws/ec2nodeclass": "x"}]),
    Row("A-35", "spec.kubelet", [{}, {"maxPods": 20, "anything": [{"goes": True}]}], [[], "x"]),
    Row("A-36", "spec.blockDeviceMappings",
        [[], [{}], [{"rootVolume": True}, {"rootVolume": False}, {}], [{"deviceName": "/dev/xvda"}] * 50,
         *ebs({"volumeSize": "1Gi", "iops": 3000, "encrypted": True, "kmsKeyID": "k"}, {"snapshotID": ""},
              {"snapshotID": "s", "volumeInitializationRate": 100}, {"volumeSize": "1Gi", "volumeType": "io2"})],
        [[{"rootVolume": True}] * 2, [{}] * 51,
         *ebs({}, {"volumeSize": "1Gi", "volumeType": "gp4"}, {"volumeSize": "1Gi", "encrypted": "yes"},
              {"volumeSize": "1Gi", "volumeInitializationRate": 200},
              {"snapshotID": "s", "volumeInitializationRate": 99},
              {"snapshotID": "", "volumeInitializationRate": 200}, {"snapshotID": "s", "volumeInitializationRate": 301},
              {"volumeSize": "1Gi", "iops": "many"})]),
    Row("A-37", "spec.blockDeviceMappings",
        ebs(*({"volumeSize": s} for s in ("1Gi", "20Gi", "59000Gi", "64000G", "1G", "9Ti", "10Ti", "57Ti", "58Ti",
                                          "64T", "Ti", "T"))),
        ebs(*({"volumeSize": s} for s in ("", "0Gi", "59001Gi", "64001G", "18Ti", "59Ti", "65T", "20", "20Mi", "1.5Gi",
                                          "01Gi", 20)))),
    Row("A-38", "spec.instanceStorePolicy", ["RAID0"], ["RAID5", ""]),
    Row("A-39", "spec.networkInterfaces",
        [[], interfaces(PRIMARY), interfaces(PRIMARY, (0, 1, "efa-only"), (1, 1, "efa-only")),
         interfaces(PRIMARY, (0, 1, "interface"))],
        [[{"networkCardIndex": 0, "deviceIndex": 0}], [{"networkCardIndex": 0, "interfaceType": "interface"}],
         interfaces((0, 1, "interface")), interfaces((0, 0, "efa-only")), interfaces(PRIMARY, PRIMARY),
         interfaces(PRIMARY, (0, 1, "efa-only"), (0, 2, "efa-only")), interfaces(PRIMARY, (-1, 0, "interface")),
         interfaces(PRIMARY, (0, 1, "ena")), interfaces(*((0, n, "interface") for n in range(151)))]),
    Row("A-40", "spec.detailedMonitoring", [True, False], ["true", 1]),
    Row("A-40", "spec.associatePublicIPAddress", [True], ["yes"]),
    Row("A-41", "spec.ipPrefixCount", [0, 4], [-1, "1", 1 << 31]),
    Row("A-42", "spec.metadataOptions",
        [{}, {"httpTokens": "optional"}, {"httpPutResponseHopLimit": 64}, {"httpEndpoint": "disabled"}],
        [{"httpTokens": "never"}, {"httpEndpoint": "on"}, {"httpProtocolIPv6": ""}, {"httpPutResponseHopLimit": 0},
         {"httpPutResponseHopLimit": 65}, {"httpPort": 80}]),
    Row("A-43", "spec.connectionTracking",
        [{"udpTimeout": 30}, {"tcpEstablishedTimeout": 432_000, "udpStreamTimeout": 60}],
        [{}, {"udpTimeout": 29}, {"udpTimeout": 61}, {"udpStreamTimeout": 181}, {"tcpEstablishedTimeout": 59},
         {"tcpEstablishedTimeout": 432_001}]),
    Row("A-44", "spec.context", ["x", ""], [1]),
    Row("A-45", "spec.cpuOptions", [{}, {"nestedVirtualization": "enabled"}],
        [{"nestedVirtualization": "on"}, {"cores": 2}]),
    Row("A-23", "spec", [...], [{}]),
]  # fmt: skip

OWNER: Document = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}
METADATA: list[Document] = [
    {"labels": {"a.b/C": ""}}, {"labels": {"a": None}}, {"annotations": {"A.B/c": "any thing"}}, {"annotations": None},
    {"annotations": {"a": "x" * 262_143}}, {"finalizers": ["a", "a.b/c"]}, {"ownerReferences": [OWNER, OWNER]},
    {"generation": 5, "creationTimestamp": None, "uid": "u"}, {"creationTimestamp": "2026-01-01T00:00:00Z"},
    {"ownerReferences": [OWNER | {"controller": True}] * 2},
]  # fmt: skip
NO_METADATA: list[Document] = [
    {"labels": {"a b": "c"}}, {"labels": {"": "c"}}, {"labels": {"a": "-"}}, {"labels": {"a": "x" * 64}},
    {"labels": {"A.b/c": ""}},
    {"labels": {"a": 1}}, {"labels": []}, {"annotations": {"a b": "c"}}, {"annotations": {"": None}},
    {"annotations": {"a": {}}}, {"annotations": {"a": "x" * 262_144}}, {"finalizers": ["a b"]}, {"finalizers": "a"},
    {"finalizers": ["orphan", "foregroundDeletion"]}, {"ownerReferences": [{"kind": "K"}]},
    {"ownerReferences": [OWNER | {"uid": ""}]}, {"ownerReferences": [OWNER | {"x": 1}]},
    {"ownerReferences": [OWNER | {"controller": True}, OWNER | {"controller": True, "uid": "v"}]}, {"generation": "1"},
    {"creationTimestamp": "soon"}, {"clusterName": "c"}, {"Labels": {}}, {"": 1},
]  # fmt: skip
METADATA_ROWS = [
    Row(
        "metadata",
        "metadata",
        [{"name": "x"} | good for good in METADATA],
        [{"name": "x"} | bad for bad in NO_METADATA],
    )
]

TABLE: tuple[tuple[Document, Sequence[Row]], ...] = (
    (NODE_POOL, [*POOL_ROWS, *METADATA_ROWS]),
    (CLAIM, CLAIM_ROWS),
    (OVERLAY, OVERLAY_ROWS),
    (BUFFER, [*BUFFER_ROWS, *METADATA_ROWS]),
    (KWOK, KWOK_ROWS),
    (EC2_NODE_CLASS, [*EC2_ROWS, *METADATA_ROWS]),
)


def cases() -> Iterator[Case]:
    """Every case, named by rule, kind and field, with the verdict that the specification demands."""
    numbers: Counter[str] = Counter()
    for base, rows in TABLE:
        sound = changed(base, "metadata", {key: value for key, value in base["metadata"].items() if key != "uid"})
        yield Case(f"{base['kind']} as it is", sound, accepted=True)
        for row in rows:
            for accepted, values in ((True, row.good), (False, row.bad)):
                group = f"{row.rule} {base['kind']} {row.path} {'good' if accepted else 'bad'}"
                for value in values:
                    numbers[group] += 1
                    yield Case(f"{group} {numbers[group]}", changed(sound, row.path, value), accepted)


CASES = tuple(cases())
