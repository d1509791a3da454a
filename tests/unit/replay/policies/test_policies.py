"""Each assertion of a policy: when it holds, and what is said where it does not."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.cli.main import main
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.record.store import Store
from kerf.replay.errors import PolicyRefused
from kerf.replay.policies.check import KINDS, hold_against
from kerf.replay.policies.outcomes import BROKEN, HOLDS, UNKNOWN, Result
from kerf.replay.policies.reading import read_policy
from kerf.replay.policies.rules import LOOPS
from kerf.replay.policies.windows import Recurring, windows_of
from tests.support.imports.imported import imported, written
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.simulation.run import Run, scale, workshop

HOUR = 3_600_000
INTERRUPTED = {"at": "10m", "action": "interrupt", "capacityType": "spot"}


@pytest.fixture(scope="module")
def record() -> MemoryStore:
    """Five pods get a spot node, which is taken back; its replacement goes when the pods have gone."""
    return Run(workshop(scale("1m", 5), INTERRUPTED, scale("30m", 0), capacity_type="spot")).memory


def held(store: Store, **assertion: Any) -> Result:
    assertion = {key.rstrip("_"): value for key, value in assertion.items()}
    (result,) = hold_against(store, read_policy({"policy": [assertion]}, "policy.yaml"), "my.kerf").results
    return result


HOLDING: list[dict[str, Any]] = [
    {"never_evicts": True, "for_": {"namespace": "default"}},
    {"never_evicts": True, "between": ["+20m", "end"]},
    {"never_evicts": True, "between": {"daily": ["00:20", "23:00"]}},
    {"never_evicts": True, "between": {"daily": ["00:00", "24:00"], "days": ["Fri", "Sat"]}},
    {"max_evictions": 5, "between": {"daily": ["00:05", "00:15"]}},
    {"never_evicts": True, "for_": {"labels": {"app": "other"}}},
    {"never_evicts": True, "for_": {"reason": ["empty", "underutilized"]}},
    {"max_evictions": 5},
    {"max_evictions": {"count": 1, "per": "pod"}},
    {"pending_at_most": "2m"},
    {"pending_at_most": {"duration": "1s", "share": 0}},
    {"max_launches": 2, "for_": {"pool": "default"}},
    {"min_nodes": 1, "between": ["+2m", "+20m"]},
    {"max_nodes": 2},
    {"only_types": ["m5.*", "c5.*"]},
    {"never_types": "r5.*"},
    {"max_spot_share": "100%"},
    {"zones_at_least": 3},
    {"max_cost": 1.0},
    {"max_hourly_cost": 0.2},
    {"no_loop": True},
    {"no_loop": ["launch-failures"]},
    {"budget_held": True},
    {"verifies": True},
]
BREAKING: list[tuple[dict[str, Any], int, str]] = [
    ({"never_evicts": True}, 5, r"other/inflate-.* of other/inflate was evicted from default-.*: interrupted"),
    ({"never_evicts": True, "for_": {"labels": {"app": "inflate"}}}, 5, "was evicted"),
    ({"never_evicts": True, "between": {"daily": ["00:05", "0:15"], "days": ["Thu"]}}, 5, "was evicted"),
    ({"never_evicts": True, "between": {"daily": ["23:50", "00:15"], "days": ["Wed"]}}, 5, "was evicted"),
    ({"never_evicts": True, "for_": {"reason": "interrupted", "pool": "def*"}}, 5, "was evicted"),
    ({"max_evictions": 4}, 1, "one more than 4 .5 evictions"),
    ({"max_evictions": {"count": 3, "per": ["workload", "hour"]}}, 1, "of workload other/inflate, the hour from 2026"),
    ({"pending_at_most": "20s"}, 1, "for a node, the longest of .* of other/inflate, longer than 20s"),
    ({"pending_at_most": {"duration": "20s", "share": "90%"}}, 1, r"of \d+ pods do, \d may"),
    ({"max_launches": 1}, 1, "2 launches, 1 may be: default-.*, a .* .spot. in us-west-2. of NodePool default"),
    ({"max_launches": {"count": 1, "per": "hour"}}, 1, "2 launches of the hour from 2026-01-01T00:00:00Z"),
    ({"min_nodes": 1}, 2, "0 nodes, fewer than 1"),
    ({"max_nodes": 0, "for_": {"pool": "default"}}, 1, "1 node of pool default, more than 0"),
    ({"only_types": ["r5.*"]}, 2, "was launched; no other than r5.* may be"),
    ({"never_types": ["r5.*", "*.large", "*.xlarge"]}, 2, r"was launched; r5\.\* or .* may not be"),
    ({"max_spot_share": 0.5}, 1, "1 of them spot, more than 50%"),
    ({"max_cost": 0.001}, 1, r"\$0.0\d+, more than \$0.0010"),
    ({"max_cost": 0.0, "for_": {"workload": "other/*"}}, 1, r"of workload other/\*, more than"),
    ({"max_hourly_cost": 0.0}, 1, "the hour from 2026-01-01T00:00:00Z cost"),
]


@pytest.mark.parametrize("assertion", HOLDING, ids=str)
def test_an_assertion_that_holds_has_no_breach(record: MemoryStore, assertion: dict[str, Any]) -> None:
    result = held(record, **assertion)
    assert (result.outcome, result.broken, result.breaches) == (HOLDS, 0, ())


@pytest.mark.parametrize(("assertion", "broken", "said"), BREAKING, ids=str)
def test_a_breach_says_what_when_and_about_whom(
    record: MemoryStore, assertion: dict[str, Any], broken: int, said: str
) -> None:
    result = held(record, **assertion)
    assert (result.outcome, result.broken) == (BROKEN, broken)
    first = result.breaches[0]
    assert re.search(said, first.what), first.what
    assert record.entries[0].at <= first.at <= record.entries[-1].at
    assert 0 < first.position <= len(record.entries)


def test_the_command_of_each_breach_answers(
    record: MemoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(stored(tmp_path / "my.kerf", record))
    policy = read_policy({"policy": [{k.rstrip("_"): v for k, v in one.items()} for one, *_ in BREAKING]}, "policy")
    commands = {
        breach.command for result in hold_against(record, policy, file).results for breach in result.breaches[:1]
    }
    assert {command[1] for command in commands} == {"explain", "status", "cost"}
    for command in sorted(commands):
        assert main(command[1:]) == 0, shlex.join(command)
        assert capsys.readouterr().out


def test_the_command_of_a_breach_of_cost_has_rows_of_what_it_is_about(record: MemoryStore) -> None:
    asked = {"": "node", "pool": "node", "workload": "workload"}
    for about, rows in asked.items():
        (breach,) = held(record, max_cost=0.0, **({"for_": {about: "*"}} if about else {})).breaches
        assert breach.command[3:5] == ("--by", rows)


def test_nodes_in_too_few_zones_are_found() -> None:
    """Two nodes that are cheapest in one zone are in one zone."""
    apart = {"at": "2m", "action": "scale", "namespace": "other", "name": "inflate", "replicas": 12}
    store = Run(workshop(scale("1m", 5), apart, capacity_type="spot"), until=600_000).memory
    zones = {entry.payload.zone for entry in store.scan() if entry.type == "claim.launched"}
    result = held(store, zones_at_least=2)
    assert (len(zones), result.outcome) == (1, BROKEN)
    assert re.fullmatch(r"2 nodes in 1 zone \(us-west-2.\), fewer than 2", result.breaches[0].what)


def test_launches_that_fail_again_and_again_break_no_loop() -> None:
    types = ("c5.large", "m5.large", "r5.large", "m5.xlarge")
    sold_out = [{"at": "0s", "action": "capacity", "instanceType": name} for name in types]
    store = Run(workshop(*sold_out, scale("1m", 5))).memory
    result = held(store, no_loop=["launch-failures"])
    assert result.outcome == BROKEN
    assert result.breaches[0].what.startswith("launch-failures of other/inflate: ")
    assert result.breaches[0].command[:3] == ("kerf", "churn", "my.kerf")
    assert held(store, no_loop=["replacement-chain"]).outcome == HOLDS


def test_a_budget_that_was_not_held_is_found_d51(record: MemoryStore) -> None:
    """The record of before, as if its NodePool had allowed no disruption: the empty node went all the same."""
    forbidden = MemoryStore()
    forbidden.blobs = record.blobs
    forbidden.entries = [
        replace(entry, payload=replace(entry.payload, budgets=(Budget("0"),)))
        if isinstance(entry.payload, NodePool)
        else entry
        for entry in record.entries
    ]
    result = held(forbidden, budget_held=True)
    assert (result.outcome, result.looked_at, result.broken) == (BROKEN, 1, 1)
    (breach,) = result.breaches
    assert breach.what.endswith("of NodePool default are on their way out or not ready, the budgets for empty allow 0")
    assert held(forbidden, budget_held=True, for_={"pool": "other"}).outcome == HOLDS
    assert held(forbidden, verifies=True).outcome == BROKEN, "nor is that what kerf decides"


def test_a_selector_that_selects_nothing_is_noted(record: MemoryStore) -> None:
    result = held(record, never_evicts=True, for_={"workload": "other/inflaet"})
    assert (result.outcome, result.looked_at) == (HOLDS, 0)
    assert result.note == "the record has nothing of workload other/inflaet"
    assert held(record, never_evicts=True, for_={"workload": "other/inflate"}).note == ""


def test_what_an_imported_record_does_not_tell_is_unknown(tmp_path: Path) -> None:
    with imported(tmp_path, "kubereplay.json") as (_, store):
        outcomes = {kind: held(store, **{kind: value}).outcome for kind, value in EVERY.items()}
        assert outcomes["max_cost"] == UNKNOWN
        assert "KERF211" in held(store, max_cost=1).note
    assert UNKNOWN in outcomes.values()


def test_nodes_whose_type_was_not_imported_are_not_judged(tmp_path: Path) -> None:
    """Karpenter's log of a later start names NodeClaims without saying what was launched for them."""
    with imported(tmp_path, written(tmp_path, "log", *_created_and_registered())) as (_, store):
        result = held(store, only_types=["*.*"])
        assert (result.outcome, result.broken) == (HOLDS, 0)
        assert result.note == "1 node not looked at: the record does not tell the instance type"
        assert "does not tell the zone" in held(store, zones_at_least=2).note


