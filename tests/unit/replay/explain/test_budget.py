"""A PodDisruptionBudget can be asked about: what it allows, for which pods, and what it holds since when."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.replay.explain.subject import explain
from kerf.replay.explain.user_objects.budget import GONE, BudgetExplanation
from kerf.replay.history.story import story
from kerf.replay.time_travel.moments import moment_of
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.simulation.budgets import budget, given
from tests.support.simulation.run import Run, scale

MINUTE = 60_000
NAME = "other/inflate"
OTHER = {
    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "nobody", "namespace": "other"},
    "spec": {"maxUnavailable": 0, "selector": {"matchExpressions": [{"key": "app", "operator": "NotIn",
                                                                     "values": ["inflate"]}]}},
}  # fmt: skip
"""A budget of the same namespace that selects none of its pods."""
GOES = {"at": "55m", "action": "delete", "kind": "PodDisruptionBudget", "namespace": "other", "name": "inflate"}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Two pods that may not be evicted, on a node that expires after 30 minutes and is taken by force 10 later."""
    docs = given(scale("1m", 2), GOES, more=(budget(0), OTHER))
    for document in docs:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"] |= {"expireAfter": "30m", "terminationGracePeriod": "10m"}
    return Run(docs, until=60 * MINUTE).memory


def asked(store: MemoryStore, when: str, name: str = f"pdb/{NAME}") -> BudgetExplanation:
    moment = moment_of(store, when)
    found = explain(store, name, moment.position, moment.at)
    assert isinstance(found, BudgetExplanation)
    return found


def test_it_says_what_it_allows_of_which_pods(store: MemoryStore) -> None:
    found = asked(store, "+20m")
    assert (found.allowed, found.expected, found.desired, found.healthy) == (0, 2, 2, 2)
    assert found.for_good
    assert found.allows_none_since == moment_of(store, "start").at
    (own,) = found.workloads
    assert (own.kind, own.workload, own.pods, own.healthy) == ("Deployment", NAME, 2, 2)
    assert (len(found.pods), sum(found.nodes.values()), found.overlaps) == (2, 2, ())
    others = asked(store, "+20m", "pdb/other/nobody")
    assert (others.pods, others.stays, others.drains) == ((), (), ())


def test_a_node_that_it_keeps_is_named_with_since_when(store: MemoryStore) -> None:
    found = asked(store, "+20m")
    (held,) = found.stays
    assert found.drains == ()
    assert [held.node] == [*found.nodes]
    assert held.pods == found.pods
    start = moment_of(store, "start").at
    assert start + MINUTE < held.since < start + 3 * MINUTE


def test_more_pods_are_no_way_out_where_it_allows_none_of_any_number(
    store: MemoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = stored(tmp_path / "never.kerf", store)
    assert main(["explain", str(never), f"pdb/{NAME}", "--at", "+20m"]) == 0
    assert "none of its pods may go until it is changed\n" in capsys.readouterr().out
    two_of_two = budget(0)
    two_of_two["spec"] = {"minAvailable": 2, "selector": two_of_two["spec"]["selector"]}
    both = stored(tmp_path / "both.kerf", Run(given(scale("1m", 2), more=(two_of_two,)), until=10 * MINUTE).memory)
    assert main(["explain", str(both), f"pdb/{NAME}"]) == 0
    assert "until it is changed, or its workload has more pods\n" in capsys.readouterr().out


def test_a_drain_that_waits_for_it_is_named_with_its_end(store: MemoryStore) -> None:
    found = asked(store, "+35m")
    (held,) = found.drains
    assert (found.stays, held.why, held.pods) == ((), "expired", found.pods)
    start = moment_of(store, "start").at
    assert start + 30 * MINUTE < held.since < start + 32 * MINUTE
    assert held.forced_at == held.since + 10 * MINUTE - 20
    assert held.attempts > 1


def test_one_that_is_gone_is_told_as_gone(store: MemoryStore) -> None:
    assert asked(store, "end").status == GONE


def test_one_that_lets_a_pod_go_holds_nothing() -> None:
    found = asked(Run(given(scale("1m", 2), more=(budget(1),)), until=10 * MINUTE).memory, "end")
    assert (found.allowed, found.allows_none_since, found.for_good, found.stays) == (1, 0, False, ())


def test_its_story_has_what_it_refused_and_what_was_done_against_it(store: MemoryStore) -> None:
    found = story(store, f"pdb/{NAME}")
    codes = {event.code for event in found.events}
    assert found.subject == f"poddisruptionbudget/{NAME}"
    assert {"object-seen", "claim-kept", "pod-effect-refused", "pods-later", "claim-pod-forced", "object-gone"} <= codes
    assert {event.code for event in story(store, "pdb/other/nobody").events} == {"object-seen"}


def test_an_index_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    record = open_record(stored(tmp_path / "r.kerf", store))
    index = named_record(record, record.last_position(), short=0)
    assert index is not None
    for when in ("+20m", "+35m", "+45m", "end"):
        moment = moment_of(record, when)
        until, named = moment.position, index.up_to(moment.position)
        name = f"pdb/{NAME}"
        assert explain(record, name, until, moment.at, named) == explain(record, name, until, moment.at)
        assert story(record, name, until, named) == story(record, name, until)
    record.close()


@pytest.mark.parametrize("words", [("pdb/inflate",), ("poddisruptionbudgets.policy", NAME), (f"pdb/{NAME}",)])
def test_it_is_asked_for_as_kubectl_names_it(
    store: MemoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    record = stored(tmp_path / "r.kerf", store)
    assert main(["explain", str(record), *words, "--at", "+35m"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"PodDisruptionBudget {NAME}: allows no eviction now")
    assert "it asks for maxUnavailable 0, of pods with app=inflate" in told
    assert "the drain of " in told
    assert "deleted by force at " in told


def test_a_pod_under_two_budgets_names_both() -> None:
    more = budget(1) | {"metadata": {"name": "twin", "namespace": "other"}}
    store = Run(given(scale("1m", 2), more=(budget(1), more)), until=10 * MINUTE).memory
    found = asked(store, "end")
    assert found.overlaps == ("other/twin",)
    assert [held.reason.code for held in found.stays if held.reason is not None] == ["several-pod-budgets"]
