"""What comes again and again is a ground of the verdict (wish 47)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.reasons import Reason
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, PlannedClaim
from kerf.engine.record.observations import FAILED, ControllerDecided
from kerf.projections.cluster_status.structs import BUSY, DEGRADED, FINE, ClusterVerdict, Ground
from kerf.projections.cluster_status.trouble import OVER_AFTER, TroubleFold
from kerf.projections.cluster_status.verdict import with_trouble
from kerf.projections.cluster_status.words import ground_words
from tests.support.lives import in_service

MINUTE = 60_000


def found(payloads: Iterable[Struct], *, after: int = 0) -> dict[str, tuple[str, ...]]:
    """The trouble that one thing a minute makes, so long (ms) after the last."""
    template, fold, at = in_service().store.entries[0], TroubleFold(), 0
    for payload in payloads:
        at += MINUTE
        fold.apply(replace(template, payload=payload, at=at))
    return fold.found(at + after)


def replaced(old: str, *new: str) -> Decision:
    claims = tuple(
        PlannedClaim(name, "default", (), instance_types=(), requirements=(), requests={}, capacity_types=(), price=0.1)
        for name in new
    )
    begun = Move("underutilized", (old,), claims)
    result = MoveStepResult("1.0", "started", Reason("underutilized"), begun)
    return Decision("move", 0, 0, 1, "", result, ())


def _launched() -> ev.Launched:
    launched = next(e.payload for e in in_service().store.entries if isinstance(e.payload, ev.Launched))
    assert isinstance(launched, ev.Launched)
    return launched


def by_karpenter(old: str, new: str) -> ControllerDecided:
    return ControllerDecided("karpenter", "drifted", "replace", (old,), replacements=(new,))


@pytest.mark.parametrize("step", [replaced, by_karpenter])
def test_a_node_that_ends_three_replacements_in_a_row_is_named(step: Callable[[str, str], Struct]) -> None:
    chain = [step("a", "b"), step("b", "c"), step("c", "d")]
    assert found(chain) == {"replaced-again": ("d",)}
    assert found([*chain, step("d", "e")]) == {"replaced-again": ("e",)}


def test_two_replacements_in_a_row_and_many_beside_one_another_are_none() -> None:
    assert not found([replaced("a", "b"), replaced("b", "c")])
    assert not found(replaced(f"a{number}", f"b{number}") for number in range(9))


def test_what_has_not_come_again_for_twenty_minutes_is_over() -> None:
    chain = [replaced("a", "b"), replaced("b", "c"), replaced("c", "d")]
    assert found(chain, after=OVER_AFTER)
    assert not found(chain, after=OVER_AFTER + 1)


def test_a_decision_that_was_given_up_replaces_nothing() -> None:
    chain = [by_karpenter("a", "b"), by_karpenter("b", "c"), by_karpenter("c", "d")]
    given_up = ControllerDecided("karpenter", "drifted", FAILED, ("d",))
    assert found([*chain, given_up]) == {"replaced-again": ("d",)}


def test_launches_that_fail_are_trouble_if_more_fail_than_succeed() -> None:
    failed = [ev.LaunchFailed("a", kind="capacity"), ev.LaunchTimedOut("b", waited=1), ev.LaunchFailed("c", kind="x")]
    launched = _launched()
    assert found(failed) == {"launches-fail": ("a", "b", "c")}
    assert found([*failed, launched, launched]) == {"launches-fail": ("a", "b", "c")}
    assert not found([*failed, launched, launched, launched])
    assert not found(failed[:2])
    assert not found(failed, after=OVER_AFTER + 1)


def test_trouble_makes_a_fine_or_busy_cluster_degraded_and_says_where_to_look() -> None:
    trouble = {"replaced-again": ("d",)}
    verdict = with_trouble(ClusterVerdict(FINE, ()), trouble)
    assert verdict.level == DEGRADED
    assert [ground_words(ground) for ground in verdict.grounds] == [
        "1 node replaced again and again: kerf churn tells why (d)"
    ]
    failing = with_trouble(ClusterVerdict(FINE, ()), {"launches-fail": ("a", "b", "c")})
    assert ground_words(failing.grounds[0]).startswith("3 launches failed in the hour before, more than succeeded")
    busy = ClusterVerdict(BUSY, (Ground(BUSY, "under-way", 1, ("d",)),))
    assert [ground.code for ground in with_trouble(busy, trouble).grounds] == ["replaced-again", "under-way"]
    assert with_trouble(busy, {}) == busy
