"""Whatever happens in a simulated cluster, the record decides itself again: byte for byte, under any hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.timeline.event import event_sentence
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.explain.claim import explain_claim
from kerf.replay.explain.decision import explain_decision
from kerf.replay.explain.pod import explain_pod
from kerf.replay.golden.rerun import Rerun
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.story import story
from kerf.replay.verify.verify import verify
from tests.support.memory import MemoryStore
from tests.support.records import stored, tampered, with_every_claim_due
from tests.support.simulation.chaos import chaos
from tests.support.simulation.run import Run, scale, workshop
from tests.support.slow import slow
from tests.support.strategies.examples import examples

WEEK = [scale(f"{hour}h", 4 + 9 * (hour % 3)) for hour in range(1, 72, 2)]
"""Three days of scaling up and down."""
PART = 300
"""So many entries hold launches, lives and ends of nodes; each example decides them all again."""


@pytest.fixture(scope="module", params=[100, 102, *slow(101, 103, 104, 105)])
def random_record(request: pytest.FixtureRequest) -> MemoryStore:
    """Random work and faults, restarts of the process included."""
    return chaos(request.param).memory


def test_a_random_record_is_the_same(random_record: MemoryStore) -> None:
    report = verify(random_record)
    assert (report.exit_code, report.diverged) == (0, 0)
    assert report.decisions > 20


def test_to_look_at_more_claims_than_necessary_changes_nothing(random_record: MemoryStore) -> None:
    """A claim may have been looked at in a turn that left no entry, which replay does not know of. So each turn is
    decided with every claim due, and has to be the same, causes and order included (ADR 3)."""
    looked_at = 0
    for turn, decided, claims in with_every_claim_due(random_record):
        assert decided == turn
        looked_at += claims
    assert looked_at > 100


def test_everything_in_it_can_be_explained_and_told(random_record: MemoryStore) -> None:
    links = histories_of(random_record)
    assert links.claims
    for name in links.claims:
        found = explain_claim(random_record, name)
        assert found.how is None or found.how.same
        assert story(random_record, name).events
    for name in {pod.key for pod in links.pods.every()}:
        explain_pod(random_record, name)
        assert story(random_record, name).events
    for position, decider in links.decisions.items():
        assert explain_decision(random_record, position).same in ((True,) if decider == "provision" else (None,))


def test_every_entry_is_told_in_words(random_record: MemoryStore) -> None:
    timeline, log = Timeline(), KarpenterLog()
    for entry in random_record.entries:
        for event in timeline.apply(entry):
            assert event_sentence(event)
        log.apply(entry)


def test_running_it_again_gives_the_same_record(random_record: MemoryStore) -> None:
    rerun = Rerun(random_record)
    assert rerun.dropped == []
    assert verify(random_record).last == rerun.last_position()


def test_a_pseudonymised_bundle_decides_itself_again(random_record: MemoryStore, tmp_path: Path) -> None:
    """A-R6: what is handed to strangers can be replayed by them."""
    source = SQLiteStore(stored(tmp_path / "random.kerf", random_record), "read")
    export_bundle(source, tmp_path / "b.kerfb", pseudonymise=True, key=b"s")
    source.close()
    report = verify(BundleStore(tmp_path / "b.kerfb"))
    assert (report.exit_code, report.last) == (0, len(random_record.entries))


@pytest.fixture(scope="module")
def long_record() -> MemoryStore:
    return Run(workshop(*WEEK), until=72 * 3_600_000).memory


@pytest.mark.slow
def test_a_long_record_is_the_same_under_two_hash_seeds(tmp_path: Path) -> None:
    path = tmp_path / "long.kerf"
    store = SQLiteStore(path, "create")
    Run(workshop(*WEEK), until=72 * 3_600_000, store=store)
    store.close()
    reports = [_verified_elsewhere(path, seed) for seed in ("1", "4242")]
    assert reports[0] == reports[1]
    assert reports[0]["diverged"] == 0
    assert reports[0]["decisions"] > 90


def _verified_elsewhere(path: Path, seed: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "kerf", "verify", str(path), "--json"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    del report["seconds"]
    return report


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_any_change_of_any_decision_or_claim_event_is_found(data: st.DataObject, long_record: MemoryStore) -> None:
    """A numeric or text field of any derived entry, changed."""
    derived = [e for e in long_record.entries[:PART] if isinstance(e.payload, (Decision, *CLAIM_EVENTS))]
    entry = data.draw(st.sampled_from(derived))
    fields = [f for f in entry.payload.__struct_fields__ if type(getattr(entry.payload, f)) in (int, float)]
    fields = [f for f in fields if f != "version"]
    if not fields:
        return
    field = data.draw(st.sampled_from(fields))
    value = getattr(entry.payload, field) + 1

    def forge(entries: list[Entry]) -> list[Entry]:
        forged = replace(entry, payload=replace(entry.payload, **{field: value}))
        return [*entries[: entry.position - 1], forged, *entries[entry.position : PART]]

    report = verify(tampered(long_record, forge))
    assert report.exit_code == 1
    assert entry.position in [found.position for found in report.divergences]


@given(data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_the_state_at_a_position_does_not_depend_on_how_it_is_reached(
    data: st.DataObject, long_record: MemoryStore
) -> None:
    position = data.draw(st.integers(1, 800))
    via = data.draw(st.integers(1, position))
    plain = snapshot.digest(load(long_record, position))
    twin = MemoryStore()
    twin.entries, twin.blobs = long_record.entries, long_record.blobs
    state, digest = snapshot.encode(load(long_record, via))
    twin.put_snapshot(via, snapshot.SCHEMA, state, digest)
    assert snapshot.digest(load(twin, position)) == plain
