"""The explorer's states between a record's snapshots: nearer than these, and the same."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.adapters.web import questions, reader
from kerf.adapters.web.timeline import near_states
from kerf.adapters.web.timeline.near_states import NearStates
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.replay.record_names.named_entries import NamedEntries
from tests.support.records import stored, whole_life


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(near_states, "SHORT", 0)
    monkeypatch.setattr(near_states, "APART", 5)
    return stored(tmp_path / "life.kerf", whole_life().store)


def test_each_state_is_the_one_that_folding_gives_and_is_loaded_from_near(record: Path) -> None:
    with closing(open_record(record)) as plain, closing(open_record(record)) as store:
        near = NearStates(store)
        while not near.advance(0.001):
            pass
        for position in range(plain.first_position(), plain.last_position() + 1):
            assert snapshot.digest(load(store, position)) == snapshot.digest(load(plain, position))
        found = store.snapshot(None, snapshot.SCHEMA)
        assert found is not None
        assert found[0] > plain.last_position() - 15
        assert store.snapshot(None, "another schema") is None


def test_it_ends_at_its_limit_and_what_is_kept_stays_good(record: Path) -> None:
    with closing(open_record(record)) as store:
        near = NearStates(store, lambda: 0.0)
        assert near.advance(1.0)
        assert load(store).facts.position == store.last_position()


def test_a_short_record_is_not_folded(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_states, "SHORT", 20_000)
    with closing(open_record(record)) as store:
        assert NearStates(store).advance(1.0)
        assert store.snapshot(None, snapshot.SCHEMA) is None


def test_the_index_of_names_is_made_beside_other_questions(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_in: list[str] = []

    def made(*given: Any, **more: Any) -> NamedEntries | None:
        made_in.append(threading.current_thread().name)
        return named_record(*given, **more, short=0)

    monkeypatch.setattr(reader, "SHORT", 0)
    monkeypatch.setattr(reader, "named_record", made)
    monkeypatch.setattr("kerf.adapters.cli.named_record.SHORTEST_KEPT", 1)
    with closing(reader.RecordReader(str(record))) as opened:

        async def asked() -> Any:
            await opened.indexed()
            return await opened.ask(lambda read: questions.story(read, "nodepool/default"))

        told = asyncio.run(asked())
        assert told.command.endswith("nodepool/default")
        assert opened._named is not None
        assert [part.until for part in opened._named.parts] == [opened.store.last_position()]
        assert made_in == ["explorer-index"]
    with closing(reader.RecordReader(str(record))) as plain:
        assert asyncio.run(plain.ask(lambda read: questions.story(read, "nodepool/default"))).events == told.events
