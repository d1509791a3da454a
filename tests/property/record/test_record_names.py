"""An answer from the index of a record is the one that reading all of it gives, for every name, at every moment."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.cli import figures, record_log
from kerf.adapters.cli.named_record import named_record
from kerf.adapters.cli.record_log import LogQuery, RecordLog
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.files.golden import GoldenStore
from kerf.adapters.store.index_files import folder
from kerf.adapters.store.open import AnyStore
from kerf.adapters.store.retention.policy import Due
from kerf.adapters.store.retention.prune import cut_now
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import KerfError
from kerf.engine.record.errors import RecordCorrupt
from kerf.projections.figures.evictions import EvictedAgain, EvictionsFold, evicted_pods
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.measures import Measure
from kerf.replay.errors import SubjectUnknown
from kerf.replay.explain.subject import explain
from kerf.replay.history.event_filter import Asked
from kerf.replay.history.histories import ClaimHistory
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.story import story
from kerf.replay.history.subjects import subject_at
from kerf.replay.history.successor_pods import Successors
from kerf.replay.record_names import named_entries
from kerf.replay.record_names.named_entries import NamedEntries, uid_of
from kerf.replay.record_names.postings import part_of
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.repository import ROOT
from tests.support.simulation.chaos import chaos
from tests.support.slow import slow

GOLDEN = sorted(path.parent for path in (ROOT / "tests/golden").glob("*/record.json*"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module", params=[102, *slow(100, 104)])
def record(request: pytest.FixtureRequest) -> MemoryStore:
    return chaos(request.param).memory


def named(store: AnyStore, until: int) -> NamedEntries:
    found = named_record(store, until, short=0)
    assert found is not None
    return found


def names_of(store: AnyStore, each: int) -> Iterator[str]:
    """Some names of every kind, spread over the record, written in several ways, and two that nobody has."""
    histories = histories_of(store)
    pods = list(histories.pods.every())
    known = (
        [pod.key for pod in pods],
        [pod.key.partition("/")[2] for pod in pods],
        sorted({f"workload/{name}" for pod in pods for name in pod.workload_names()}),
        [f"node/{name}" for name in histories.nodes],
        list(histories.claims),
        sorted({claim.instance for claim in histories.claims.values() if claim.instance}),
        [f"nodepool/{name}" for name in histories.node_pools],
        [f"pdb/{name}" for name in histories.budgets],
        [f"decision/{position}" for position in histories.decisions],
    )
    for names in known:
        yield from names[:: max(1, len(names) // each)][:each]
    yield from ("nobody", "pod/default/nobody", *(f"pod/{pod.key}x" for pod in pods[-1:]))


def answers(store: AnyStore, name: str, until: int, index: NamedEntries | None) -> list[Any]:
    found: list[Any] = []
    for ask in (
        lambda: story(store, name, until, index),
        lambda: explain(store, name, until, 0, index),
    ):
        try:
            found.append(ask())
        except KerfError as error:
            found.append((error.code, error.message, error.where, error.hint))
    return found


def compare(store: AnyStore, each: int, most: int = 100) -> None:
    first, last = store.first_position(), store.last_position()
    whole = named(store, last)
    for number, name in enumerate(islice(names_of(store, each), most)):
        until = last if number % 3 else first + (last - first) * (number % 7 + 1) // 8
        index = whole.up_to(until) if number % 5 else named(store, until)
        assert answers(store, name, until, index) == answers(store, name, until, None), (name, until)


def test_an_unknown_name_is_compared_with_those_of_the_index(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folding a record of a million entries for the names in it takes 10 s."""
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "write")
    last, key = store.last_position(), list(histories_of(store).pods.every())[-1].key
    index = named(store, last)
    with monkeypatch.context() as patched:
        patched.setattr(store, "scan", None)
        for until in (last, last - 10):
            with pytest.raises(SubjectUnknown, match=f"Is it .*{key}"):
                subject_at(store, f"pod/{key}x", until, index.up_to(until))
    store.close()