def _created_and_registered() -> list[str]:
    fields = {"level": "INFO", "logger": "controller", "controller": "nodeclaim.lifecycle"}
    return [
        json.dumps(
            fields | {"time": f"2026-03-02T09:00:0{at}Z", "message": message, "NodeClaim": {"name": "a-1"}, **more}
        )
        for at, message, more in (
            (0, "created nodeclaim", {"NodePool": {"name": "a"}}),
            (5, "registered nodeclaim", {"Node": {"name": "n-1"}}),
        )
    ]


def test_a_breach_leaves_out_what_the_record_does_not_tell(tmp_path: Path) -> None:
    with imported(tmp_path, written(tmp_path, "log", *_created_and_registered())) as (_, store):
        (breach,) = held(store, max_launches=0).breaches
        assert breach.what == "1 launch, 0 may be: a-1, a node of NodePool a is the next"


def test_nodes_that_were_there_before_the_record_are_no_launches(tmp_path: Path) -> None:
    """Of the five NodeClaims that this log names, one is created in it."""
    with imported(tmp_path, "karpenter-1.12.log") as (_, store):
        wrong = held(store, never_types="*").breaches
        assert [breach.subjects for breach in wrong] == [("nodeclaim/general-eeeee",)]
        assert held(store, max_launches=1).outcome == HOLDS
        assert held(store, max_launches=0).breaches[0].subjects == ("nodeclaim/general-eeeee",)


