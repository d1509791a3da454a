"""`kerf explain node` about nodes picked at random, in runs of the whole controller: every node that is there has an
answer with its reasons, every one that is gone exactly one chain of causes, and what is said to make a node go does
make it go (issue 5, point 5)."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from kerf.adapters.cli.render.explain.claim import claim_text
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import story_text
from kerf.adapters.simulation.build import START
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import MoveStepResult
from kerf.engine.state.load import load
from kerf.projections.prose.changes import change_words
from kerf.projections.prose.explanation_codes import ChangeCode
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.claim import ClaimExplanation, explain_claim, explain_node
from kerf.replay.explain.method_verdicts import MethodVerdict
from kerf.replay.explain.pod import PodExplanation, explain_pod
from kerf.replay.history.removal import Removal
from kerf.replay.history.story import story
from tests.support.simulation.budgets import budget, given
from tests.support.simulation.chaos import chaos
from tests.support.simulation.edits import apply, edited, frozen
from tests.support.simulation.run import HOUR, Run, scale, workshop
from tests.support.simulation.static_pool import STATIC, document
from tests.support.simulation.static_pool import run as static_run
from tests.support.slow import slow

CHOSEN = ("emptiness", "drift", "consolidation")
FORCEFUL = ("expiration", "repair", "interruption", "deletion")


def claims(run: Run) -> list[str]:
    return [entry.payload.claim for entry in run.entries("claim.requested")]


def method(found: ClaimExplanation, name: str) -> MethodVerdict:
    return next(found_method for found_method in found.methods if found_method.method == name)


def removal(run: Run, claim: str) -> Removal:
    found = explain_claim(run.store, claim).removal
    assert found is not None
    return found


def told(found: ClaimExplanation, capsys: pytest.CaptureFixture[str]) -> str:
    claim_text(Printer(), found)
    return capsys.readouterr().out


# ── picked at random ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", [*range(4), *slow(*range(4, 12))])
def test_every_node_has_an_answer_at_any_position(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    run, dice = chaos(seed), random.Random(seed)
    for name in dice.sample(claims(run), min(4, len(claims(run)))):
        first = next(entry.position for entry in run.entries("claim.requested") if entry.payload.claim == name)
        for position in (dice.randint(first, run.store.last_position()) for _ in range(3)):
            found = explain_claim(run.store, name, position)
            assert "{" not in told(found, capsys)
            if found.removal is not None:
                one_chain(found.removal, position)
                assert not found.methods
            elif found.state == INITIALIZED:
                reasoned(found)
            assert (found.removal is not None) == bool(found.removed)
            assert (found.state == "terminated") == (found.removal is not None and found.removal.over)


def one_chain(found: Removal, until: int) -> None:
    """The causes are in order, and lead from before the end to it."""
    positions = [cause.position for cause in found.causes]
    assert positions == sorted(set(positions))
    assert found.position in positions
    assert max(positions) <= until
    assert found.why
    for cause in found.causes:
        assert sentence(cause.reason) != cause.reason.code


def reasoned(found: ClaimExplanation) -> None:
    assert [found_method.method for found_method in found.methods] == [*CHOSEN, *FORCEFUL]
    for found_method in found.methods:
        assert " " in sentence(found_method.reason), f"{found_method.reason.code} has no sentence"
        if found_method.way is not None:
            assert (found_method.way.goes is None) != (found_method.way.stays is None)
            assert found_method.acts == (found_method.way.verdict is None)
            assert len(found_method.way.between) == max(0, len(found_method.way.changes) - 1)
            assert all(change.code in set(ChangeCode) and change_words(change) for change in found_method.way.changes)


@pytest.mark.parametrize("seed", [*range(3), *slow(*range(3, 6))])
def test_every_node_that_is_gone_has_the_cause_that_the_record_has(seed: int) -> None:
    run = chaos(seed)
    ended = {entry.payload.claim: entry for entry in run.entries("claim.terminated")}
    for name, end in ended.items():
        found = removal(run, name)
        assert found.over
        assert found.why == end.payload.why
        assert found.causes[-1].position == end.position


# ── what would have to change, and does it? ────────────────────────────────────────────────────────────────────────


def test_without_the_pod_budget_the_node_goes_as_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    held = Run(given(scale("1m", 12), scale("10m", 5), more=(budget(0),)), until=HOUR // 2)
    free = Run(given(scale("1m", 12), scale("10m", 5)), until=HOUR // 2)
    found = explain_claim(held.store, claims(held)[0])
    said = method(found, "consolidation")
    assert (said.reason.code, said.acts) == ("pod-budget-exhausted", False)
    assert said.way is not None
    assert [change.code for change in said.way.changes] == ["without-pod-budget"]
    assert said.way.goes is not None
    happened = removal(free, claims(free)[0]).move
    assert happened is not None
    assert said.way.goes.savings == pytest.approx(happened.savings)
    assert said.way.goes.replacements == tuple(new.instance_type for new in happened.replacements)
    asked = "PodDisruptionBudget other/inflate allowed an eviction (maxUnavailable 0: 5 of 5 pods must stay healthy)"
    assert f"it would go if {asked}: for a m5.large" in told(found, capsys)


def test_two_budgets_on_one_pod_hold_it_whatever_they_allow(capsys: pytest.CaptureFixture[str]) -> None:
    second = {**budget(3), "metadata": {"name": "second", "namespace": "other"}}
    held = Run(given(scale("1m", 12), scale("10m", 5), more=(budget(3), second)), until=HOUR // 2)
    found = explain_claim(held.store, claims(held)[0])
    way = method(found, "consolidation").way
    assert way is not None
    assert [change.code for change in way.changes] == ["under-one-pod-budget"]
    words = "it would go if its pods were each under one PodDisruptionBudget that allowed an eviction, and not under "
    assert f"{words}other/inflate, other/second (maxUnavailable 3: " in told(found, capsys)


def test_two_obstacles_are_both_named_and_both_needed() -> None:
    held: dict[str, Any] = {"consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "0"}]}
    run = Run(given(scale("1m", 12), scale("10m", 5), **held), until=HOUR // 2)
    way = method(explain_claim(run.store, claims(run)[0]), "consolidation").way
    assert way is not None
    assert way.verdict is not None
    assert way.verdict.code == "policy-when-empty"
    assert [change.code for change in way.changes] == ["without-policy-when-empty", "more-budget"]
    assert [reason.code for reason in way.between] == ["budget"]
    assert way.goes is not None
    one = Run(given(scale("1m", 12), scale("10m", 5), budgets=[{"nodes": "0"}]), until=HOUR // 2)
    assert not one.entries("claim.tainted"), "taking away the one is not enough"


def test_a_node_that_is_needed_says_what_its_pods_need() -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5)), until=HOUR // 2)
    said = method(explain_claim(run.store, claims(run)[1]), "consolidation")
    assert said.reason.code == "nothing-cheaper"
    assert said.way is not None
    need = said.way.need
    assert need is not None
    assert (need.pods, need.requests["memory"], need.instance_type, need.price) == (5, 5 * 2**30, "m5.large", 0.096)
    assert [judged.verdict.reason.code for judged in said.history] == [
        "nominated", "not-consolidatable", "nothing-cheaper",
    ]  # fmt: skip


def test_a_node_that_only_waits_says_until_when() -> None:
    run = Run(given(scale("1m", 12), consolidateAfter="40m"), until=HOUR // 2)
    said = method(explain_claim(run.store, claims(run)[0]), "consolidation")
    assert said.reason.code == "not-consolidatable"
    assert said.due == run.runtime.state.facts.claims[claims(run)[0]].last_pod_event + 40 * 60_000


def test_a_budget_says_when_its_window_ends_and_what_it_leaves() -> None:
    """D-45, D-47: the run begins at midnight."""
    night = [{"nodes": "0", "schedule": "0 0 * * *", "duration": "2h"}]
    run = Run(given(scale("1m", 12), scale("10m", 5), budgets=night), until=HOUR // 2)
    said = method(explain_claim(run.store, claims(run)[0]), "consolidation")
    assert (said.reason.code, said.due) == ("budget", START + 2 * HOUR)
    assert said.way is not None
    (change,) = said.way.changes
    assert (change.code, change.params["allowed"], change.params["total"]) == ("more-budget", 0, 1)
    assert said.way.goes is not None
    later = Run(given(scale("1m", 12), scale("10m", 5), budgets=night), until=3 * HOUR)
    gone = removal(later, claims(later)[0])
    assert gone.at >= said.due
    assert gone.move is not None
    assert gone.move.savings == pytest.approx(said.way.goes.savings)


def test_d48_a_budget_that_nobody_can_read_is_what_holds_the_node(capsys: pytest.CaptureFixture[str]) -> None:
    budgets = [{"nodes": "100%"}, {"nodes": "1", "schedule": "61 0 * * *", "duration": "1h"}]
    run = Run(given(scale("1m", 12), scale("10m", 5), budgets=budgets), until=HOUR // 2)
    assert [(note.code, note.params["budget"]) for _, note in run.simulation.notes] == [("bad-budget", 1)]
    found = explain_claim(run.store, claims(run)[0])
    said = method(found, "consolidation")
    assert said.reason.code == "bad-budget"
    assert said.way is not None
    assert [change.code for change in said.way.changes] == ["readable-budget"]
    text = told(found, capsys)
    assert "budget 1 of NodePool default cannot be read (KERF314)" in text
    assert "is no schedule" in text


def test_a_move_that_waits_for_room_in_the_budgets_says_so() -> None:
    run = Run(given(scale("1m", 60), scale("10m", 12), budgets=[{"nodes": "1"}]), until=HOUR // 2)
    started = [
        entry.position
        for entry in run.entries("decision.made")
        if isinstance(entry.payload.result, MoveStepResult) and entry.payload.result.step == "started"
    ]
    after = {position: load(run.store, position + 3).facts.moves.values() for position in started}
    position, waiting = next(
        (position, move.move.claims[0]) for position, moves in after.items() for move in moves if not move.started
    )
    found = explain_claim(run.store, waiting, position + 3)
    said = next(found_method for found_method in found.methods if found_method.reason.code == "waits-for-budget")
    assert not said.acts
    assert said.way is not None
    assert [change.code for change in said.way.changes] == ["more-budget"]
    assert said.way.goes is not None


# ── why it was removed ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_move_says_what_it_saved_what_came_first_and_where_the_pods_are(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5)), until=HOUR // 2)
    old, new = claims(run)
    found = removal(run, old)
    move = found.move
    assert move is not None
    assert (found.why, move.looked_again, round(move.savings, 4)) == ("underutilized", 15_000, 0.03)
    (came,) = move.replacements
    assert (came.claim, came.instance_type) == (new, "m5.large")
    assert [use.code for use in move.budgets] == ["budget-use"]
    pods = run.simulation.cluster.api.pods.values()
    assert {pod.successor for pod in found.pods} == {pod.key for pod in pods}
    assert {(pod.how, pod.planned, pod.node) for pod in found.pods} == {("evicted", came.node, came.node)}
    assert explain_node(run.store, came.node).replaces == (old,)
    assert "  it saves $0.0300/h; proposed by decision" in told(explain_claim(run.store, old), capsys)


def test_a_pod_says_in_whose_place_it_came_and_the_other_that_it_left(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5)), until=HOUR // 2)
    old, _ = claims(run)
    first = removal(run, old).pods[0]
    came, left = explain_pod(run.store, first.successor), explain_pod(run.store, first.pod)
    assert came.came_for is not None
    assert (came.came_for.pod, came.came_for.claim, came.came_for.why) == (first.pod, old, "underutilized")
    assert came.came_for.planned == came.node
    assert left.left is not None
    assert (left.left.pod, left.left.how, left.left.move) == (first.successor, "evicted", came.came_for.move)
    assert (came.left, left.came_for) == (None, None)
    pod_text(Printer(), came)
    assert "which had to go: underutilized; the move" in capsys.readouterr().out


def test_drift_names_the_fields() -> None:
    after = edited("NodePool", "spec.template.metadata.labels.team", "b")
    after["spec"]["disruption"]["budgets"] = [{"nodes": "1"}]
    run = Run(workshop(scale("10s", 5), apply("10m", after)))
    found = removal(run, claims(run)[0])
    assert found.why == "drifted"
    assert [(difference.field, difference.key, difference.now) for difference in found.differences] == [
        ("labels", "team", "b")
    ]
    assert [cause.reason.code for cause in found.causes][:3] == ["nodepool-drifted", "goes-at-once", "move-started"]


def test_a_drifted_node_that_may_not_go_says_both() -> None:
    after = edited("NodePool", "spec.template.metadata.labels.team", "b")
    run = Run([*given(scale("10s", 5), apply("10m", after), budgets=[{"nodes": "0"}])])
    said = method(explain_claim(run.store, claims(run)[0]), "drift")
    assert said.reason.code == "budget"
    assert said.drifted is not None
    assert said.drifted.code == "nodepool-drifted"
    assert said.way is not None
    assert [change.code for change in said.way.changes] == ["more-budget"]
    assert said.way.goes is not None


def test_ends_without_a_choice_begin_with_what_was_seen() -> None:
    spot = Run(workshop(scale("10s", 5), {"at": "10m", "action": "interrupt"}, capacity_type="spot"))
    found = removal(spot, claims(spot)[0])
    assert (found.why, found.causes[0].reason.code) == ("interrupted", "interruption-announced")
    ill = Run(
        frozen(scale("10s", 5), {"at": "5m", "action": "node-notready", "count": 1}),
        until=2 * HOUR,
        settings=Settings(node_repair=True),
    )
    found = removal(ill, claims(ill)[0])
    assert (found.why, found.reason.code) == ("unhealthy", "unhealthy")
    assert found.reason.params["condition"] == "Ready"


def test_a_pool_of_fixed_size_says_so() -> None:
    run = static_run(2, apply("10m", document(5)), apply("30m", document(1)), settings=STATIC)
    gone = {entry.payload.claim for entry in run.entries("claim.terminated")}
    found = removal(run, min(gone))
    assert (found.why, found.reason.code) == ("overprovisioned", "static-scale-down")
    assert found.decision in [entry.position for entry in run.entries("decision.made")]
    (there,) = set(claims(run)) - gone
    stays = explain_claim(run.store, there)
    assert stays.decider == "static"
    assert {method(stays, name).reason.code for name in ("emptiness", "consolidation")} == {"static-nodepool"}


# ── chains ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_chain_of_replacements_is_one_story(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5), scale("30m", 2)), until=HOUR)
    chain = claims(run)
    assert len(chain) == 3
    for name in chain:
        found = story(run.store, name)
        assert [link.claim for link in found.chain] == chain, "from whichever end it is asked for"
        assert [link.launched for link in found.chain] == [(chain[1],), (chain[2],), ()]
        assert [link.why for link in found.chain] == ["underutilized", "underutilized", ""]
        assert {event.subject for event in found.events} >= {f"nodeclaim/{claim_name}" for claim_name in chain}
    story_text(Printer(), story(run.store, chain[0]), 0)
    assert f"the chain: {chain[0]}, a r5.large at $0.1260/h: underutilized, replaced by {chain[1]}, saving" in (
        capsys.readouterr().out
    )


def test_the_story_goes_on_where_the_pods_went() -> None:
    """Interrupted nodes have no replacement of their own: the pods' next nodes are the chain."""
    run = chaos(8)
    found = story(run.store, claims(run)[0])
    assert len(found.chain) > 2
    by_name = {link.claim: link for link in found.chain}
    nodes = {link.node for link in found.chain}
    for link in found.chain[1:]:
        assert any(
            link.node in node_story.pods_to or link.claim in node_story.launched for node_story in by_name.values()
        )
    assert len(nodes) == len(found.chain)


