"""The explorer's first look at a record, which leaves entries out, shows what the whole picture shows."""

from __future__ import annotations

from contextlib import closing

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.store.open import open_record
from kerf.adapters.web.timeline.picture import Picture
from kerf.engine.record.claim_events import PodEvicted
from tests.support.repository import ROOT

RECORD = ROOT / "tests/records/unreleased/golden-drifted-replacement-first.kerfb"


def test_a_first_look_has_the_lanes_marks_and_costs_of_the_whole() -> None:
    with closing(open_record(RECORD)) as store:
        assert any(isinstance(entry.payload, PodEvicted) for entry in store.scan())
        first, whole = Picture(store)._first_look(), Picture(store).whole()
    assert whole.lanes
    assert first.lanes == whole.lanes
    assert first.marks == whole.marks
    assert first.curves.pools == whole.curves.pools
    assert first.curves.nodes == whole.curves.nodes
