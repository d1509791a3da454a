"""Capacity reservations that a class selects, and how much of each is left (A-124…A-126, A-210)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from math import inf
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.offerings import Reservation
from kerf.adapters.aws.nodeclass.resolved import ready
from kerf.adapters.aws.session import AwsError, Clients, filters, pages, tag_filters
from kerf.engine.model.durations import parse_time
from kerf.engine.model.karpenter.ec2nodeclasses import (
    CapacityReservationTerm,
    EC2NodeClass,
    EC2NodeClassStatus,
    ResolvedReservation,
)
from kerf.engine.model.karpenter.nodeclaim_objects import Condition

EXPIRES_EARLY = 2_400_000
"""How long (ms) before its end a capacity block is not used any more (A-126)."""
_CRITERIA, _TYPES = ("open", "targeted"), ("default", "capacity-block")
BLOCK = "capacity-block"
INTERRUPTIBLE = "interruptible-capacity-reservation"
"""The kind of a reservation that its owner may take back, as EC2's requests name it."""


class Reservations:
    def __init__(self, clients: Clients, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._clock = clock
        self._left: dict[str, int] = {}
        self._used: dict[str, str] = {}  # instance → the reservation that it runs on

    def resolve(self, node_class: EC2NodeClass) -> tuple[tuple[ResolvedReservation, ...], Condition]:
        """The active reservations that the class selects, by id, and the condition for them, which is True with none,
        too (A-62). Raises `AwsError`."""
        now = self._clock()
        reservations: dict[str, ResolvedReservation] = {}
        for term in node_class.spec.capacity_reservation_selector_terms:
            for entry in self._selected(term):
                known = _resolved(entry, now)
                if known is not None:
                    reservations[known.id] = known
                    self._left[known.id] = int(entry.get("AvailableInstanceCount", 0))
        return tuple(reservation for _, reservation in sorted(reservations.items())), ready("CapacityReservationsReady")

    def offered(self, status: EC2NodeClassStatus) -> tuple[Reservation, ...]:
        """The class's reservations as the catalogue takes them. One that is over or not known has nothing left."""
        now = self._clock()
        return tuple(
            Reservation(
                capacity_reservation.id,
                capacity_reservation.instance_type,
                capacity_reservation.availability_zone,
                self._left.get(capacity_reservation.id, 0) if now < end_of(capacity_reservation) else 0,
                capacity_reservation.reservation_type,
                state_of(capacity_reservation, now) == "expiring",
                capacity_reservation.interruptible,
            )
            for capacity_reservation in status.capacity_reservations
        )

    def launched(self, reservation: str, instance: str) -> None:
        """Count an instance that was launched into a reservation (A-210)."""
        self._left[reservation] = max(0, self._left.get(reservation, 0) - 1)
        self._used[instance] = reservation

    def runs_on(self, instance: str, reservation: str) -> None:
        """Note what EC2 says of an instance, which an earlier process may have launched."""
        self._used[instance] = reservation

    def gone(self, instance: str) -> None:
        """Count what an instance that is gone leaves free (A-210)."""
        reservation = self._used.pop(instance, "")
        if reservation:
            self._left[reservation] = self._left.get(reservation, 0) + 1

    def taken_back(self, instance: str) -> None:
        """Note that nothing is left of the reservation whose owner takes an instance's place back (A-360)."""
        if reservation := self._used.get(instance):
            self.exhausted(reservation)

    def exhausted(self, reservation: str) -> None:
        """Note that nothing is left of a reservation, until EC2 is asked again (A-297)."""
        self._left[reservation] = 0

    def _selected(self, term: CapacityReservationTerm) -> Iterable[dict[str, Any]]:
        """The reservations that the terms select. An id that EC2 does not know selects nothing (A-124)."""
        active = filters(state=["active"])
        operation, key = self._clients.ec2.describe_capacity_reservations, "CapacityReservations"
        if term.id:
            try:
                yield from pages(operation, key, CapacityReservationIds=[term.id], Filters=active)
            except AwsError as error:
                if not error.not_found:
                    raise
            return
        conditions = [*active, *tag_filters(term.tags)]
        if term.owner_id:
            conditions += filters(owner_id=[term.owner_id])
        if term.instance_match_criteria:
            conditions += filters(instance_match_criteria=[term.instance_match_criteria])
        yield from pages(operation, key, Filters=conditions, MaxResults=1000)


def end_of(reservation: ResolvedReservation) -> float:
    """When a reservation is over (ms since the epoch); infinity for one without an end."""
    return parse_time(reservation.end_time) if reservation.end_time else inf


def next_end(reservations: Iterable[ResolvedReservation], now: int) -> float:
    """When the next of these is over (ms since the epoch); infinity for none."""
    return min((end for reservation in reservations if now < (end := end_of(reservation))), default=inf)


def state_of(reservation: ResolvedReservation, now: int) -> str:
    """Whether a reservation is active or about to end: a capacity block 40 minutes before its end, others never
    (A-126)."""
    block = reservation.reservation_type == BLOCK
    return "expiring" if block and now >= end_of(reservation) - EXPIRES_EARLY else "active"


def _resolved(entry: dict[str, Any], now: int) -> ResolvedReservation | None:
    """A reservation as the status has it; None for one that is over, or of an unknown kind (A-126)."""
    ends: datetime | None = entry.get("EndDate")
    criteria = entry.get("InstanceMatchCriteria", "open")
    kind = entry.get("ReservationType") or "default"
    if (ends is not None and ends.timestamp() * 1000 <= now) or criteria not in _CRITERIA or kind not in _TYPES:
        return None
    reservation = ResolvedReservation(
        availability_zone=entry["AvailabilityZone"],
        end_time=ends.strftime("%Y-%m-%dT%H:%M:%SZ") if ends is not None else "",
        id=entry["CapacityReservationId"],
        instance_match_criteria=criteria,
        instance_type=entry["InstanceType"],
        owner_id=entry.get("OwnerId", ""),
        reservation_type=kind,
        interruptible=bool(entry.get("Interruptible", False)),
    )
    return replace(reservation, state=state_of(reservation, now))