# ── the form of the answer ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_json_keeps_its_form() -> None:
    """Scripts read it: fields may be added, and these stay."""
    schema = {**msgspec.json.schema(ClaimExplanation)["$defs"], **msgspec.json.schema(PodExplanation)["$defs"]}
    fields = {
        "ClaimExplanation": "claim node node_pool position at state decision launched_for replaces adopted how launch "
        "steps verdicts removed removed_at removal staying methods waiting leaving forced_at cost",
        "Removal": "why reason position at decision differences move causes pods over",
        "RemovalMove": "ref why proposed started looked_again savings claims replacements budgets",
        "DrainedPod": "pod how planned successor node",
        "MethodVerdict": "method reason acts due drifted differences history way",
        "WhatWouldChange": "verdict changes between goes stays need without alone",
        "Displacement": "pod claim node why how move planned",
        "WouldGo": "claims replacements price onto savings",
        "PodsNeed": "pods requests instance_type price nodes nowhere",
    }
    for name, known in fields.items():
        assert set(known.split()) <= schema[name]["properties"].keys(), name


def test_of_one_that_is_not_in_service_it_says_what_it_waits_for() -> None:
    for until, code in ((12_000, "not-launched"), (30_000, "registering"), (48_000, "not-initialized")):
        run = Run(workshop(scale("10s", 2)), until=until)
        (name,) = run.runtime.state.facts.claims
        found = explain_claim(run.store, name)
        assert found.staying is not None
        assert (found.state, found.staying.reason.code) == (
            {"not-launched": "requested", "registering": "launched", "not-initialized": "registered"}[code],
            code,
        )


def test_a_node_is_also_found_by_the_name_of_its_claim() -> None:
    run = Run(workshop(scale("10s", 2)), until=HOUR // 10)
    (name,) = run.runtime.state.facts.claims
    assert explain_node(run.store, name) == explain_claim(run.store, name)


def test_the_end_of_its_nodepool_is_in_the_chain() -> None:
    gone = {"at": "10m", "action": "delete", "kind": "NodePool", "name": "default"}
    run = Run(workshop(scale("10s", 2), gone), until=HOUR // 2)
    name = run.entries("claim.tainted")[0].payload.claim
    codes = [cause.reason.code for cause in removal(run, name).causes]
    assert codes[:3] == ["nodepool-gone", "deletion-asked", "deleted"]


def test_pods_that_ended_with_their_node_have_successors_too() -> None:
    run = Run(workshop(scale("10s", 2), {"at": "10m", "action": "reclaim"}), until=HOUR // 2)
    name = run.entries("claim.launched")[0].payload.claim
    pods = removal(run, name).pods
    assert pods
    assert all(pod.successor for pod in pods)
