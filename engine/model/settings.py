"""The settings that decisions depend on. They are recorded, so that a decision can be made again with the same ones."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import SpreadConstraint
from kerf.engine.model.names import ClusterName, Plain


class Settings(Struct, frozen=True):
    """Durations in milliseconds. Names and defaults follow Karpenter's (L-290, L-303, L-306)."""

    cluster_name: ClusterName = "kerf"
    batch_idle: int = 1_000
    batch_max: int = 10_000
    batch_enough: int = 0  # pods that make a burst (kerf.engine.state.pods.bursts); 0: there is none
    preference_policy: Plain = "Respect"
    min_values_policy: Plain = "Strict"
    launch_timeout: int = 300_000  # L-178
    registration_timeout: int = 900_000  # L-179
    unavailable_for: int = 180_000  # how long an offering without capacity is remembered
    drain_settle: int = 5_000  # L-198: a drain is not done before this long after it began
    keep_until_replaced: bool = True  # pods of an interrupted node stay for their next place while the notice allows
    validation_delay: int = 15_000  # D-108: between the proposal of a move and the second look at it
    spot_to_spot: bool = False  # gate SpotToSpotConsolidation (D-102)
    max_instance_types: int = 600  # S-162
    max_launch_types: int = 60
    effort: int = (
        100  # search steps for improving and rating a plan (kerf.engine.scheduling.optimizer.effort); 0: neither
    )
    nominations: bool = False  # pods are told their nodes (KEP-5278), so that the scheduler follows the plan
    max_steps: int = 1_000_000  # attempts to place a pod in one pass; the next pass goes on with the pods left
    ignore_dra_requests: bool = True  # S-194
    default_spread: tuple[SpreadConstraint, ...] = ()  # S-149: for pods without constraints of their own
    node_overlays: bool = False  # feature gate NodeOverlay (S-183)
    capacity_buffers: bool = False  # feature gate CapacityBuffer (S-177)
    node_repair: bool = False  # feature gate NodeRepair (D-134)
    observe: bool = False  # beside a Karpenter that acts: decide, and do nothing
    static_capacity: bool = False  # gate StaticCapacity (D-160): keep NodePools with spec.replicas at their size
    cluster: ClusterName = ""  # uid of its namespace kube-system: whose record this is; "" where nobody said
    node_classes: Plain = ""  # group/Kind of the provider's NodeClasses (L-48); "" where only those seen tell
