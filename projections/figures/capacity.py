"""Measure capacity that the cloud refused, by offering and time."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import LaunchAnswered, LaunchError
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.measures import Measure
from kerf.projections.workload_names import workload_of

REFUSED, LAUNCHES_LOST = "refused", "launches_lost"
NOT_FOUND = "not-found"


OFFERING_PARTS = ("zone", "capacity", "type")


def about_offering(error: LaunchError) -> dict[str, str]:
    """Return the parts of the offering that an error is about, by dimension."""
    return {"type": error.instance_type, "zone": error.zone, "capacity": error.capacity_type}


class CapacityFold:
    """Folds refusals over the lives of nodes, which are to be given each entry first.

    `refused` counts answers about one offering; `launches_lost` the launches that came to nothing by them.
    """

    reads: frozenset[type[Struct]] = frozenset({LaunchAnswered})

    def __init__(self, lives: LivesFold) -> None:
        self._lives = lives
        self.measures: list[Measure] = []

    def apply(self, entry: Entry) -> None:
        answer = entry.payload
        if not isinstance(answer, LaunchAnswered) or answer.kind == NOT_FOUND:
            return
        about = self._about(answer.claim)
        for error in answer.errors:
            offering = "/".join(filter(None, (error.capacity_type, error.instance_type, error.zone)))
            self._add(
                entry, {**about, **about_offering(error), "offering": offering, "reason": error.code}, {REFUSED: 1}
            )
        if not answer.instance:
            reason = answer.code or answer.kind
            lost: dict[str, float] = {REFUSED: 0 if answer.errors else 1, LAUNCHES_LOST: 1}
            first = answer.errors[0] if answer.errors else None
            offering = "/".join(filter(None, (first.capacity_type, first.instance_type, first.zone))) if first else ""
            said = about_offering(first) if first else {}
            reason = first.code if first is not None else reason
            self._add(entry, {**about, **said, "offering": offering, "reason": reason}, lost)

    def _add(self, entry: Entry, about: dict[str, str], amounts: dict[str, float]) -> None:
        self.measures.append(Measure(entry.at, about, amounts))

    def _about(self, claim: str) -> dict[str, str]:
        """The NodePool, and the workload of the first pod that the node was for."""
        life = self._lives.life(claim)
        pods = (self._lives.pods[uid] for uid in life.pods if uid in self._lives.pods)
        return {"pool": life.node_pool, "node": claim, "workload": next((workload_of(pod).key for pod in pods), "")}
