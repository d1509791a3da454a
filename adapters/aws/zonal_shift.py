"""Zonal shifts of the cluster: the zones that ARC has taken traffic out of, because something is wrong there (A-215,
A-376).

While a zone is shifted, nothing is launched into it. EKS cordons its nodes by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.adapters.aws.session import Clients, call
from kerf.adapters.aws.told_once import ToldOnce
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.observations import TaggedInstance

EVERY = 30_000
"""How often (ms) ARC is asked (A-376)."""
_APPLIED = "APPLIED"


class Whereabouts(Struct, frozen=True):
    """In which zone an instance is, and how it was last seen: EC2's state name, and its tags."""

    zone_id: str
    status: str
    instance: TaggedInstance


class ZonalShifts:
    """Knows the shifted zones of one cluster, and the instances in them. `cluster` is its ARN; without one no zone is
    ever shifted."""

    def __init__(self, clients: Clients, cluster: str, clock: Callable[[], int]) -> None:
        self._clients, self._cluster, self._clock = clients, cluster, clock
        self._due = 0
        self._ends: dict[str, int] = {}  # zone id → when its shift ends
        self._told = ToldOnce()
        self._instances: dict[str, Whereabouts] = {}

    def refresh(self) -> list[KerfError]:
        """Ask ARC if that is due. What was known stays where it does not answer, or nobody can read the answer. Returns
        its refusal, once for as long as it is the same."""
        if not self._cluster or self._clock() < self._due:
            return []
        self._due = self._clock() + EVERY
        try:
            answer = call(self._clients.arc_zonal_shift.get_managed_resource, resourceIdentifier=self._cluster)
            self._ends = {
                str(shift["awayFrom"]): int(shift["expiryTime"].timestamp() * 1000)
                for shift in answer.get("zonalShifts", ())
                if shift.get("appliedStatus") == _APPLIED
            }
        except Exception as error:
            return self._told.news([fault_of(error, "zonal shifts")])
        return self._told.news([])

    def zones(self) -> tuple[str, ...]:
        """The ids of the zones that are shifted now, sorted (A-215)."""
        now = self._clock()
        return tuple(sorted(zone for zone, end in self._ends.items() if now < end))

    def due(self) -> list[int]:
        """When ARC has to be asked, and when shifts end (ms since the epoch); nothing without a cluster."""
        ends = [end for end in self._ends.values() if self._clock() < end]
        return [self._due, *ends] if self._cluster else []

    # ── instances ──────────────────────────────────────────────────────────────────────────────────

    def remember(self, zone_id: str, status: str, instance: TaggedInstance) -> None:
        """Keep where an instance is, and how it was last seen. `zone_id` is "" where EC2 does not say it again."""
        before = self._instances.get(instance.instance)
        zone_id = zone_id or (before.zone_id if before is not None else "")
        if self._cluster and zone_id:
            self._instances[instance.instance] = Whereabouts(zone_id, status, instance)

    def forget(self, instance: str) -> None:
        self._instances.pop(instance, None)

    def hidden(self) -> dict[str, Whereabouts]:
        """The instances in shifted zones, by id. EC2 is not asked about them: it may not know them, and they are
        there."""
        zones = self.zones()
        return {name: known for name, known in sorted(self._instances.items()) if known.zone_id in zones}
