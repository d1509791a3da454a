"""The live aggregate and the fold agree on every sequence of claim events: what is refused, state, memory, version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.nodeclaim.aggregate import NodeClaimAggregate
from kerf.engine.nodeclaim.claim import Effect, NodeClaim, apply
from kerf.engine.nodeclaim.effect_keys import deletion, eviction
from kerf.engine.nodeclaim.state_table import STATES, TERMINATED, TransitionRefused
from kerf.engine.record import claim_events as ev

AT = 1_700_000_000_000
REF = NodeClassRef("g", "K", "n")
ADOPTED = [
    ev.Adopted("c", state, "p", REF, registered=registered, initialized=initialized)
    for state in STATES
    for registered, initialized in ((0, 0), (AT, 0), (AT, AT))
]
EVENTS: list[Struct] = [
    ev.Requested("c", "p", REF, (), (), {}, (), 0.0, 1),
    *ADOPTED,
    ev.Launched("c", "i", "p", "t", "z", "spot", 0.1, {}, {}),
    ev.LaunchFailed("c", "insufficient-capacity"),
    ev.LaunchTimedOut("c", 1),
    ev.Cancelled("c"),
    ev.Registered("c", "n"),
    ev.Initialized("c", "n"),
    ev.Tainted("c", "empty"),
    ev.ReasonRaised("c", "expired", "empty"),
    ev.Untainted("c"),
    ev.DrainStarted("c", "n"),
    ev.PodEvicted("c", "u", "ns/p"),
    ev.PodForced("c", "u", "ns/p"),
    ev.Drained("c"),
    ev.VolumesDetached("c"),
    ev.InstanceVanished("c", "i"),
    ev.Terminated("c", "empty"),
]
BEGINNINGS = [
    [EVENTS[0], EVENTS[len(ADOPTED) + 1], ev.Registered("c", "n"), ev.Tainted("c", "empty")],
    *([e] for e in ADOPTED),
]


def fold(claim: NodeClaim, event: Struct) -> bool:
    """Whether the fold takes it."""
    try:
        apply(claim, event, at=AT, position=claim.version + 1)
    except TransitionRefused:
        return False
    claim.version += 1
    return True


def live(aggregate: NodeClaimAggregate, event: Struct) -> bool:
    """Whether the aggregate allows it."""
    try:
        aggregate.happened(event, at=AT)
    except TransitionRefused:
        return False
    return True


@given(st.sampled_from(BEGINNINGS), st.lists(st.sampled_from(EVENTS), max_size=12))
def test_a_live_aggregate_and_the_fold_agree(beginning: list[Struct], events: list[Struct]) -> None:
    effects = {eviction("u"): Effect("1.0", AT), deletion("u"): Effect("1.1", AT)}
    claim = NodeClaim(name="c", effects=effects)
    aggregate = NodeClaimAggregate.restored(claim)
    for event in (*beginning, *events):
        allowed = live(aggregate, event)
        assert fold(claim, event) == allowed, (event, claim.state)
        assert (aggregate.machine.state, aggregate.machine.before) == (claim.state, claim.before)
        assert aggregate.version == claim.version
        if claim.state == TERMINATED:
            break
