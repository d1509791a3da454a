"""What a question to the explorer may take: one that takes too long ends, and the next one is answered."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli import limits
from kerf.adapters.cli.limits import LIFTED, LimitReached
from kerf.adapters.web.commands import Commands
from kerf.adapters.web.limits import QuestionLimits, limits_of
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.timeline.picture import Picture
from tests.support import hostile
from tests.support.records import stored, whole_life


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[RecordReader]:
    with closing(RecordReader(str(stored(tmp_path / "life.kerf", whole_life().store)))) as opened:
        yield opened


@pytest.fixture
def hardly_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    monkeypatch.setattr(limits, "TO_DECIDE", 0)


def endless(_: RecordReader) -> None:
    while True:
        pass


def endless_statement(reader: RecordReader) -> None:
    with reader.store.session() as session:  # type: ignore[union-attr]
        session.run(f"{hostile.FOR_EVER} SELECT count(*) FROM t")


@pytest.mark.parametrize("question", [endless, endless_statement])
@pytest.mark.usefixtures("hardly_any_time")
def test_a_question_that_takes_too_long_ends_and_the_next_is_answered(
    reader: RecordReader, question: Callable[[RecordReader], None]
) -> None:
    for _ in range(2):
        with pytest.raises(LimitReached, match=r"KERF128.*CPU time") as reached:
            asyncio.run(reader.ask(question))
        assert "--no-limits" in reached.value.hint
        assert asyncio.run(reader.ask(lambda read: read.store.last_position())) == 50


@pytest.mark.usefixtures("hardly_any_time")
def test_each_of_many_answers_may_take_as_much(reader: RecordReader) -> None:
    def many(read: RecordReader) -> int:
        for _ in range(10):
            read.limits.renew()
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                pass
        return 10

    reader.limits._every = 0.001
    assert asyncio.run(reader.ask(many)) == 10


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory by RLIMIT_DATA")
def test_a_question_that_takes_too_much_memory_ends_and_nothing_stays_limited(
    reader: RecordReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MEGABYTES", 50)
    with pytest.raises(LimitReached, match="memory"):
        asyncio.run(reader.ask(lambda _: len(bytearray(1 << 30))))
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY


@pytest.mark.usefixtures("hardly_any_time")
def test_opening_a_record_is_limited_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerf.adapters.web.reader.open_record", endless)
    with pytest.raises(LimitReached):
        RecordReader(str(stored(tmp_path / "life.kerf", whole_life().store)))


def test_what_is_read_for_the_timeline_ends_with_a_fault_that_says_so() -> None:
    picture = Picture(whole_life().store, lambda: 1e-9)  # type: ignore[arg-type]
    picture._begin = lambda: None  # type: ignore[method-assign]
    assert picture.advance(1.0)
    assert picture.fault.startswith("KERF128")
    assert "--no-limits" in picture.fault


def test_a_record_that_grows_may_take_more(tmp_path: Path) -> None:
    place = tmp_path / "live.kerf"
    place.write_bytes(bytes(1 << 20))
    with closing(QuestionLimits([place])) as limited:
        before = limited.seconds()
        place.write_bytes(bytes(10 << 20))
        assert limited.seconds() > 5 * before


def test_the_users_word_lifts_the_limits_of_questions_and_commands_and_a_database_has_none(tmp_path: Path) -> None:
    place = str(stored(tmp_path / "life.kerf", whole_life().store))
    none = float("inf")
    assert limits_of("postgresql://kerf@db/kerf").seconds() == none
    with closing(limits_of(place)) as limited:
        assert limited.seconds() < none
    assert Commands().flags == ()
    token = LIFTED.set(True)
    assert limits_of(place).seconds() == none
    assert Commands().flags == ("--no-limits",)
    LIFTED.reset(token)
