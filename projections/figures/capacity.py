"""Measure capacity that the cloud refused, by offering and time."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.launch_reasons import fleet_errors
from kerf.engine.record.claim_events import LaunchFailed
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ControllerSaid, LaunchAnswered, LaunchError
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

    `refused` counts answers about one offering; `launches_lost` the launches that came to nothing by them. An imported
    log has no answers: what it says of refused offerings counts (F-80), and each launch that failed (F-68).
    """

    reads: frozenset[type[Struct]] = frozenset({LaunchAnswered, LaunchFailed, ControllerSaid})

    def __init__(self, lives: LivesFold) -> None:
        self._lives = lives
        self._answered: set[str] = set()
        self._offerings_told = False  # by an imported log, whose level is DEBUG then
        self.measures: list[Measure] = []

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, LaunchAnswered) and payload.kind != NOT_FOUND:
            self._answered.add(payload.claim)
            self._answer(payload, entry)
        elif isinstance(payload, LaunchFailed) and payload.claim not in self._answered:
            self._failed(payload, entry)
        elif isinstance(payload, ControllerSaid) and payload.refused:
            self._offerings_told |= any(error.instance_type for error in payload.refused)
            about = self._about(payload.claims[0]) if payload.claims else {}
            self._refused(entry, about, payload.refused)

    def _failed(self, failed: LaunchFailed, entry: Entry) -> None:
        about = self._about(failed.claim)
        errors = tuple(
            LaunchError(error.code, instance_type=error.instance_type, zone=error.zone)
            for error in fleet_errors(failed.message)
        )
        self._refused(entry, about, errors)
        reason = errors[0].code if errors else failed.kind
        refused = 0 if errors or self._offerings_told else 1
        self._add(entry, {**about, "reason": reason}, {REFUSED: refused, LAUNCHES_LOST: 1})

    def _refused(self, entry: Entry, about: dict[str, str], errors: tuple[LaunchError, ...]) -> None:
        for error in errors:
            offering = "/".join(filter(None, (error.capacity_type, error.instance_type, error.zone)))
            self._add(
                entry, {**about, **about_offering(error), "offering": offering, "reason": error.code}, {REFUSED: 1}
            )

    def _answer(self, answer: LaunchAnswered, entry: Entry) -> None:
        about = self._about(answer.claim)
        self._refused(entry, about, answer.errors)
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
