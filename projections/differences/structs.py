"""The shape of the difference of two moments. Fields may be added; they keep their names and meaning (docs/diff.md).

Times are in ms since the epoch, prices in USD per hour.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.projections.differences.field_changes import FieldChange

CAME, GONE, CHANGED = "came", "gone", "changed"


class ObjectChange(Struct, frozen=True):
    """An object that came, is gone or changed. `fields` are those that changed, those that somebody wrote first.
    `asked`: something is asked for otherwise, and not only said otherwise by its status."""

    kind: str
    name: str
    change: str
    fields: tuple[FieldChange, ...] = ()
    asked: bool = False


class NodeChange(Struct, frozen=True, kw_only=True):
    """A NodeClaim with its node that came, is gone or changed. `node` is "" while there is none. `why` is the reason
    for which it goes or went, "" for none."""

    claim: str
    node: str
    change: str
    node_pool: str
    instance_type: str
    capacity_type: str
    zone: str
    price: float
    why: str
    fields: tuple[FieldChange, ...] = ()


class Places(Struct, frozen=True):
    """How many pods of a workload a node had, before and after. The node "" stands for pods without one."""

    node: str
    was: int
    now: int


class WorkloadChange(Struct, frozen=True, kw_only=True):
    """A workload whose pods are not where they were. `was` and `now` count its pods, `places` are the nodes whose
    number changed. `came` and `gone` are the pods that are there at only one of the two moments, and `moved` those that
    are there at both and have another node: they were bound in between."""

    workload: str
    kind: str
    was: int
    now: int
    places: tuple[Places, ...]
    came: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    fields: tuple[FieldChange, ...] = ()


class PriceChange(Struct, frozen=True):
    """The price of a NodePool's nodes, or of all ("")."""

    node_pool: str
    was: float
    now: float


class OfferChange(Struct, frozen=True, kw_only=True):
    """What the cloud asks otherwise for one capacity type, as a NodeClass may buy it: so many of its `offers` (types in
    zones), by factors from `least` to `most`. `was` and `now` are USD per hour of one of them."""

    node_class: str
    capacity_type: str
    changed: int
    offers: int
    least: float
    most: float
    instance_type: str
    zone: str
    was: float
    now: float


class StateDifference(Struct, frozen=True, kw_only=True):
    """What is different at the time `until`, as of position `last`, from what was at `since`, as of `first`.
    `prices` is empty where the record knows none."""

    first: int
    since: int
    last: int
    until: int
    prices: tuple[PriceChange, ...]
    objects: tuple[ObjectChange, ...]
    nodes: tuple[NodeChange, ...]
    workloads: tuple[WorkloadChange, ...]
    offers: tuple[OfferChange, ...] = ()
