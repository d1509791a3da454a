"""What stays in clear in a pseudonymised copy: each field, with the reason.

`docs/record-contents.md` shows these tables, and a test compares both with what a copy really holds.
"""

from __future__ import annotations

POSITIONS = "The place of an intent or a move in the record: numbers, such as 17.0"
KINDS = "What kerf calls a kind of objects: pod, node, nodepool, …"
IN_CLEAR: dict[str, str] = {
    POSITIONS: """
        Effect.ref EffectAnswered.intent Facts.intents Facts.moves LaunchAnswered.intent LaunchInstance.again
        MoveStepResult.move
    """,
    "Random ids: uids, ids of another controller's commands, versions of watches, the record's own id": """
        CapacityBuffer.uid ControllerSaid.uid DaemonPod.uid DaemonSet.uid DeletePod.uid EvictPod.uid Node.uid
        NodeClaimObject.uid NodeClassSeen.uid NodeOverlay.uid NodePool.uid Owner.uid Pod.uid PodDisruptionBudget.uid
        PodEvicted.uid PodForced.uid PoolHealth.uid ResourceClaim.made_for ResourceClaim.pods Workload.uid
        Facts.arrived Facts.daemon_pods Facts.daemonsets Facts.launched_for Facts.nominations Facts.pdbs Facts.pods
        Facts.rest Facts.targets NodeClaim.pods Placement.pods PlannedClaim.pods ProvisionResult.truncated
        Requested.pods Unplaced.pods Facts.record RecordStarted.record WatchGap.since WatchGap.until
        ControllerDecided.command
    """,
    "Instance types, zones, and how an instance is bought: what EC2 or KWOK offers": """
        Adopted.capacity_type Adopted.instance_type Adopted.zone Catalogue.on_request Catalogue.shifted
        Catalogue.source InstanceSeen.capacity_type InstanceType.name InstanceType.overlaid LaunchAnswered.capacity_type
        LaunchAnswered.instance_type LaunchAnswered.zone LaunchAnswered.zone_id LaunchError.capacity_type
        LaunchError.instance_type LaunchError.zone LaunchError.zone_id LaunchInstance.capacity_type LaunchInstance.draw
        LaunchInstance.tenancy Launched.capacity_type Launched.instance_type Launched.zone
        NodeClaim.capacity_type NodeClaim.instance_type NodeClaim.instance_types NodeClaim.zone NodeClassTerms.zones
        Offer.instance_type Offer.zone Offering.capacity_type Offering.reservation_type Offering.tenancy
        Offering.zone Offering.zone_id PlannedClaim.capacity_types PlannedClaim.instance_types
        PlannedClaim.overlaid Requested.instance_types TaggedInstance.capacity_type Facts.refused_since
        Facts.unavailable GroupLacks.refused_since GroupLacks.unavailable
    """,
    "One of a few words that Kubernetes or Karpenter allows": """
        Budget.nodes Budget.reasons Budget.schedule CapacityBuffer.strategy DeviceRequest.mode Expression.operator
        HostPort.protocol NodeCondition.status NodeCondition.type NodePool.consolidation_policy NodePool.hash_version
        Pod.phase PodDisruptionBudget.max_unavailable PodDisruptionBudget.min_available
        RequirementSpec.operator Settings.min_values_policy Settings.node_classes Settings.preference_policy
        SpreadConstraint.node_affinity_policy SpreadConstraint.node_taints_policy SpreadConstraint.when_unsatisfiable
        Taint.effect Toleration.effect Toleration.operator VolumeClaim.phase WatchGap.kind
    """,
    KINDS: "ObjectGone.kind",
    "Codes: reasons, states and steps of kerf's, versions, and what EC2, the API server and controllers say by": """
        Adopted.state Adopted.why Condition.reason Condition.status Condition.type ControllerDecided.action
        ControllerDecided.controller ControllerDecided.why ControllerSaid.controller ControllerSaid.eviction
        ControllerSaid.level Decision.decider Imported.lacks Imported.sources Imported.versions NodeClaim.announced
        DeviceRequest.unsupported Effect.code EffectAnswered.code InputRefused.code InputRefused.source
        InstanceSeen.status InstanceVanished.status InterruptionSeen.kind LaunchAnswered.code LaunchAnswered.kind
        LaunchError.code LaunchFailed.code LaunchFailed.kind Move.why MoveStepResult.step NodeClaim.before
        NodeClaim.effects NodeClaim.instance_status NodeClaim.interruption NodeClaim.repair NodeClaim.state
        NodeClaim.verdict NodeClaim.why PoolHealth.reason PoolHealth.status Reason.code ReasonRaised.was
        ReasonRaised.why RecordStarted.engine StaticPool.code Tainted.why Terminated.why Untainted.why Verdict.action
        Verdict.method
    """,
    "Sentences of kerf's own: each word that is a name in the record is replaced, the others stay": """
        NodeClaim.detail NodeClassSeen.reason ReasonRaised.detail Tainted.detail
    """,
}
"""By the reason: the fields, as Struct.field. For a map this means its keys."""

PARTLY: dict[str, str] = {
    "Names of pods": "a number of up to four digits at the end, as StatefulSets give it; of a name that begins as the "
    "names of such pods do (`web-15a` beside `web-1`), its next digits, of up to four",
    "Keys of labels, annotations and taints": "the keys that Kubernetes, Karpenter and EC2 define; of a key in "
    "Karpenter's own domains (`karpenter.sh` and the like) and in `readiness.k8s.io`, the domain",
    "Values of labels, annotations and taints": "true, false, numbers of up to 10 digits, durations, times; longer "
    "numbers where Gt or Lt compares them; zones, regions, instance types and all else that Karpenter's well-known "
    "labels say",
    "Resources": "cpu, memory, pods, storage, hugepages, and what the device plugins of NVIDIA, AMD, Habana and AWS "
    "call theirs",
    "Drivers of volumes": "those of AWS, and those that come with Kubernetes",
    "Kinds of owners and workloads": "those of Kubernetes",
    "Groups and kinds of NodeClasses": "those of the providers for EC2 and KWOK",
    "Texts about devices (drivers, names, attributes, capacities, selectors)": "numbers, quantities, versions, and "
    "the operators and functions of selectors",
    "Provider ids": "the zone, where the instance is one of EC2's",
    "IP addresses of host ports": "those that stand for all addresses, or for the node itself",
    "Priority classes": "the two of Kubernetes' own",
    "Fields of NodePools and NodeClasses that drift compares": "the fields' names, times, and the keys of `kubelet` "
    "and `metadataOptions`",
    "Parameters of reasons": "numbers and words of kerf's own; names are replaced as in the field that they come from",
}
"""What stays of texts of which the rest is replaced."""


def fields_in_clear() -> dict[str, str]:
    """Returns the reason by the field."""
    return {field: why for why, fields in IN_CLEAR.items() for field in fields.split()}
