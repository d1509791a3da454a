"""Reserved capacity through whole lives: it is launched first, counted, and given up when its reservation is over."""

from __future__ import annotations

from collections import Counter

from kerf.engine.model import labels as lbl
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, ZONES, Run, scale, workshop

TWO = {"cr-1": ("c5.large", ZONES[0], 1), "cr-2": ("m5.large", ZONES[1], 1)}


def documents(*actions: dict[str, object]) -> list[object]:
    found = workshop(*actions)
    for document in found:
        if document["kind"] == "NodePool":
            for requirement in document["spec"]["template"]["spec"]["requirements"]:
                if requirement["key"] == lbl.CAPACITY_TYPE:
                    requirement["values"] = ["on-demand", "reserved"]
    return found


def in_service(run: Run) -> list[NodeClaim]:
    return [claim for claim in run.runtime.state.facts.claims.values() if claim.initialized]


def test_a229_reserved_capacity_is_used_first_and_no_more_of_it_than_there_is() -> None:
    run = Run(documents(scale("10s", 8)), reservations=TWO)
    by_kind = Counter(claim.capacity_type for claim in in_service(run))
    assert 0 < by_kind["reserved"] <= 2
    held = [claim.labels[lbl.RESERVATION_ID] for claim in in_service(run) if claim.capacity_type == "reserved"]
    assert len(set(held)) == len(held)
    orders = [entry.payload for entry in run.entries("launch.answered") if entry.payload.errors]
    assert [error.code for order in orders for error in order.errors] == []
    assert not any(lbl.RESERVATION_ID in claim.labels for claim in in_service(run) if claim.capacity_type != "reserved")
    assert verify(run.store).exit_code == 0


def test_d98_a_dearer_node_is_replaced_by_reserved_capacity_that_has_come_free() -> None:
    """W-42: the replacement is pinned to the reservation."""
    run = Run(
        documents(
            {"at": "1s", "action": "capacity", "capacityType": "reserved"},
            scale("10s", 3),
            {"at": "20m", "action": "restore-capacity"},
        ),
        until=2 * HOUR,
        reservations={"cr-1": ("m5.xlarge", ZONES[0], 1)},
    )
    assert [claim.capacity_type for claim in in_service(run)] == ["reserved"]
    assert verify(run.store).exit_code == 0


def test_l250_what_runs_on_as_on_demand_is_relabelled() -> None:
    run = Run(
        documents(scale("10s", 2), {"at": "20m", "action": "end-reservation", "capacityType": "reserved"}),
        until=HOUR,
        reservations={"cr-1": ("m5.xlarge", ZONES[0], 1)},
    )
    first = run.entries("claim.launched")[0].payload
    assert first.capacity_type == "reserved"
    demoted = [entry.payload for entry in run.entries("instance.seen") if entry.payload.capacity_type]
    assert [(seen.instance, seen.capacity_type) for seen in demoted] == [(first.instance, "on-demand")]
    decisions = [entry.payload.decider for entry in run.entries("decision.made")]
    assert "drift" not in decisions
    relabelled = [
        intent
        for entry in run.entries("decision.made")
        if getattr(entry.payload.result, "reason", None) is not None and entry.payload.result.reason.code == "relabel"
        for intent in entry.payload.intents
    ]
    assert [(order.labels[lbl.CAPACITY_TYPE], sorted(order.without)) for order in relabelled] == [
        ("on-demand", [lbl.RESERVATION_ID, lbl.RESERVATION_INTERRUPTIBLE, lbl.RESERVATION_TYPE])
    ]
    assert verify(run.store).exit_code == 0
