"""The recorded workload: what users, workload controllers and the cloud did step by step, and nothing that kerf did."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import Observation
from kerf.engine.state.state import State


class Put(Struct, frozen=True):
    """An object of the cluster, or a NodeClass, is as this observation says."""

    observation: Observation


class Gone(Struct, frozen=True):
    """An object is deleted. `kind` and `key` are those of ObjectGone."""

    kind: str
    key: str


class Sells(Struct, frozen=True):
    """The cloud sells the catalogue of this digest to a NodeClass (`group/kind/name`). `catalogue` is there if the
    record does not have it."""

    node_class: str
    digest: str
    catalogue: Catalogue | None = None


class Offering(Struct, frozen=True, order=True):
    """What can be bought: one instance type in one zone, as one capacity type."""

    instance_type: str
    zone: str
    capacity_type: str


class Lacks(Struct, frozen=True):
    """The cloud has no capacity for an offering from now on, or has it again (`back`)."""

    offering: Offering
    back: bool = False


class Strike(Struct, frozen=True):
    """Something happens to an instance: `kind` is an action of a Timeline ("interrupt", "vanish", "delete", "cordon").

    The model has other instances than the record. It strikes the one that has the same `rank` by age among those of its
    offering. `lasts` is in ms, 0 for good.
    """

    kind: str
    offering: Offering
    rank: int
    lasts: int = 0


class Asked(Struct, frozen=True):
    """Somebody asks for the deletion of this NodeClaim."""

    claim: str
    actor: str


class Replicas(Struct, frozen=True):
    """A workload is to have so many pods."""

    workload: str
    count: int


class Comes(Struct, frozen=True):
    """A pod of its own comes: one without an owner, of a StatefulSet, or one that runs to its end.

    `slot` stays the same for all that come in place of it. `runs` is how long it runs until it ends as `phase` (ms, 0:
    it does not end by itself), `kept` how long it is kept after that (ms, 0: to the end of the record). `again`: it is
    replaced when it goes; `named`: by a pod of the same name.
    """

    slot: str
    pod: Pod
    runs: int = 0
    phase: str = ""
    kept: int = 0
    again: bool = False
    named: bool = False


class Leaves(Struct, frozen=True):
    """Somebody takes away the pod of a slot, and it is not replaced."""

    slot: str


Step = Put | Gone | Sells | Lacks | Strike | Asked | Replicas | Comes | Leaves


class Timed(Struct, frozen=True):
    """A step at its time (ms since the epoch). `changed`: it happens only with the changes, or only without them; None
    for both."""

    at: int
    step: Step
    changed: bool | None = None


class Group(Struct, frozen=True):
    """Pods of one workload that stand for each other. `pods` are those that come, in the order in which they came in
    the record: the first has come with the first arrival after the beginning."""

    workload: str
    owner_uid: str
    owner_name: str
    pods: tuple[Pod, ...]


class Pace(Struct, frozen=True):
    """How long things took in the record, in ms. None: the record does not say.

    `joins` are those of the instances one after the other, from launch to Node; None for one that never joined.
    `answers` are those of the cloud to the launches one after the other; `failures` say which of these failed for
    another reason than capacity, by EC2's code ("" for none). The others are medians; `shutdown` is how long instances
    take to end.
    """

    joins: tuple[int | None, ...] = ()
    answers: tuple[int, ...] = ()
    failures: tuple[str, ...] = ()
    ready: int | None = None
    pod_start: int | None = None
    pod_stop: int | None = None
    shutdown: int | None = None


USUAL = ("ready", "pod_start", "pod_stop", "shutdown")
"""The medians of a Pace."""


class Workload(Struct, frozen=True, kw_only=True):
    """What the model runs.

    `start` is the state at the beginning, at `since`; it ends at `until` (ms since the epoch). `steps` are in order.
    `shapes` holds what the pods in steps and groups look like, by digest. `held` are pods (by uid) that are there at
    the beginning, and that nobody looks at before their step. `changes` say what is changed, from what to what.
    `left_out` counts what the record has and the model does not repeat, by what it is.
    """

    start: State
    since: int
    until: int
    position: int
    steps: tuple[Timed, ...]
    groups: tuple[Group, ...]
    shapes: dict[str, PodShape]
    pace: Pace
    settings: Settings
    changed_settings: Settings
    held: frozenset[str] = frozenset()
    changes: tuple[str, ...] = ()
    left_out: dict[str, int] = {}
