"""What is free on a node while kube-scheduler binds pods to it."""

from __future__ import annotations

import pytest

from kerf.engine.model.kubernetes.pods import HostPort
from kerf.engine.scheduling.kube_scheduler import node_usage as module
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import (
    NO_ROOM,
    NodeUsage,
    NodeUsages,
    PodLoad,
    ResourceScores,
)
from kerf.engine.scheduling.kube_scheduler.scores import scored_requests
from tests.support.scenarios.problems import GI


def seat(name: str, kind: int = -1, cpu: int = 4000) -> NodeInfo:
    room = {"cpu": cpu, "memory": 8 * GI, "pods": 10}
    return NodeInfo(name, {}, (), room, room, kind=kind)


def load(cpu: int, *ports: int) -> PodLoad:
    requests = {"cpu": cpu, "memory": GI, "pods": 1}
    return PodLoad(requests, scored_requests(requests), tuple(HostPort(port) for port in ports))


def test_a_usage_stays_as_it_is_when_one_more_pod_is_bound() -> None:
    small, large = load(1000), load(3500)
    empty = NodeUsage(seat("a"), {})
    fuller = empty.after(small)
    assert (empty.pods, fuller.pods) == (0, 1)
    assert empty.holds(large)
    assert not fuller.holds(large)
    assert fuller.score(small) < empty.score(small)


def test_equally_full_nodes_of_one_kind_share_a_usage() -> None:
    """Whichever pod came first; not, if it is on another node, or another resource that is taken."""
    every = NodeUsages([seat("old")])
    one, other = load(1000), load(500)
    first, second = every.of_new(seat("a", kind=1)), every.of_new(seat("b", kind=1))
    assert first.after(one).after(other) is second.after(other).after(one)
    assert first.after(one) is not first.after(other)
    assert first.after(one) is not every.of_new(seat("c", kind=2)).after(one)
    assert first.after(one) is not every.existing[0].after(one)


def test_nodes_with_other_ports_taken_share_no_usage() -> None:
    one, other = load(500, 80), load(500, 81)
    empty = NodeUsage(seat("a"), {})
    assert empty.after(one) is not empty.after(other)
    assert not empty.after(one).holds(one)
    assert empty.after(other).holds(one)


def test_resource_scores_tell_the_pods_there_or_that_there_is_no_room() -> None:
    wanted = load(2000)
    offers = ResourceScores(wanted)
    empty = NodeUsage(seat("a"), {})
    half = empty.after(wanted)
    full = half.after(wanted)
    assert [offers[node_info] for node_info in (empty, half, full)] == [
        (empty.score(wanted), 0),
        (half.score(wanted), 1),
        (full.score(wanted), NO_ROOM),
    ]


def test_too_many_usages_are_forgotten_between_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    every, wanted = NodeUsages([seat("old")]), load(100)
    before = every.of_new(seat("a", kind=1))
    filled = before.after(wanted)
    offers = every.scores_for(wanted)
    every.trimmed()
    assert every.of_new(seat("a", kind=1)).after(wanted) is filled
    assert every.scores_for(wanted) is offers
    monkeypatch.setattr(module, "MAX_CACHED_USAGES", 0)
    every.trimmed()
    again = every.of_new(seat("a", kind=1)).after(wanted)
    assert again is not filled
    assert (again.pods, again.score(wanted)) == (filled.pods, filled.score(wanted))
    assert every.scores_for(wanted) is not offers
