"""What a cloud offers: instance types with capacities, overheads, label values and priced offerings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct

from kerf.engine.model.kubernetes.devices import AttributeBinding, ResourceSlice
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.names import LABELS, Plain, ReservationId


class Offering(Struct, frozen=True, omit_defaults=True):
    """One way to buy a type. `price` is USD per hour. `tenancy` is default (shared hardware) or dedicated."""

    zone: Plain
    capacity_type: Plain
    price: float
    available: bool = True
    zone_id: Plain = ""
    reservation_id: ReservationId = ""
    reservation_type: Plain = ""
    reservation_capacity: int = 0
    tenancy: Plain = "default"
    interruptible: bool = False  # the reservation's owner may take it back


class InstanceType(Struct, frozen=True, omit_defaults=True):
    """One instance type. `requirements` maps a label key to its possible values; an empty tuple means DoesNotExist.

    `overhead` is the sum of kube reserved, system reserved and the eviction threshold. `overlaid` names what
    NodeOverlays have changed ("price", "capacity"). `slices` are the devices that its nodes will publish (slice
    templates, S-196); `bindings` says what is known of attributes that only a node has (S-200).
    """

    name: Plain
    capacity: Resources
    overhead: Resources = {}
    requirements: Annotated[dict[str, tuple[str, ...]], LABELS] = {}
    offerings: tuple[Offering, ...] = ()
    overlaid: tuple[Plain, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    bindings: tuple[AttributeBinding, ...] = ()

    def allocatable(self) -> Resources:
        """Returns capacity minus overhead. Hugepages also reduce memory (S-104, A-187)."""
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.capacity.items()}
        huge = sum(amount for name, amount in self.capacity.items() if name.startswith("hugepages-"))
        if huge and "memory" in left:
            left["memory"] = max(0, left["memory"] - huge)
        return left


class Catalogue(Struct, frozen=True, omit_defaults=True, dict=True):
    """The instance types that one NodeClass can launch, as of one observation. Stored once by content digest.

    `shifted` are the ids of its zones that a zonal shift has taken traffic out of: no offering there is available
    (A-215). A node has the resources `on_request` only if its claim asked for them when it was launched (A-315).
    """

    types: tuple[InstanceType, ...]
    source: Plain = ""  # where the figures come from, shown to users ("table of 2026-08", "ec2 eu-west-1")
    shifted: tuple[Plain, ...] = ()
    on_request: tuple[Plain, ...] = ()

    def on_offer(self) -> Iterator[Offering]:
        """The available offerings of all types."""
        return (offering for each in self.types for offering in each.offerings if offering.available)
