"""Karpenter's counters and histograms of the record: name, kind, help, labels, bounds (L-366 to L-430)."""

from __future__ import annotations

from kerf.projections.metrics.families import (
    COUNTER,
    DURATIONS,
    GAUGE,
    HISTOGRAM,
    LIFETIMES,
    SCORES,
    SUMMARY,
    doubling,
)

PREFIX = "karpenter_"
KERFS_OWN = frozenset({"search_gain_dollars_per_hour_total", "search_touches_total", "refused_inputs_total"})
"""Counters that Karpenter does not have: their names begin with "kerf_"."""
_DISRUPTED = ("nodepool", "reason", "capacity_type", "consolidation_policy", "termination_mode")  # L-364's X
_DECIDED = ("decision", "reason", "consolidation_type")

COUNTER_DEFINITIONS: tuple[tuple[str, str, str, tuple[str, ...], tuple[float, ...]], ...] = (
    ("nodeclaims_created_total", COUNTER, "NodeClaims made, by why.",
     ("reason", "nodepool", "min_values_relaxed"), ()),
    ("nodeclaims_terminated_total", COUNTER, "NodeClaims that are over.", ("nodepool", "capacity_type", "zone"), ()),
    ("nodeclaims_disrupted_total", COUNTER, "NodeClaims that kerf ends, by why.", _DISRUPTED, ()),
    ("nodeclaims_unhealthy_disrupted_total", COUNTER, "NodeClaims repaired, by the condition of their nodes.",
     ("condition", "nodepool", "capacity_type", "image_id"), ()),
    ("nodeclaims_termination_duration_seconds", HISTOGRAM, "From the decision to end a NodeClaim to its end.",
     ("nodepool",), doubling(12)),
    ("nodeclaims_instance_termination_duration_seconds", HISTOGRAM, "From the end of an instance asked for to it.",
     ("nodepool",), doubling(11)),
    ("nodes_created_total", COUNTER, "Nodes that have registered.", ("nodepool", "zone"), ()),
    ("nodes_terminated_total", COUNTER, "Nodes that are gone.", ("nodepool", "zone"), ()),
    ("nodes_drained_total", COUNTER, "Nodes that every pod has left.", ("nodepool",), ()),
    ("nodes_termination_duration_seconds", SUMMARY, "From the decision to end a node to its end.", ("nodepool",), ()),
    ("nodes_lifetime_duration_seconds", HISTOGRAM, "The age of nodes at their end.", ("nodepool",), LIFETIMES),
    ("pods_startup_duration_seconds", SUMMARY, "From a pod's creation until it is ready.", (), ()),
    ("pods_bound_duration_seconds", HISTOGRAM, "From a pod's creation until it is bound.", (), DURATIONS),
    ("pods_provisioning_startup_duration_seconds", HISTOGRAM, "From the plan with a pod until it is ready.",
     (), DURATIONS),
    ("pods_provisioning_bound_duration_seconds", HISTOGRAM, "From the plan with a pod until it is bound.",
     (), DURATIONS),
    ("pods_scheduling_decision_duration_seconds", HISTOGRAM, "From when a pod is seen until it is planned for.",
     (), DURATIONS),
    ("pods_eviction_requests_total", COUNTER, "Evictions asked for, by the API server's answer.", ("code",), ()),
    ("pods_drained_total", COUNTER, "Pods taken off nodes, by why.", ("reason",), ()),
    ("pods_disruption_initiated_total", COUNTER, "Pods on nodes whose drain began.", _DISRUPTED, ()),
    ("scheduler_scheduling_duration_seconds", HISTOGRAM, "Turns that planned for pods.", ("controller",), DURATIONS),
    ("voluntary_disruption_decision_evaluation_duration_seconds", HISTOGRAM, "Turns with a disruption pass.",
     ("reason", "consolidation_type"), DURATIONS),
    ("search_gain_dollars_per_hour_total", COUNTER, "What plans cost less than the first ones, in USD per hour.",
     (), ()),
    ("search_touches_total", COUNTER, "The effort that this took.", (), ()),
    ("scheduler_ignored_pods_count", GAUGE, "Pods that were refused before planning.", (), ()),
    ("scheduler_unschedulable_pods_count", GAUGE, "Pods that no node can take.", ("controller",), ()),
    ("voluntary_disruption_decisions_total", COUNTER, "Disruptions begun.", _DECIDED, ()),
    ("voluntary_disruption_decisions_by_nodepool_total", COUNTER, "Disruptions begun, by NodePool.",
     ("nodepool", *_DECIDED), ()),
    ("consolidation_moves_total", COUNTER, "Consolidations proposed, and those that Balanced refuses.",
     ("decision", "nodepool", "policy"), ()),
    ("consolidation_score", HISTOGRAM, "What Balanced finds the consolidations worth that are proposed.",
     ("decision", "nodepool", "policy"), SCORES),
    ("voluntary_disruption_consolidation_timeouts_total", COUNTER, "Searches that ended by their steps.",
     ("consolidation_type",), ()),
    ("voluntary_disruption_failed_validations_total", COUNTER, "Candidates that the second look held back.",
     ("consolidation_type",), ()),
    ("voluntary_disruption_queue_failures_total", COUNTER, "Disruptions given up after they began.", _DECIDED, ()),
    ("cloudprovider_errors_total", COUNTER, "Calls of the cloud that failed.",
     ("controller", "method", "provider", "error"), ()),
    ("cloudprovider_instance_launch_failures_total", COUNTER, "Offerings that a launch was refused.",
     ("zone", "zone_id", "capacity_type", "reason"), ()),
    ("cloudprovider_instance_termination_failures_total", COUNTER, "Ends of instances that the cloud refused.",
     ("zone", "zone_id"), ()),
    ("interruption_instance_status_unhealthy_total", COUNTER, "Instances that EC2 says are not well.",
     ("category",), ()),
    ("refused_inputs_total", COUNTER, "Messages, objects and answers that were refused, by where they came from.",
     ("source", "code"), ()),
)  # fmt: skip
