"""The state table: the fold's lookup, the `transitions` machine and the docs say the same."""

from __future__ import annotations

import itertools

import pytest
from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.nodeclaim.state_machine import ClaimMachine
from kerf.engine.nodeclaim.state_table import ADOPTABLE, STATES, STEADY, TransitionRefused, next_state
from kerf.engine.nodeclaim.state_table_markdown import markdown
from kerf.engine.record import claim_events as ev
from tests.support.repository import ROOT

REF = NodeClassRef("g", "K", "n")
SAMPLES: dict[type[Struct], list[Struct]] = {
    ev.Requested: [ev.Requested("c", "p", REF, (), (), {}, (), 0.0, 1)],
    ev.Launched: [ev.Launched("c", "i", "p", "t", "z", "spot", 0.1, {}, {})],
    ev.LaunchFailed: [ev.LaunchFailed("c", "insufficient-capacity")],
    ev.LaunchTimedOut: [ev.LaunchTimedOut("c", 1)],
    ev.Cancelled: [ev.Cancelled("c")],
    ev.Adopted: [ev.Adopted("c", state, "p", REF) for state in STATES],
    ev.Registered: [ev.Registered("c", "n")],
    ev.Initialized: [ev.Initialized("c", "n")],
    ev.Tainted: [ev.Tainted("c", "empty")],
    ev.ReasonRaised: [ev.ReasonRaised("c", "expired", "empty")],
    ev.Untainted: [ev.Untainted("c")],
    ev.DrainStarted: [ev.DrainStarted("c", "n")],
    ev.PodEvicted: [ev.PodEvicted("c", "u", "ns/p")],
    ev.PodForced: [ev.PodForced("c", "u", "ns/p")],
    ev.Drained: [ev.Drained("c")],
    ev.VolumesDetached: [ev.VolumesDetached("c")],
    ev.InstanceVanished: [ev.InstanceVanished("c", "i")],
    ev.Terminated: [ev.Terminated("c", "empty")],
}


def test_every_claim_event_has_a_sample() -> None:
    assert set(SAMPLES) == set(ev.CLAIM_EVENTS)


def _by_table(state: str, event: Struct, before: str) -> str | None:
    try:
        return next_state(state, event, before=before)
    except TransitionRefused:
        return None


def _by_machine(state: str, event: Struct, before: str) -> str | None:
    try:
        return ClaimMachine("c", state, before).fire(event)
    except TransitionRefused:
        return None


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ev.CLAIM_EVENTS, ids=lambda k: k.__name__)
def test_lookup_and_machine_agree_on_every_pair(state: str, kind: type[Struct]) -> None:
    for event, before in itertools.product(SAMPLES[kind], ("", *STEADY)):
        assert _by_table(state, event, before) == _by_machine(state, event, before)


def test_untainted_leads_back_to_the_remembered_state_only() -> None:
    assert [_by_table("tainted", ev.Untainted("c"), before) for before in STEADY] == list(STEADY)
    assert _by_table("tainted", ev.Untainted("c"), "") is None


def test_adoption_enters_any_state_up_to_draining() -> None:
    entered = [e.state for e in SAMPLES[ev.Adopted] if _by_table("absent", e, "") is not None]  # type: ignore[attr-defined]
    assert entered == list(ADOPTABLE)


def test_a_refusal_names_claim_state_event_and_position() -> None:
    with pytest.raises(TransitionRefused) as caught:
        next_state("requested", ev.Registered("default-abcde", "n"), position=17)
    text = str(caught.value)
    assert caught.value.code == "KERF701"
    assert all(word in text for word in ("default-abcde", "requested", "Registered", "17"))


def test_the_docs_show_this_table() -> None:
    page = ROOT / "docs" / "nodeclaim.md"
    assert page.read_text() == markdown(), "docs/nodeclaim.md differs: write it anew with table_text.markdown()"
