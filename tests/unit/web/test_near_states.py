"""The explorer's states between a record's snapshots: nearer than these, and the same."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import AnyStore, open_record
from kerf.adapters.web import decisions, findings, questions, reader, searching
from kerf.adapters.web.timeline import near_states
from kerf.adapters.web.timeline.near_states import NearStates
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.history.histories import Histories
from kerf.replay.history.histories_until import histories_of
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.time_travel.moments import moment_of
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


def test_states_packed_beside_a_like_one_are_smaller(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    for like_one in (1, 4):
        monkeypatch.setattr(near_states, "_LIKE_ONE", like_one)
        with closing(open_record(record)) as store:
            near = NearStates(store)
            while not near.advance(0.001):
                pass
            alone = [kept for kept in near._kept if kept.like is None]
            assert len(alone) == -(-len(near._kept) // like_one)
            sizes.append(sum(len(kept.packed) for kept in near._kept))
    assert sizes[1] < sizes[0] * 0.8


def test_a_packed_state_takes_no_more_memory_than_its_bytes() -> None:
    data, compressor = bytes(1_000_000), zstandard.ZstdCompressor()
    tracemalloc.start()
    packed = near_states._packed(data, compressor)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert zstandard.ZstdDecompressor().decompress(packed) == data
    assert len(packed) < 1_000
    assert kept < 20_000


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
        return named_record(*given, **more)

    monkeypatch.setattr(reader, "named_record", made)
    monkeypatch.setattr("kerf.adapters.cli.named_record.SHORTEST_KEPT", 1)
    with closing(reader.RecordReader(str(record), short=0)) as opened:

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


def test_the_states_at_the_cursor_and_at_the_end_are_loaded_once(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to look at first is that of the end, whatever moment was asked for since."""
    loaded: list[int] = []

    def noted(store: Any, until: int | None = None) -> State:
        loaded.append(until or 0)
        return load(store, until)

    monkeypatch.setattr(reader, "load", noted)
    monkeypatch.setattr(reader, "NEAR", 2)
    with closing(reader.RecordReader(str(record))) as opened:

        def asked(read: reader.RecordReader) -> list[Any]:
            first = findings.findings(read)
            told = [questions.status(read, at) for at in ("10", "10", "20", "30", "10")]
            assert findings.findings(read) == first
            return told

        told = asyncio.run(opened.ask(asked))
        assert loaded == [opened.store.last_position(), 10, 20, 30, 10]
    assert told[0] == told[1] == told[4]


def test_a_decision_of_a_long_record_is_told_by_the_index(record: Path) -> None:
    with closing(reader.RecordReader(str(record))) as opened:
        positions = [entry.position for entry in opened.store.scan() if entry.type == "decision.made"]
        told = [asyncio.run(opened.ask(partial(decisions.decision, position=at))) for at in positions]
    with closing(reader.RecordReader(str(record), short=0)) as opened:
        assert [asyncio.run(opened.ask(partial(decisions.decision, position=at))) for at in positions] == told
        assert opened._named is not None
    assert any(one.pieces for one in told)


def test_the_log_of_a_subject_is_the_same_by_index_and_decodes_what_is_of_no_pod_once(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What these entries tell is kept, and they are not. What plans tell of pods is asked of all."""
    decoded: list[int] = []
    others = NamedEntries.others

    def counted(named: NamedEntries, only: Any = None) -> Any:
        decoded.append(named.until)
        return others(named, only)

    monkeypatch.setattr(NamedEntries, "others", counted)
    with closing(reader.RecordReader(str(record))) as plain:
        every = asyncio.run(plain.ask(lambda read: questions.log(read, limit=1_000)))
        subjects = sorted({name for event in every.events for name in event.subjects})
        asks = [
            partial(questions.log, subject=name, until=until) for name in subjects for until in (0, every.events[-5].at)
        ]
        told = [asyncio.run(plain.ask(ask)) for ask in asks]
    assert {name.partition("/")[0] for name in subjects} > {"nodeclaim", "node", "pod", "decision", "nodepool"}
    with closing(reader.RecordReader(str(record), short=0)) as opened:
        for ask, answer in zip(asks, told, strict=True):
            decoded.clear()
            known = opened._named is not None and "told" in opened._named._folds
            assert asyncio.run(opened.ask(ask)) == answer
            of_plans = ask.keywords["subject"].startswith(("decision/", "pod/"))
            assert len(decoded) == (1 if of_plans or not known else 0), ask.keywords


def test_the_names_of_a_record_are_read_once_and_again_when_it_grows(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def noted(store: AnyStore, *given: Any) -> Histories:
        read.append(store.last_position())
        return histories_of(store, *given)

    monkeypatch.setattr(searching, "histories_of", noted)
    with closing(reader.RecordReader(str(record))) as opened:
        first, again, other = (
            asyncio.run(opened.ask(partial(searching.search, q=text))) for text in ("default", "default", "defualt")
        )
        assert [found.kind for found in first][:3] == ["nodepool", "nodeclass", "nodeclaim"]
        assert again == first
        assert other
        assert read == [opened.store.last_position()]
        monkeypatch.setattr(opened.store, "last_position", lambda: read[0] - 1)
        asyncio.run(opened.ask(partial(searching.search, q="default")))
        assert len(read) == 2


def test_a_time_is_found_between_the_states_that_are_kept(record: Path) -> None:
    with closing(open_record(record)) as store:
        near = NearStates(store)
        while not near.advance(0.001):
            pass
        entries = list(store.scan())
        looked: list[int] = []

        def around(time: int) -> tuple[int, int]:
            begin, end = near.around(time)
            looked.append(min(end, len(entries)) - begin)
            return begin, end

        for at in sorted({entry.at + aside for entry in entries for aside in (0, 1)}):
            assert moment_of(store, moment(at), around) == moment_of(store, moment(at))
        assert max(looked) < len(entries) / 2
        with pytest.raises(PositionUnknown):
            moment_of(store, moment(entries[0].at - 1), around)


def test_a_state_that_is_dropped_is_freed_after_the_answer(record: Path) -> None:
    async def look(read: reader.RecordReader) -> None:
        for position in (45, 30, 20):
            await read.ask(partial(_state_at, position))
        assert [state.facts.position for state in read._states] == [30, 20]
        assert [state.facts.position for state in read._dropped] == [45]
        await read.tidy()
        assert not read._dropped
        await read.ask(partial(_state_at, 15))
        await read.ask(partial(_state_at, 10))
        assert len(read._dropped) == 1, "where nobody tidies up, no more than one waits for it"

    with closing(reader.RecordReader(str(record))) as read:
        asyncio.run(look(read))


def _state_at(position: int, read: reader.RecordReader) -> State:
    return read.state(read.moment(str(position)))
