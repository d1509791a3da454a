"""Why pods were deleted by force: the time that was over, and what had kept them until then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.engine.record.claim_events import DrainStarted
from kerf.replay.explain.claim import ClaimExplanation, explain_claim
from kerf.replay.explain.subject import explain
from kerf.replay.history.removal import Removal
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.simulation.budgets import budget, given
from tests.support.simulation.run import Run, scale

MINUTE = 60_000


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Two pods that may not be evicted, on a node that expires after 30 minutes and is taken by force 10 later."""
    docs = given(scale("1m", 2), more=(budget(0),))
    for document in docs:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"] |= {"expireAfter": "30m", "terminationGracePeriod": "10m"}
    return Run(docs, until=45 * MINUTE).memory


def first_drained(store: MemoryStore) -> str:
    return next(str(entry.payload.claim) for entry in store.entries if isinstance(entry.payload, DrainStarted))


def removal(store: MemoryStore) -> Removal:
    found = explain_claim(store, first_drained(store)).removal
    assert found is not None
    return found


def test_force_is_a_cause_with_the_time_that_was_over(store: MemoryStore) -> None:
    causes = [cause.reason for cause in removal(store).causes]
    (force,) = [reason for reason in causes if reason.code == "grace-period-ends"]
    assert force.params["grace"] == "10m"
    assert causes.index(force) > [reason.code for reason in causes].index("drain-started")


def test_what_had_kept_each_pod_is_named(store: MemoryStore) -> None:
    pods = removal(store).pods
    assert [pod.how for pod in pods] == ["forced", "forced"]
    assert [pod.held.params["budgets"] for pod in pods if pod.held is not None] == [["other/inflate"]] * 2


def test_pods_that_were_evicted_were_kept_by_nothing() -> None:
    docs = given(scale("1m", 2))
    for document in docs:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"] |= {"expireAfter": "30m"}
    pods = removal(Run(docs, until=45 * MINUTE).memory).pods
    assert [(pod.how, pod.held) for pod in pods] == [("evicted", None)] * 2


def test_it_is_printed(store: MemoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(stored(tmp_path / "r.kerf", store)), "nodeclaim", first_drained(store)]) == 0
    told = capsys.readouterr().out
    assert "its terminationGracePeriod of 10m ends at " in told
    assert "forced (pod may not be evicted: PodDisruptionBudget other/inflate allows none): " in told


def test_an_index_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    record = open_record(stored(tmp_path / "r.kerf", store))
    index = named_record(record, record.last_position(), short=0)
    assert index is not None
    name = first_drained(store)
    known = index.up_to(record.last_position())
    found = explain(record, f"nodeclaim/{name}", record.last_position(), 0, known)
    assert isinstance(found, ClaimExplanation)
    assert found.removal == removal(store)
    record.close()
