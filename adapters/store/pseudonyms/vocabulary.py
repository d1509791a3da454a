"""Words of Kubernetes', EC2's and Karpenter's own, which stay in a pseudonymised copy where others are replaced."""

from __future__ import annotations

import re

from kerf.engine.model import labels

_RESOURCES = re.compile(
    r"cpu|memory|pods|nodes|storage|ephemeral-storage|hugepages-\d+[KMGT]i"
    r"|nvidia\.com/(gpu(\.shared)?|mig-\d+g\.\d+gb)|amd\.com/gpu|habana\.ai/gaudi"
    r"|aws\.amazon\.com/(neuron|neuroncore|neurondevice)|vpc\.amazonaws\.com/(pod-eni|efa|PrivateIPv4Address)"
)
_DRIVERS = re.compile(
    r"(ebs|efs|fsx|s3|file)\.csi\.aws\.com|ebs\.csi\.eks\.amazonaws\.com|s3\.csi\.scality\.com|csi\.local"
    r"|kubernetes\.io/[a-z-]+|secrets-store\.csi\.k8s\.io|csi\.tigera\.io"
)
_OBJECT_KINDS = re.compile(
    r"(v1/)?(Node|Pod|PodTemplate|ReplicationController|Service)"
    r"|(apps/v1/)?(ControllerRevision|DaemonSet|Deployment|ReplicaSet|StatefulSet)|(batch/v1/)?(CronJob|Job)"
    r"|karpenter\.sh/v1/(NodeClaim|NodePool)"
)
_NODECLASS_GROUPS = re.compile(r"karpenter\.k8s\.aws|karpenter\.kwok\.sh")
_NODECLASS_KINDS = re.compile(r"EC2NodeClass|KWOKNodeClass")
_HOST_IPS = re.compile(r"0\.0\.0\.0|::|127\.0\.0\.1|::1")
_PRIORITY_CLASSES = re.compile(r"system-(node|cluster)-critical")

KNOWN: dict[str, re.Pattern[str]] = {
    "resource": _RESOURCES,
    "driver": _DRIVERS,
    "object-kind": _OBJECT_KINDS,
    "nodeclass-group": _NODECLASS_GROUPS,
    "nodeclass-kind": _NODECLASS_KINDS,
    "host-ip": _HOST_IPS,
    "priority-class": _PRIORITY_CLASSES,
}
"""By the kind of a name: what is no name of the user's. Priority classes decide when a pod leaves (D-144), drivers and
resources what a node is expected to report.
"""

_KUBERNETES = """
    pod-template-hash controller-revision-hash pod-template-generation metadata.name
    kubernetes.io/arch kubernetes.io/os kubernetes.io/hostname kubernetes.io/metadata.name kubernetes.io/service-name
    kubernetes.io/role kubernetes.io/cluster-service
    node.kubernetes.io/instance-type node.kubernetes.io/windows-build
    node.kubernetes.io/exclude-from-external-load-balancers node.kubernetes.io/exclude-disruption
    node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/memory-pressure
    node.kubernetes.io/disk-pressure node.kubernetes.io/pid-pressure node.kubernetes.io/network-unavailable
    node.kubernetes.io/unschedulable node.kubernetes.io/out-of-service
    node.cloudprovider.kubernetes.io/uninitialized node.cloudprovider.kubernetes.io/shutdown
    node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker
    topology.kubernetes.io/zone topology.kubernetes.io/region topology.k8s.aws/zone-id
    topology.k8s.aws/network-node-layer-1 topology.k8s.aws/network-node-layer-2 topology.k8s.aws/network-node-layer-3
    app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/version app.kubernetes.io/component
    app.kubernetes.io/part-of app.kubernetes.io/managed-by apps.kubernetes.io/pod-index
    statefulset.kubernetes.io/pod-name
    batch.kubernetes.io/job-name batch.kubernetes.io/controller-uid batch.kubernetes.io/job-completion-index
    controller.kubernetes.io/pod-deletion-cost cluster-autoscaler.kubernetes.io/safe-to-evict
    kubectl.kubernetes.io/last-applied-configuration kubectl.kubernetes.io/restartedAt
    kubectl.kubernetes.io/default-container volume.kubernetes.io/selected-node
    scheduler.alpha.kubernetes.io/critical-pod resource.kubernetes.io/pod-claim-name
    pod-security.kubernetes.io/enforce pod-security.kubernetes.io/audit pod-security.kubernetes.io/warn
    karpenter.sh/do-not-consolidate karpenter.sh/do-not-evict karpenter.sh/provisioner-name
    karpenter.k8s.aws/ec2nodeclass-hash karpenter.k8s.aws/ec2nodeclass-hash-version karpenter.k8s.aws/cluster
    karpenter.kwok.sh/instance-size karpenter.sh/price-overlay-applied karpenter.sh/capacity-overlay-applied
    ebs.csi.aws.com/agent-not-ready efs.csi.aws.com/agent-not-ready
"""
_OF_KERF = {
    value
    for name, value in vars(labels).items()
    if name.isupper() and isinstance(value, str) and ("/" in value) and not name.startswith("_")
}
KNOWN_KEYS: frozenset[str] = (
    frozenset(_KUBERNETES.split())
    | _OF_KERF
    | labels.WELL_KNOWN
    | frozenset(labels.ALIASES)
    | frozenset(labels.OF_RESERVATIONS)
    | frozenset(labels.RESTRICTED_DOMAINS)
)
"""Keys of labels, annotations and taints that are the same in every cluster."""

KEPT_DOMAINS: tuple[str, ...] = (*labels.RESTRICTED_DOMAINS, "readiness.k8s.io")
"""Domains that decide what a key may do (S-25, L-176): a replaced key keeps them, and no more."""

ANCHORS: dict[str, tuple[str, ...]] = {
    "key": tuple(f"{domain}/" for domain in KEPT_DOMAINS),
    "resource": ("hugepages.",),
}
"""Texts that replaced names are put behind, so that none stands in the domain of another, or seems to be a hugepage."""
