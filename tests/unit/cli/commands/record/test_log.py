"""`kerf log`: its filters, its times, and what it says when there is nothing to say."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.record.observations import ControllerSaid, Observation
from tests.support.records import stored
from tests.support.repository import ROOT
from tests.support.world import World


def test_log_tells_the_story_and_filters(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("log", record)
    assert code == 0
    assert "default/a and 4 more" in out
    assert "is in service, 37s after the request" in out
    _, everything, _ = kerf("log", record, "--all")
    assert len(everything.splitlines()) > len(out.splitlines())
    _, late, _ = kerf("log", record, "--since", "+30m")
    assert len(late.splitlines()) < len(out.splitlines())
    assert "takes office" not in late
    _, early, _ = kerf("log", record, "--until", "6")
    assert "cannot be scheduled" not in early
    _, one, _ = kerf("log", record, "--subject", "default/b", "--json")
    assert {json.loads(line)["code"] for line in one.splitlines()} == {
        "pod-waiting", "plan-made", "pod-bound", "pod-gone",
    }  # fmt: skip


def test_a_node_its_nodeclaim_and_its_instance_are_one_subject(kerf: Any, record: Path) -> None:
    """Why a node goes is told of its NodeClaim, and when it joined of the node."""

    def told(subject: str, *flags: str) -> list[dict[str, Any]]:
        code, out, _ = kerf("log", record, "--subject", subject, "--json", *flags)
        assert code == 0, subject
        return [json.loads(line) for line in out.splitlines()]

    def codes(events: list[dict[str, Any]]) -> set[str]:
        return {event["code"] for event in events}

    of_node = told("node/n1")
    assert {"claim-requested", "claim-launched", "node-ready", "claim-tainted", "claim-terminated"} <= codes(of_node)
    claim = next(event["subject"] for event in of_node if event["code"] == "claim-launched")
    for name in ("n1", "no/n1", claim, claim.partition("/")[2], "instance/i-1", "i-1"):
        assert told(name) == of_node, name
    assert codes(told("node/n1", "--kind", "node")) < codes(of_node)
    assert codes(told("node/n1", "--reason", "claim-launched")) == {"claim-launched"}


SPOT = ROOT / "tests" / "golden" / "spot-interruption"


def test_log_filters_by_kind_name_namespace_workload_and_reason(kerf: Any) -> None:
    def told(*flags: str) -> list[dict[str, Any]]:
        code, out, _ = kerf("log", SPOT, "--all", "--json", *flags)
        assert code == 0
        return [json.loads(line) for line in out.splitlines()]

    def about(event: dict[str, Any]) -> list[str]:
        return [event["subject"], *event.get("related", [])]

    everything = told()
    kinds = [event for event in everything if any(name.startswith("nodeclaim/") for name in about(event))]
    assert 0 < len(kinds) < len(everything)
    assert told("--kind", "nodeclaims") == kinds
    pods = [event for event in everything if any("pod/other/inflate-" in name for name in about(event))]
    assert told("--name", "inflate-*", "--kind", "po") == pods
    assert told("--namespace", "other", "--kind", "pod") == pods
    assert told("--workload", "other/inflate") == told("--workload", "inflate") == pods
    interrupted = told("--reason", "interrupted", "--kind", "nodeclaim")
    assert {event["code"] for event in interrupted} >= {"claim-condemned", "claim-terminated"}
    launched = [event for event in everything if event["code"] == "claim-launched"]
    assert told("--reason", "claim-launched") == launched


def test_who_changed_a_budget_is_among_the_changes_and_found_by_kubectls_words(kerf: Any, tmp_path: Path) -> None:
    """docs/incident.md asks for --reason '*changed'."""
    world, budget = World(), PodDisruptionBudget("u1", "default", "web", max_unavailable="1")
    text = "wrote PodDisruptionBudget default/web last: presumed, by its managedFields"
    said = ControllerSaid("", "info", text, actor="argocd", budgets=("default/web",))
    for seen in (budget, replace(budget, max_unavailable="0"), said):
        world.see(Observation(seen))
    record = stored(tmp_path / "r.kerf", world.store)
    for asked in (["--reason", "*changed"], ["--kind", "pdb"], ["--subject", "pdb/default/web"]):
        code, out, _ = kerf("log", record, *asked)
        changed, who = out.splitlines()[-2:]
        assert (code, changed.endswith("maxUnavailable 1 → 0"), who.endswith(f"argocd: {text}")) == (0, True, True)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--reason", "interupted"), "Is it interrupted or "),
        (("--kind", "nodepool", "--reason", "interrupted"), "The reasons there are: nodepool-seen"),
        (("--kind", "nodepool", "--name", "none", "--reason", "x"), "Leave out --reason"),
    ],
)
def test_log_names_the_reasons_that_occur_where_none_is_as_asked(kerf: Any, asked: tuple[str, ...], said: str) -> None:
    code, out, err = kerf("log", SPOT, *asked)
    assert (code, out) == (1, "")
    assert f". {said}" in err


@pytest.mark.parametrize("flag", ["subject", "kind", "name", "namespace", "workload", "reason"])
def test_a_choice_of_nothing_is_no_choice_of_everything(kerf: Any, record: Path, flag: str) -> None:
    code, out, err = kerf("log", record, f"--{flag}", "")
    assert (code, out) == (2, "")
    assert err == f"KERF200: --{flag} has no value. Give one, or leave the flag out\n"


def test_log_of_what_no_object_is_says_so(kerf: Any) -> None:
    code, out, err = kerf("log", SPOT, "--kind", "node", "--namespace", "other")
    assert (code, out) == (1, "")
    assert err.startswith("Nothing in the record concerns --kind node --namespace other. ")


def test_log_of_an_unknown_subject_says_so(kerf: Any, record: Path) -> None:
    for options in ([], ["--json"]):
        code, out, err = kerf("log", record, "--subject", "nobody", *options)
        assert (code, out) == (1, "")
        assert err.startswith("Nothing in the record concerns nobody")
    subject = json.loads(kerf("log", record, "--json")[1].splitlines()[-1])["subject"]
    code, out, err = kerf("log", record, "--subject", subject)
    assert (code, bool(out), err) == (0, True, "")
    assert "record up to 1 concerns" in kerf("log", record, "--subject", subject, "--until", "1")[2]


def test_log_of_a_subject_whose_events_the_flags_leave_out_says_so(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--subject", "default/b", "--since", "+9h")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].endswith("of default/b left out: leave out --since or give --all to be told")
    assert "Is it pod/default/b" in kerf("log", record, "--subject", "pod/default/bb")[2]


def test_a_log_that_ends_before_it_begins_is_refused(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--since", "5", "--until", "3")
    assert (code, out) == (2, "")
    assert err.startswith("KERF202: --since 5 is later than --until 3")


def test_a_log_of_a_time_in_which_nothing_happened_says_so(kerf: Any, record: Path) -> None:
    entries = [json.loads(line) for line in kerf("log", record, "--all", "--json")[1].splitlines()]
    before, after = max(pairwise(entries), key=lambda pair: pair[1]["at"] - pair[0]["at"])
    start, gap = entries[0]["at"], after["at"] - before["at"]
    times = [f"+{before['at'] - start + gap * share // 4}ms" for share in (1, 3)]
    quiet = "Nothing happened in this part of the record\n"
    assert kerf("log", record, "--since", times[0], "--until", times[1]) == (0, "", quiet)
    code, _, err = kerf("log", record, "--since", times[1], "--until", times[0])
    assert (code, err.startswith(f"KERF202: --since {times[1]} is later than --until {times[0]}")) == (2, True)
    code, out, err = kerf("log", record, "--since", "now")
    assert (code, out, err.startswith("Nothing is in the record since then")) == (0, "", True)
    assert err.count("\n") == 1


def test_a_log_of_a_time_of_which_only_minor_events_are_told_says_how_many(kerf: Any, record: Path) -> None:
    events = [json.loads(line) for line in kerf("log", record, "--all", "--json")[1].splitlines()]
    told = {event["position"] for event in events if event["level"] != "debug"}
    minor = next(event["position"] for event in events if event["position"] not in told)
    code, out, err = kerf("log", record, "--since", str(minor), "--until", str(minor))
    assert (code, out) == (0, "")
    assert (
        err
        == "Nothing happened in this part of the record, but for 1 event of little interest: give --all to be told\n"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--workload", "other/inflat"), "Is it other/inflate?"),
        (("--kind", "nodee"), "Is it node"),
        (("--namespace", "othr"), "Is it other?"),
        (("--kind", "nodepool", "--name", "defalt"), "Is it default?"),
    ],
)
def test_log_asks_about_names_that_are_like_one_that_is_not_there(kerf: Any, asked: tuple[str, ...], said: str) -> None:
    code, out, err = kerf("log", SPOT, *asked)
    assert (code, out) == (1, "")
    assert said in err


def test_log_since_a_position_begins_with_it(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("log", record, "--since", "13", "--json")
    assert json.loads(out.splitlines()[0])["position"] == 13


def test_log_in_karpenters_shape(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("log", record, "--karpenter")
    assert code == 0
    assert "launched nodeclaim" in [json.loads(line)["message"] for line in out.splitlines()]


def test_a_log_since_after_the_last_entry_is_refused_as_other_times_outside_the_record(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--since", "+900h")
    assert (code, out) == (2, "")
    assert err.startswith("KERF202: '+900h' is ")
    assert kerf("log", record, "--since", "-1m")[2] == ""


@pytest.mark.parametrize("form", ["--karpenter", "--effort"])
@pytest.mark.parametrize(
    "chosen", [("--subject", "default/b"), ("--kind", "pod"), ("--name", "b*"), ("--workload", "default/b")], ids=str
)
def test_a_choice_of_events_is_not_passed_over_where_none_are_told(
    kerf: Any, record: Path, form: str, chosen: tuple[str, str]
) -> None:
    code, out, err = kerf("log", record, form, *chosen)
    assert (code, out) == (2, "")
    assert err.startswith(f"KERF200: {form} ")
    assert kerf("log", record, form, "--since", "start", "--all")[0] == 0


def test_log_lines_of_karpenter_and_effort_are_two_answers(kerf: Any, record: Path) -> None:
    assert kerf("log", record, "--karpenter", "--effort")[::2] == (
        2,
        "KERF200: --karpenter and --effort are two answers. Give one of them\n",
    )
