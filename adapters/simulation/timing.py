"""How long things take in the virtual cluster. All in milliseconds."""

from __future__ import annotations

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """Durations. The defaults are usual for a cluster; a test sets those that it is about."""

    bind: int = 100  # from a change to the scheduler's next pass
    join: int = 30_000  # from launch to the Node object
    join_jitter: int = 5_000  # a join takes between join - jitter and join + jitter
    ready: int = 10_000  # from the Node object to condition Ready
    devices: int = 5_000  # from Ready until extended resources are allocatable (device plugins) and devices published
    startup_taints: int = 5_000  # from Ready until "their daemon" removes a pool's startup taints
    pod_start: int = 2_000  # from binding to Running and Ready
    pod_stop: int = 1_000  # how long a pod takes to end when its grace period allows that
    provision: int = 1_000  # from a claim that binds at once to its volume
    claims: int = 50  # from a pod to the ResourceClaims that are made for it, and from its end to their release
    attach: int = 1_000  # from binding a pod until its volumes are attached
    detach: int = 5_000  # from the end of a pod until its volumes are detached
    unreachable: int = 40_000  # node-monitor-grace-period: from the kubelet's silence to Ready=Unknown
    taint_eviction: int = 300_000  # tolerationSeconds for unreachable nodes that admission gives every pod
    node_removal: int = 5_000  # from not ready to the removal of the Node of an ended instance
    pod_gc: int = 20_000  # from the removal of a Node to that of the pods bound to it
    running: int = 8_000  # instance: pending → running
    shutdown: int = 20_000  # instance: shutting-down → gone
    spot_warning: int = 120_000  # from the interruption warning to the end of the instance
    watch: int = 20  # from a change to its watch event
    write: int = 50  # the answer of a cluster write
    launch: int = 2_000  # the answer of a launch; half as much again by chance
    terminate: int = 500  # the answer of the end of an instance