EVERY: dict[str, Any] = {
    "never_evicts": True, "max_evictions": 1, "pending_at_most": "1m", "max_launches": 1, "min_nodes": 1,
    "max_nodes": 1, "only_types": "m5.large", "never_types": "m5.large", "max_spot_share": 0.5, "zones_at_least": 2,
    "max_cost": 1, "max_hourly_cost": 1, "no_loop": True, "budget_held": True, "verifies": True,
}  # fmt: skip


def test_every_assertion_is_tried_here() -> None:
    assert EVERY.keys() == KINDS.keys()
    assert set(LOOPS) >= {"launch-failures", "replacement-chain"}


@pytest.mark.parametrize(
    ("item", "where", "said"),
    [
        ({"never_evict": True}, "policy[0]", "Is it never_evicts?"),
        ({"for": {}}, "policy[0]", "asserts nothing"),
        ({"never_evicts": True, "no_loop": True}, "policy[0]", "never_evicts and no_loop"),
        ({"never_evicts": False}, "never_evicts", "no opposite"),
        ({"never_evicts": True, "for": {"workloda": "x"}}, "for", "Is it workload?"),
        ({"min_nodes": 1, "for": {"workload": "x"}}, "for", "no key 'workload'"),
        ({"never_evicts": True, "for": {"labels": "app=web"}}, "for.labels", "a mapping"),
        ({"never_evicts": True, "between": [600, 720]}, "between", "in quotes"),
        ({"never_evicts": True, "between": ["+1h"]}, "between", "two times"),
        ({"never_evicts": True, "between": {"daily": ["9", "17:00"]}}, "between.daily", "no time of day"),
        ({"never_evicts": True, "between": {"daily": ["24:01", "17:00"]}}, "between.daily", "no time of day"),
        ({"never_evicts": True, "between": {"daily": ["09:00", "09:00"]}}, "between.daily", "ends when it begins"),
        ({"never_evicts": True, "between": {"days": ["Mon"]}}, "between.daily", "two times"),
        ({"never_evicts": True, "between": {"dayly": ["09:00", "17:00"]}}, "between", "Is it daily?"),
        ({"never_evicts": True, "between": {"daily": ["1:00", "2:00"], "days": ["Mo"]}}, "between.days", "Is it Mon?"),
        ({"verifies": True, "between": {"daily": ["09:00", "17:00"]}}, "between", "about the whole record"),
        ({"max_cost": "much"}, "max_cost", "no number"),
        ({"max_cost": -1}, "max_cost", "no number"),
        ({"max_evictions": {"count": 1, "per": "workloads"}}, "max_evictions.per", "Is it workload?"),
        ({"max_evictions": {"per": "pod"}}, "max_evictions.count", "no number"),
        ({"pending_at_most": "2 minutes"}, "pending_at_most", "2 minutes"),
        ({"pending_at_most": {"duration": "2m", "share": "120%"}}, "share", "no share"),
        ({"only_types": []}, "only_types", "an empty one"),
        ({"only_types": [5]}, "only_types", "no text"),
        ({"no_loop": ["replacement-chains"]}, "no_loop", "Is it replacement-chain?"),
        ({"no_loop": True, "name": 7}, "policy[0]", "a text"),
    ],
)
def test_a_policy_that_says_nothing_sensible_is_refused(item: dict[str, Any], where: str, said: str) -> None:
    with pytest.raises(PolicyRefused, match=re.escape(said)) as refused:
        read_policy({"policy": [item]}, "policy.yaml")
    assert refused.value.code == "KERF221"
    assert where in refused.value.where


def test_a_recurring_window_holds_on_each_day_by_itself(record: MemoryStore) -> None:
    daily = Recurring(23 * HOUR, 2 * HOUR, ("Tue", "Wed", "Thu"))
    start, end = (entry.at for entry in (record.entries[0], record.entries[-1]))
    (window,) = windows_of(record, daily, "here")
    assert (window.since, window.until) == (start, min(end, start + 2 * HOUR))
    assert windows_of(record, replace(daily, days=("Tue",)), "here") == []
    found = held(record, never_evicts=True, between={"daily": ["09:00", "10:00"]})
    assert (found.outcome, found.note) == (HOLDS, "the record has nothing of these times")


@pytest.mark.parametrize("between", [["+5h", "end"], ["+5h", "+6h"], ["end", "start"], ["soon", "end"]])
def test_a_window_outside_of_the_record_is_refused(record: MemoryStore, between: list[str]) -> None:
    with pytest.raises(PolicyRefused) as refused:
        held(record, never_evicts=True, between=between)
    assert refused.value.where.endswith("policy[0].between")
