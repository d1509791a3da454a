"""The aggregate decides about a claim's events and numbers them, as long as the claim lives."""

from __future__ import annotations

import pytest

from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.nodeclaim.aggregate import ClaimAggregates, NodeClaimAggregate
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import TransitionRefused
from kerf.engine.record import claim_events as ev

AT = 1_700_000_000_000
REQUESTED = ev.Requested("c", "p", NodeClassRef("g", "K", "n"), (), (), {}, (), 0.0, 1)
LAUNCHED = ev.Launched("c", "i", "p", "t", "z", "spot", 0.1, {}, {})


def test_it_counts_its_own_events() -> None:
    aggregate = NodeClaimAggregate.restored(NodeClaim(name="c"))
    events = [aggregate.happened(event, at=AT) for event in (REQUESTED, LAUNCHED, ev.Registered("c", "n"))]
    assert [event.originator_version for event in events] == [1, 2, 3]
    assert {event.originator_id for event in events} == {"nodeclaim/c"}
    assert (aggregate.version, aggregate.machine.state) == (3, "registered")
    assert not aggregate.pending_events


def test_a_refused_event_has_no_number() -> None:
    aggregate = NodeClaimAggregate.restored(NodeClaim(name="c", version=7, state="launched"))
    with pytest.raises(TransitionRefused, match="NodeClaim c is launched: Initialized is not allowed"):
        aggregate.happened(ev.Initialized("c", "n"), at=AT)
    assert (aggregate.version, aggregate.machine.state) == (7, "launched")
    assert aggregate.happened(ev.Registered("c", "n"), at=AT).originator_version == 8


def test_one_writer_restores_an_aggregate_once() -> None:
    aggregates = ClaimAggregates()
    first = aggregates.of(NodeClaim(name="c", version=3, state="launched"))
    assert aggregates.of(NodeClaim(name="c", version=9, state="tainted")) is first
    aggregates.forget("c")
    assert aggregates.of(NodeClaim(name="c", version=9, state="tainted")).version == 9
