"""A record that was cut anywhere decides the rest of itself again, and tells what is kept of what was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.store.files.bundle import BundleStore, export_bundle, inspect_bundle
from kerf.adapters.store.retention import cut_tables
from kerf.adapters.store.retention.policy import Due, base_at
from kerf.adapters.store.retention.prune import cut_now
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.errors import RecordShortened
from kerf.engine.record.observations import RecordCut
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.timeline.event import event_sentence
from kerf.replay.explain.claim import explain_claim
from kerf.replay.explain.decision import explain_decision
from kerf.replay.explain.pod import explain_pod
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.story import story, timeline_from_base
from kerf.replay.time_travel.record_beginning import base_as_entries
from kerf.replay.verify.verify import verify
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.simulation.chaos import chaos
from tests.support.slow import slow


@pytest.fixture(scope="module", params=[102, *slow(100)])
def record(request: pytest.FixtureRequest) -> MemoryStore:
    """Random work and faults, restarts of the process included."""
    return chaos(request.param).memory


def ends(record: MemoryStore) -> list[int]:
    """Where turns end, at some places of the record."""
    found = sorted({entry.turn - 1 for entry in record.entries if entry.turn > 1})
    return found[:: max(1, len(found) // 5)]


def cut_at(record: MemoryStore, path: Path, base: int, *, after: int = 0) -> SQLiteStore:
    store = SQLiteStore(stored(path, record), "write")
    cut_now(store, Due(base, after))
    return store


def test_it_decides_the_rest_again(record: MemoryStore, tmp_path: Path) -> None:
    last = len(record.entries)
    for base in ends(record):
        store = cut_at(record, tmp_path / f"{base}.kerf", base)
        report = verify(store)
        assert (report.exit_code, report.diverged, report.fault, report.base) == (0, 0, None, base)
        assert report.entries == last - base + 2  # that it took office, and the cut
        kept = [e for e in record.entries[:base] if isinstance(e.payload, (Decision, *CLAIM_EVENTS))]
        assert [e for e in store.scan(0, base) if isinstance(e.payload, (Decision, *CLAIM_EVENTS))] == kept
        store.close()


def test_the_state_is_the_same_as_of_the_whole(record: MemoryStore, tmp_path: Path) -> None:
    base, *others = ends(record)[2:]
    store = cut_at(record, tmp_path / "cut.kerf", base)
    for position in (base, *others):
        assert snapshot.digest(load(store, position)) == snapshot.digest(load(record, position))
    with pytest.raises(RecordShortened, match="KERF118"):
        load(store, base - 1)
    store.close()


def test_everything_in_it_can_be_explained_and_told(record: MemoryStore, tmp_path: Path) -> None:
    """Also what is only kept: then without what else was considered."""
    base = ends(record)[3]
    store = cut_at(record, tmp_path / "cut.kerf", base)
    links, whole = histories_of(store), histories_of(record)
    assert links.claims.keys() == whole.claims.keys()
    shortened = 0
    for name in links.claims:
        found = explain_claim(store, name)
        assert found.shortened or found.how is None or found.how.same
        assert [step.type for step in found.steps] == [step.type for step in explain_claim(record, name).steps]
        assert story(store, name).events
        shortened += found.shortened
    for name in {pod.key for pod in links.pods.every()}:
        explain_pod(store, name)
        assert story(store, name).events
    for position, decider in links.decisions.items():
        decision = explain_decision(store, position)
        known = decision.looked_at >= base
        assert decision.same in ((True,) if decider == "provision" and known else (None,))
        assert decision.shortened == (decider == "provision" and not known)
    assert shortened
    timeline, log = timeline_from_base(store), KarpenterLog()
    for entry in base_as_entries(store):
        log.apply(entry)
    for entry in store.scan():
        assert all(event_sentence(event) for event in timeline.apply(entry))
        log.apply(entry)
    store.close()


def test_claims_that_are_older_than_what_is_kept_are_known(record: MemoryStore, tmp_path: Path) -> None:
    base = ends(record)[4]
    there = load(record, base).facts.claims
    store = cut_at(record, tmp_path / "cut.kerf", base, after=base)
    assert next(store.scan()).position == base + 1
    links = histories_of(store)
    for name, claim in there.items():
        if claim.state != "requested":
            assert explain_claim(store, name).shortened
            assert claim.node in ("", links.claims[name].node)
    assert verify(store).exit_code == 0
    store.close()


def test_cut_again_and_again_it_stays_one_record(record: MemoryStore, tmp_path: Path) -> None:
    store = SQLiteStore(stored(tmp_path / "cut.kerf", record), "write")
    before: dict[str, int] = {}
    for base in ends(record)[1:]:
        cut_now(store, Due(base, 0))
        report = verify(store)
        assert (report.exit_code, report.base) == (0, base)
        facts = load(store).facts
        assert len([name for name in facts.streams if name.startswith("nodeclaim/")]) <= len(facts.claims) + len(
            facts.over
        )
        before = facts.over
    assert sum(isinstance(entry.payload, RecordCut) for entry in store.scan()) == len(ends(record)) - 1
    claims = {entry.stream for entry in record.entries if entry.stream.startswith("nodeclaim/")}
    assert len(before) < len(claims)
    store.close()


def test_a_beginning_that_was_taken_away_is_no_cut(record: MemoryStore, tmp_path: Path) -> None:
    """The base alone does not do: an entry after it must have announced it, and what is kept."""
    first, second = ends(record)[2], ends(record)[4]
    store = cut_at(record, tmp_path / "cut.kerf", first)
    with store.session() as session:
        cut = cut_tables.read_cut(session)
    later = cut_at(record, tmp_path / "later.kerf", second)
    with later.session() as session:
        base = session.run("SELECT * FROM bases")[0]
        moved = cut_tables.read_cut(session)
    later.close()
    with store.session(commit=True) as session:  # as if it had been cut further
        session.run("DELETE FROM stored_events WHERE {position} <= ?", second)
        session.run("DELETE FROM bases")
        session.run("INSERT INTO bases VALUES (?,?,?,?,?)", *base)
        cut_tables.write_cut(session, moved)
    assert cut.base < second
    report = verify(store)
    assert report.exit_code == 3
    assert report.fault is not None
    assert "announces" in report.fault.message
    store.close()


def test_what_is_kept_cannot_lose_its_middle(record: MemoryStore, tmp_path: Path) -> None:
    store = cut_at(record, tmp_path / "cut.kerf", ends(record)[4])
    with store.session(commit=True) as session:
        last = session.run("SELECT max(position) FROM history")[0][0]
        session.run("DELETE FROM history WHERE position = ?", last)
    report = verify(store)
    assert (report.exit_code, report.fault is not None) == (3, True)
    store.close()


@pytest.mark.parametrize("pseudonymise", [False, True], ids=["names", "pseudonyms"])
def test_a_part_of_a_record_decides_itself_again(record: MemoryStore, tmp_path: Path, pseudonymise: bool) -> None:
    store = SQLiteStore(stored(tmp_path / "whole.kerf", record), "read")
    for after in ends(record)[1:]:
        place = tmp_path / f"{after}.kerfb"
        base = base_at(store, after)
        info = export_bundle(store, place, after=after, base=base, pseudonymise=pseudonymise, key=b"s")
        assert (info.first, info.based, info.kept) == (after + 1, True, 0)
        report = verify(BundleStore(place))
        assert (report.exit_code, report.diverged, report.base) == (0, 0, after)
        assert report.entries == len(record.entries) - after
    store.close()


@pytest.mark.parametrize("pseudonymise", [False, True], ids=["names", "pseudonyms"])
def test_a_bundle_of_a_cut_record_has_all_that_it_has(record: MemoryStore, tmp_path: Path, pseudonymise: bool) -> None:
    base = ends(record)[3]
    store = cut_at(record, tmp_path / "cut.kerf", base)
    info = export_bundle(store, tmp_path / "b.kerfb", pseudonymise=pseudonymise, key=b"s")
    assert inspect_bundle(tmp_path / "b.kerfb") == info
    bundle = BundleStore(tmp_path / "b.kerfb")
    assert [entry.position for entry in bundle.scan()] == [entry.position for entry in store.scan()]
    assert verify(bundle).exit_code == 0
    assert len(histories_of(bundle).claims) == len(histories_of(store).claims)
    if pseudonymise:
        names = {*histories_of(store).claims, *histories_of(store).nodes}
        state = (bundle.base() or base_at(store, base)).state
        content = b"".join([*bundle.encoded(), *bundle.history(), state])
        assert not [name for name in names if name.encode() in content.replace(b"uid-" + name.encode(), b"")]
    store.close()