def test_histories_that_are_cut_are_those_that_are_folded_up_to_there(record: MemoryStore, tmp_path: Path) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "write")
    for again in (False, True):
        whole = named(store, store.last_position())
        for until in range(whole.after, store.last_position() + 1, 7):
            cut, folded = (histories_of(store, until, one) for one in (whole.up_to(until), named(store, until)))
            for name, like in vars(folded).items():
                if name not in ("pods", "changes", "whole", "_instances"):
                    found = getattr(cut, name)
                    assert told(found) == told(like), (name, until)
        if not again:
            middle = next(entry.turn - 1 for entry in record.entries if entry.turn > len(record.entries) // 2)
            cut_now(store, Due(middle, 0))
    store.close()


def test_which_pod_replaced_which_is_read_once_for_all_moments(record: MemoryStore, tmp_path: Path) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")
    whole = named(store, store.last_position())
    pods, found = list(histories_of(store).pods.every()), 0
    moments = {edge for pod in pods if pod.left for edge in (pod.ended, pod.evicted, pod.evicted - 1) if edge > 0}
    for until in sorted(moments)[:: max(1, len(moments) // 60)]:
        cut, folded = histories_of(store, until, whole.up_to(until)), histories_of(store, until)
        there = list(folded.pods.every())
        successor_of = Successors(folded).of(there)
        assert Successors(cut).of(cut.pods[pod.uid] for pod in there) == successor_of, until
        found = max(found, len(successor_of))
        for pod in there[-20:]:
            assert Successors(cut).replaced_by(cut.pods[pod.uid]) == Successors(folded).replaced_by(pod), until
    assert found > 5
    store.close()


def told(value: Any) -> Any:
    """Claims without the position that they were told at last."""
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items()}
    return replace(value, last=0) if isinstance(value, ClaimHistory) else value


def test_a_record_a_bundle_and_a_cut_record_tell_the_same_by_index(record: MemoryStore, tmp_path: Path) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "write")
    export_bundle(store, tmp_path / "a.kerfb")
    compare(store, 2)
    compare(BundleStore(tmp_path / "a.kerfb"), 1)
    middle = next(entry.turn - 1 for entry in record.entries if entry.turn > len(record.entries) // 2)
    cut_now(store, Due(middle, 0))
    compare(store, 1)
    store.close()


def test_the_log_of_one_subject_is_the_same_by_index(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")

    def said(name: str, until: int, short: int) -> tuple[str, int, str]:
        monkeypatch.setattr(record_log, "named_record", partial(named_record, short=short))
        log = RecordLog(store, LogQuery(None, str(until), Asked(subject=name), True, False))
        log.print_timeline(json=until % 2 == 0)
        return capsys.readouterr().out, log.told, "" if log.told else log.nothing_told()

    last = store.last_position()
    for number, name in enumerate(names_of(store, 1)):
        until = last - number * last // 40
        assert said(name, until, 0) == said(name, until, last + 1), (name, until)
    store.close()


def test_what_no_pod_is_asked_for_costs_the_same_by_index(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")

    def folded(until: int, short: int) -> tuple[list[Any], int, float]:
        monkeypatch.setattr(figures, "named_record", partial(named_record, short=short))
        fold = LivesFold(pods=False)
        figures.fold_into(store, until, fold)
        return [(life.launched, life.node, life.over) for life in fold.lives.values()], fold.at, fold.cost.total()

    last = store.last_position()
    for until in (last, last - 1, last // 2, 5):
        assert folded(until, 0) == folded(until, last + 1)
    store.close()


def test_evictions_are_the_same_by_index(record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "write")

    def folded(until: int, short: int) -> tuple[list[Measure], list[EvictedAgain], int]:
        monkeypatch.setattr(figures, "named_record", partial(named_record, short=short))
        fold = EvictionsFold(lives := LivesFold())
        figures.fold_into(store, until, lives, fold, pods=evicted_pods)
        return fold.measures, fold.again, len(lives.pods)

    last = store.last_position()
    for until in (last, last - 1, last * 3 // 4, 5):
        assert folded(until, 0)[:2] == folded(until, last + 1)[:2], until
    assert folded(last, 0)[0]
    assert folded(last // 2, 0)[2] < folded(last // 2, last + 1)[2]  # few pods are read
    middle = next(entry.turn - 1 for entry in record.entries if entry.turn > len(record.entries) // 2)
    cut_now(store, Due(middle, 0))
    assert folded(last, 0)[:2] == folded(last, last + 1)[:2]
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_golden_records_tell_the_same_by_index(folder: Path, tmp_path: Path) -> None:
    export_bundle(GoldenStore(folder), tmp_path / "golden.kerfb")
    compare(BundleStore(tmp_path / "golden.kerfb"), 2)


def test_an_index_grows_with_its_record(record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerf.adapters.cli.named_record.SHORTEST_KEPT", 1)
    whole = SQLiteStore(stored(tmp_path / "whole.kerf", record), "read")
    shorter = MemoryStore()
    shorter.entries = record.entries[: record.entries[len(record.entries) // 3].turn - 1]
    shorter.blobs = record.blobs
    named(SQLiteStore(stored(tmp_path / "shorter.kerf", shorter), "read"), len(shorter.entries))
    named(whole, len(record.entries))
    begun = {path.name.partition("-")[0] for path in folder().glob("*/*.names")}
    assert begun == {"0", str(len(shorter.entries))}
    compare(whole, 1, 3)


def test_a_damaged_or_foreign_index_is_made_anew(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kerf.adapters.cli.named_record.SHORTEST_KEPT", 1)
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")
    named(store, store.last_position())
    (kept,) = folder().glob("*/*.names")
    right = kept.read_bytes()
    for wrong in (b"", right[:-9], right[:200] + bytes(8) + right[208:], right[:5] + b"x" + right[6:]):
        kept.write_bytes(wrong)
        named(store, store.last_position())
        assert kept.read_bytes() == right
    kept.rename(kept.with_name(kept.name.replace("-", "-9", 1)))
    kept.with_name("0-5-nothing.names").write_bytes(right)
    compare(store, 1, 3)
    store.close()


def test_a_forged_record_leaves_no_index_behind_for_the_true_one(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chain ends as the true one's, so its index would have the same name."""
    monkeypatch.setattr("kerf.adapters.cli.named_record.SHORTEST_KEPT", 1)
    store = SQLiteStore(stored(tmp_path / "forged.kerf", record), "write")
    with store.session(commit=True) as session:
        changed = "UPDATE stored_events SET state = (SELECT state FROM stored_events WHERE {position} = ?)"
        session.run(f"{changed} WHERE {{position}} = ?", 5, len(record.entries) // 2)
    assert named_record(store, store.last_position(), short=0) is None
    assert list(folder().glob("*/*.names")) == []
    store.close()


def test_postings_are_sorted_in_less_than_four_times_their_memory(record: MemoryStore, tmp_path: Path) -> None:
    """As numbers of Python they would take five times, and their list again."""
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")
    stored_entries = zip(store.scan(), store.encoded(), strict=True)
    of_pods = [encoded for entry, encoded in stored_entries if uid_of(entry)]
    store.close()
    many = 50_000
    tracemalloc.start()
    part = part_of(enumerate(islice(cycle(of_pods), many), 1), 0, many, lambda position: None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(part.named) == sorted(part.named)
    assert len(part.named) > many
    assert peak < 4 * part.named.nbytes


class Counted:
    """Counts how often each entry of a store is read."""

    def __init__(self, store: AnyStore) -> None:
        self.history, self._store, self.read = store.history, store, Counter[int]()

    def encoded_at(self, positions: Sequence[int]) -> Iterator[bytes]:
        self.read.update(positions)
        return self._store.encoded_at(positions)  # type: ignore[union-attr]


@pytest.mark.parametrize("most", [1 << 20, 2_000])
def test_entries_of_pods_that_were_read_lately_are_not_read_again(
    record: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A story asks for the same pods several times. Where less is kept than it needs, it is read again, and told the
    same."""
    monkeypatch.setattr(named_entries, "MOST_BYTES", most)
    store = SQLiteStore(stored(tmp_path / "a.kerf", record), "read")
    last = store.last_position()
    counted = Counted(store)
    index = NamedEntries(counted, named(store, last).parts, last)
    uids = {uid_of(entry) for entry in store.scan()} - {""}
    every = [entry for entry in store.scan() if uid_of(entry)]
    assert list(index.entries(uids)) == every
    middle = every[len(every) // 2].position
    assert list(index.up_to(middle).entries(uids)) == [entry for entry in every if entry.position <= middle]
    assert list(index.entries(uids)) == every
    assert set(counted.read) == {entry.position for entry in every}
    assert (set(counted.read.values()) == {1}) is (most > 2_000)
    assert index._lately._size == sum(map(len, index._lately._read.values())) <= most
    store.close()


def test_an_entry_that_was_changed_is_damage_also_where_an_index_finds_it(record: MemoryStore, tmp_path: Path) -> None:
    path = stored(tmp_path / "a.kerf", record)
    store = SQLiteStore(path, "write")
    position = len(record.entries) // 2
    with store.session(commit=True) as session:
        session.run("UPDATE stored_events SET chain = ? WHERE {position} = ?", bytes(16), position)
    with pytest.raises(RecordCorrupt, match="was changed") as damaged:
        list(store.encoded_at([1, position]))
    assert damaged.value.position == position
    with pytest.raises(RecordCorrupt, match="missing"):
        list(store.encoded_at([len(record.entries) + 1]))
    assert list(store.encoded_at([1, 2])) == list(store.encoded(0, 2))
    store.close()
