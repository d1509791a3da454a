"""The flags of Karpenter's settings, as `kerf run` and `kerf doctor` take them (L-287 to L-315).

Imports nothing but cyclopts: `kerf --help` loads this module. `settings` reads the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

DEFAULT_LEASE = "karpenter-leader-election"
DEFAULT_NAMESPACE = "kube-system"
"""The Lease's namespace where kerf runs outside a pod."""


@dataclass(frozen=True)
class Flags:
    """The flags as they are given; None where they are not. The variable of `batch_max_duration` is
    BATCH_MAX_DURATION."""

    batch_max_duration: Annotated[str | None, Parameter(help="Longest wait for more pods (10s).")] = None
    batch_idle_duration: Annotated[str | None, Parameter(help="The wait ends after this much quiet (1s).")] = None
    batch_enough_pods: Annotated[str | None, Parameter(help="So many are planned for at once (100; 0: never).")] = None
    preference_policy: Annotated[str | None, Parameter(help="Preferences of pods: Respect or Ignore.")] = None
    min_values_policy: Annotated[str | None, Parameter(help="minValues: Strict or BestEffort.")] = None
    ignore_dra_requests: Annotated[
        str | None, Parameter(help="Pods with ResourceClaims are left alone (true).", metavar="BOOL")
    ] = None
    effort: Annotated[
        str | None, Parameter(help="Search steps for a cheaper plan (100; 0: the first one).", metavar="INT")
    ] = None
    keep_until_replaced: Annotated[
        str | None,
        Parameter(help="Pods of an interrupted node stay until their next one is ready (true).", metavar="BOOL"),
    ] = None
    feature_gates: Annotated[str | None, Parameter(help="Such as NodeOverlay=true,StaticCapacity=true.")] = None
    scheduler_config: Annotated[str | None, Parameter(help="YAML or JSON with podTopologySpread defaults.")] = None
    retain_observations: Annotated[str | None, Parameter(help="Keep everything for so long (7d; 0: ever).")] = None
    retain_decisions: Annotated[
        str | None, Parameter(help="Keep claims' events and decisions for so long (90d; 0: ever).")
    ] = None
    retain_size: Annotated[str | None, Parameter(help="The record takes no more than this (8Gi; 0: any).")] = None
    cluster_name: Annotated[str | None, Parameter(help="The cluster's name; AWS: in all tags.")] = None
    metrics_port: Annotated[str | None, Parameter(help="/metrics (8080; 0: none).")] = None
    health_probe_port: Annotated[str | None, Parameter(help="/healthz and /readyz (8081; 0: none).")] = None
    kube_client_qps: Annotated[str | None, Parameter(help="Requests to the API server a second (200).")] = None
    kube_client_burst: Annotated[str | None, Parameter(help="… and at once after a quiet time (300).")] = None
    leader_election_name: Annotated[
        str | None,
        Parameter(name=("--leader-election-name", "--lease-name"), help=f"Name of the Lease ({DEFAULT_LEASE})."),
    ] = None
    leader_election_namespace: Annotated[
        str | None,
        Parameter(
            name=("--leader-election-namespace", "--lease-namespace"),
            help=f"Its namespace: the pod's own; outside a cluster {DEFAULT_NAMESPACE}.",
        ),
    ] = None
    disable_leader_election: Annotated[str | None, Parameter(help="Run without a Lease (false).")] = None
    disable_cluster_state_observability: Annotated[
        str | None, Parameter(help="No metrics of pods, nodes and NodePools (false).")
    ] = None
    condition_metrics_per_object: Annotated[
        str | None, Parameter(help="Metrics of conditions for each NodeClaim and Node (false).")
    ] = None
    metrics_authorization: Annotated[
        str | None, Parameter(help="/metrics only for tokens that the API server lets read it (false).")
    ] = None
    longest_turn: Annotated[str | None, Parameter(help="/healthz fails after a turn of this (5m; 0s: never).")] = None
    log_level: Annotated[str | None, Parameter(help="debug, info or error (info).")] = None
    log_output_paths: Annotated[str | None, Parameter(help="stdout, stderr or files, by commas (stdout).")] = None
    instance_types_file_path: Annotated[
        str | None,
        Parameter(name=("--instance-types-file-path", "--instance-types"), help="KWOK: a file of instance types."),
    ] = None
    # Of the AWS provider.
    cluster_endpoint: Annotated[str | None, Parameter(help="AWS: the API server's URL (asked of EKS).")] = None
    cluster_ca_bundle: Annotated[str | None, Parameter(help="AWS: its certificate, base64 (kerf's own).")] = None
    isolated_vpc: Annotated[str | None, Parameter(help="AWS: no calls for prices and IAM (false).")] = None
    eks_control_plane: Annotated[str | None, Parameter(help="AWS: ask EKS about the cluster (false).")] = None
    vm_memory_overhead_percent: Annotated[str | None, Parameter(help="AWS: share of memory lost (0.075).")] = None
    interruption_queue: Annotated[str | None, Parameter(help="AWS: name of the SQS queue (none).")] = None
    reserved_enis: Annotated[str | None, Parameter(help="AWS: network interfaces not for pods (0).")] = None
    ami_refresh_interval: Annotated[str | None, Parameter(help="AWS: how old images may be (1m).")] = None
    subnet_refresh_interval: Annotated[str | None, Parameter(help="AWS: how old subnets may be (1m).")] = None
    disable_dry_run: Annotated[str | None, Parameter(help="AWS: classes are not tried on EC2 (false).")] = None
    # Read, so that a Karpenter's environment is understood; kerf has no use for them.
    cpu_requests: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    memory_limit: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    disable_controller_warmup: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    enable_profiling: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    karpenter_service: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    log_error_output_paths: Annotated[str | None, Parameter(help="No effect.", show=False)] = None
    enable_zonal_shift: Annotated[
        str | None, Parameter(help="AWS: true launches nothing into zones that ARC has shifted traffic out of.")
    ] = None
    aws_feature_gates: Annotated[str | None, Parameter(help="AWS: such as NodeClassCEL=true.")] = None
