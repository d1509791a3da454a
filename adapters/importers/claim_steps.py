"""The steps in a NodeClaim's life that a log or a table tells of, whatever its format (F-62…F-80, F-100…F-107).

Names are "" where the source does not tell them. `at` is in ms since the epoch.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.record.observations import LaunchError


class Step(Struct, frozen=True, kw_only=True):
    at: int


class Created(Step, frozen=True, kw_only=True):
    """`instance_types` is empty unless all of them are told. `run` is the reconcile run, and `replaces` says that a
    disruption asked for it (F-66).
    """

    claim: str
    node_pool: str = ""
    requests: Resources = {}
    instance_types: tuple[str, ...] = ()
    run: str = ""
    replaces: bool = False


class Launched(Step, frozen=True, kw_only=True):
    claim: str
    provider_id: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    allocatable: Resources = {}


class LaunchFailed(Step, frozen=True, kw_only=True):
    claim: str
    error: str


class Registered(Step, frozen=True, kw_only=True):
    claim: str
    node: str = ""
    provider_id: str = ""


class Initialized(Step, frozen=True, kw_only=True):
    claim: str
    node: str = ""
    provider_id: str = ""
    allocatable: Resources = {}


class Target(Struct, frozen=True):
    """A node that a decision names, and what is said of it."""

    node: str = ""
    claim: str = ""
    instance_type: str = ""
    capacity_type: str = ""


class Decided(Step, frozen=True, kw_only=True):
    """A decision to take nodes away. `node_pools` are those that it names (F-85)."""

    why: str
    action: str
    targets: tuple[Target, ...]
    new_nodes: int = 0
    pods: int = 0
    savings: float | None = None
    command: str = ""
    run: str = ""
    node_pools: tuple[str, ...] = ()


class GaveUp(Step, frozen=True, kw_only=True):
    """A decision was not carried out: that of `command`, or the one about these nodes or claims (F-78)."""

    command: str = ""
    nodes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    error: str = ""


class Interrupted(Step, frozen=True, kw_only=True):
    claim: str
    node: str = ""
    kind: str


class DeletionSeen(Step, frozen=True, kw_only=True):
    """The claim is being deleted. `deadline` is when its pods go by force, as RFC 3339 (F-73)."""

    claim: str
    deadline: str = ""


class DrainBegan(Step, frozen=True, kw_only=True):
    """The node has got its taint, whatever the cause (F-74)."""

    node: str
    claim: str = ""


class NodeGone(Step, frozen=True, kw_only=True):
    node: str
    claim: str = ""


class ClaimGone(Step, frozen=True, kw_only=True):
    claim: str
    node: str = ""
    provider_id: str = ""


class Said(Step, frozen=True, kw_only=True):
    """What is worth telling and is no step: pods that were found, plans, errors, capacity that was refused."""

    level: str
    text: str
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    node_pools: tuple[str, ...] = ()
    refused: tuple[LaunchError, ...] = ()
