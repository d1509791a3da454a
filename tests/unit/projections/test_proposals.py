"""What ends with the turn in which a process takes office is told as if the process had run before."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, PlannedClaim, ProposedMovesResult
from kerf.engine.record.observations import OfficeTaken
from kerf.projections.metrics.counters import RecordCounters
from kerf.projections.proposals import proposals_that_end_with_office
from tests.support.lives import claim_of, in_service
from tests.support.metrics import scraped, value


def move(*replacements: str) -> Move:
    return Move(
        "drifted", ("old",), tuple(PlannedClaim(name, "default", (), (), (), {}, 0.0, ()) for name in replacements)
    )


def decision(result: MoveStepResult | ProposedMovesResult) -> Decision:
    return Decision("moves", 1, 1, 1, "", result)


def test_m7_d118_a_replacement_in_service_is_known_of_a_move_that_is_abandoned_as_a_process_takes_office() -> None:
    """Its proposal names no replacements: they have their names since it began."""
    world = in_service()
    last = world.store.entries[-1]
    payloads: tuple[Struct, ...] = (
        decision(ProposedMovesResult((move("", ""),))),
        decision(MoveStepResult("100.0", "started", Reason("drifted"), begun=move(claim_of(world).name, "late"))),
        OfficeTaken(9, "b"),
        decision(MoveStepResult("100.0", "abandoned", Reason("timeout"))),
    )
    entries = [replace(last, position=100 + n, payload=payload) for n, payload in enumerate(payloads)]
    counters = RecordCounters(world.runtime.state, "aws", entries[2:])
    for entry in proposals_that_end_with_office(entries):
        counters.recall(entry)
    for entry in entries[2:]:
        counters.apply(entry)
    found = scraped(exposition(counters.families()))
    assert value(found, "karpenter_voluntary_disruption_queue_failures_total", decision="replace") == 1
