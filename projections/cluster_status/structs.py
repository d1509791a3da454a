"""The shape of a cluster's status. Fields may be added; they keep their names and meaning (docs/status.md).

Times are in ms since the epoch, durations in ms, prices in USD per hour. CPU is in thousandths of a core, memory in
bytes, all else in whole numbers.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.overlaid_prices import OverlaidPrice

FINE, BUSY, DEGRADED, FAILING = "fine", "busy", "degraded", "failing"
LEVELS = (FINE, BUSY, DEGRADED, FAILING)
"""The verdicts, the best first."""


class Usage(Struct, frozen=True):
    """What pods ask for of one resource, and what there is for them."""

    requested: int
    allocatable: int


class WaitingWorkload(Struct, frozen=True, kw_only=True):
    """Pods of one workload that wait for the same reason. `since` is when the first of them was created.

    `outlook` is ON_ITS_WAY (`places` are the claims or nodes planned for them), NOT_BOUND (these are in service),
    NO_PLACE (`reason` is the one nearest to a place, `why` its sentence), NOT_PLANNED (no plan was about them yet),
    KEPT or IGNORED. `requests` is what one pod asks for. `daemonsets` are those (namespace/name, with what they ask
    for) without which types would be large enough. `refused_zones` are those where the cloud refused all that would do,
    and `again` is when the first of it is asked for again, 0 where refusals are not why.
    """

    workload: str
    kind: str
    pods: tuple[str, ...]
    since: int
    waited: int
    outlook: str
    requests: dict[str, int]
    places: tuple[str, ...] = ()
    reason: Reason | None = None
    why: str = ""
    daemonsets: dict[str, dict[str, int]] = {}
    refused_zones: tuple[str, ...] = ()
    again: int = 0


class NodeStatus(Struct, frozen=True, kw_only=True):
    """A node, or a NodeClaim that has none yet. `claim` is "" for a node that is not kerf's, `name` the claim's where
    there is no node.

    `state` is that of the claim; `going` says why it goes, `reason` why it stays, and `few_words` either in three words
    or so. `usage` is by resource; `age` is since its claim was made. `drifted_since` is 0 for one that is as its
    NodePool asks for; `kept_by` are the PodDisruptionBudgets (namespace/name) that keep it long after it has drifted,
    and do so until they change. `overlaid` is the NodeOverlay that `price` is from, if it is from one. `again` is when
    something cheaper that the cloud refused may replace it again, 0 if nothing was refused. `cordoned`: it takes no
    more pods, whatever room it has.
    """

    name: str
    claim: str
    node_pool: str
    state: str
    ready: bool
    instance_type: str
    capacity_type: str
    zone: str
    price: float
    age: int
    pods: int
    usage: dict[str, Usage]
    going: str
    reason: Reason | None
    few_words: str
    drifted_since: int = 0
    kept_by: tuple[str, ...] = ()
    overlaid: OverlaidPrice | None = None
    again: int = 0
    cordoned: bool = False


class PoolStatus(Struct, frozen=True, kw_only=True):
    """Totals of a NodePool. `wrong` says why it is not ready, or too small, or that its nodes do not register. `limits`
    maps resources to what is used and what is allowed. `drifted` counts nodes that are not as it asks for."""

    name: str
    ready: bool
    wrong: tuple[str, ...]
    nodes: int
    price: float
    usage: dict[str, Usage]
    limits: dict[str, Usage]
    drifted: int


class UnderWay(Struct, frozen=True, kw_only=True):
    """Something that kerf has begun and not ended.

    `kind` is launch, join, start, move, taint or drain. `subjects` are the claims it is about, `onto` those that come
    in their place, `why` is the reason of what goes, `pods` how many it is for, or how many are still to leave. `late`:
    it takes longer than it should. `budgets` are the PodDisruptionBudgets (namespace/name) for which pods of a late
    drain may not be evicted. `waits` is what something late waits for, and `pod` (namespace/name) the first pod that it
    waits for.
    """

    kind: str
    subjects: tuple[str, ...]
    since: int
    age: int
    onto: tuple[str, ...] = ()
    why: str = ""
    pods: int = 0
    savings: float = 0.0
    late: bool = False
    budgets: tuple[str, ...] = ()
    waits: Reason | None = None
    pod: str = ""


class Ground(Struct, frozen=True):
    """Why the verdict is at least `level`: a code, how many it is about, and the first of them."""

    level: str
    code: str
    count: int
    subjects: tuple[str, ...] = ()


class ClusterVerdict(Struct, frozen=True):
    """`level` is the worst of its grounds; FINE has none."""

    level: str
    grounds: tuple[Ground, ...]


class Totals(Struct, frozen=True, kw_only=True):
    """Sums over the cluster. `nodes` are those there, `claims` of all states; `pods` counts them by what they do."""

    nodes: int
    claims: int
    price: float
    pods: dict[str, int]
    usage: dict[str, Usage]


class Recent(Struct, frozen=True, kw_only=True):
    """What happened from `since` on: nodes that were `launched`, launches that `failed`, nodes that are `gone` by why,
    and pods that a drain has `evicted` or `forced`. `trouble`: the claims of what comes again and again, by the code of
    the verdict's ground."""

    since: int
    launched: int
    failed: int
    gone: dict[str, int]
    evicted: int
    forced: int
    trouble: dict[str, tuple[str, ...]] = {}


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """The status of a cluster at the time `at`, as of the entry at `position`. `window_closes` is when the open
    provisioning window closes, 0 if none is open. `unavailable` and `in_doubt` name
    offerings, each with its time: those that were refused and are not asked for until then, and those that were refused
    when last asked for and replace no node until then. `lacks` are codes of what a partial record does not tell
    (kerf.engine.model.missing_knowledge)."""

    position: int
    at: int
    record: str
    verdict: ClusterVerdict
    totals: Totals
    waiting: tuple[WaitingWorkload, ...]
    under_way: tuple[UnderWay, ...]
    pools: tuple[PoolStatus, ...]
    nodes: tuple[NodeStatus, ...]
    window_closes: int
    unavailable: dict[str, int]
    in_doubt: dict[str, int] = {}
    lacks: tuple[str, ...] = ()
    recent: Recent | None = None
