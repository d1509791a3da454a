"""Log lines in Karpenter's shape (L-358, L-359, L-361; the workshop's "launched nodeclaim" line)."""

from __future__ import annotations

import json

import pytest

from kerf.engine.record.observations import EffectAnswered, LaunchAnswered, Observation
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import Facts, State
from kerf.projections.karpenter_logs import KarpenterLog, Line, line_json
from tests.support.records import whole_life
from tests.support.world import World


def lines(world: World, commit: str = "1072d3b") -> list[Line]:
    log = KarpenterLog(commit)
    return [made for entry in world.store.entries for made in log.apply(entry)]


@pytest.fixture(scope="module")
def life() -> list[Line]:
    return lines(whole_life())


def test_the_messages_of_a_life_in_order(life: list[Line]) -> None:
    """A claim's life is told by Karpenter's messages, in their order (L-361)."""
    assert [each["message"] for each in life] == [
        "found provisionable pod(s)", "computed new nodeclaim(s) to fit pod(s)", "created nodeclaim",
        "launched nodeclaim", "registered nodeclaim", "initialized nodeclaim", "disrupting node(s)", "tainted node",
        "deleted node", "deleted nodeclaim",
    ]  # fmt: skip


def test_the_launch_line_is_the_workshops(life: list[Line]) -> None:
    """L-358: level, time, logger, message and commit come first; quantities are Kubernetes' text."""
    launched = json.loads(line_json(next(each for each in life if each["message"] == "launched nodeclaim")))
    assert list(launched)[:5] == ["level", "time", "logger", "message", "commit"]
    assert launched["level"] == "INFO"
    assert launched["time"] == "2023-11-14T22:13:23.500Z"
    assert launched["logger"] == "controller"
    assert launched["commit"] == "1072d3b"
    assert launched["NodePool"] == {"name": "default"}
    assert launched["NodeClaim"]["name"] == launched["name"]
    assert {k: launched[k] for k in ("provider-id", "instance-type", "zone", "capacity-type")} == {
        "provider-id": "aws:///us-west-2a/i-1",
        "instance-type": "m5.large",
        "zone": "us-west-2a",
        "capacity-type": "on-demand",
    }
    assert launched["allocatable"] == {"cpu": "1930m", "memory": "6903Mi", "pods": "29"}


def test_the_pods_and_types_are_listed_as_karpenter_does(life: list[Line]) -> None:
    assert life[0]["Pods"] == "default/a, default/b, default/c, default/d, default/e"
    world = World()
    world.prepare()
    world.pending(*"abcdefgh")
    world.after(1_000)
    assert lines(world)[0]["Pods"] == "default/a, default/b, default/c, default/d, default/e and 3 other(s)"


def test_without_a_build_revision_the_commit_is_left_out() -> None:
    """Without a build revision the commit is left out (L-360)."""
    assert all("commit" not in each for each in lines(whole_life(), ""))


def test_a_node_that_is_gone_before_the_answer_has_its_nodepool() -> None:
    """L-361: the watch may tell of a Node's end before the answer to its deletion; the NodeClaim is then over."""
    world = whole_life(World())
    refs = [e.payload.intent for e in world.store.entries if isinstance(e.payload, EffectAnswered)]
    ((end, answer),) = [
        (number, entry)
        for number, entry in enumerate(world.store.entries)
        if isinstance(entry.payload, EffectAnswered) and entry.payload.intent == refs[-1]
    ]
    log, late = KarpenterLog(), [*world.store.entries[:end], *world.store.entries[end + 1 :], answer]
    told = [made for entry in late for made in log.apply(entry)]
    assert [each["message"] for each in told[-2:]] == ["deleted nodeclaim", "deleted node"]
    assert told[-1]["NodePool"] == {"name": "default"}


def test_a_failed_launch_is_an_error_line() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="no capacity")))
    failed = lines(world)[-1]
    assert (failed["level"], failed["message"]) == ("ERROR", "failed launching nodeclaim")
    assert failed["error"] == "insufficient-capacity no capacity"


def test_the_end_says_how_long_it_lived(life: list[Line]) -> None:
    assert life[-1]["duration"] == "1h1m5.1s"


def test_a_new_process_knows_the_claims_that_were_there() -> None:
    """L-359: the lines of a claim's end are the same as if the log had been read from the beginning."""
    world = whole_life()
    state, log, found = State(Facts(), world.runtime.state.indexes.blobs), KarpenterLog(), []
    for entry in world.store.entries:
        if state.facts.position >= (world.store.entries[-1].position // 2):
            found += log.apply(entry)
        evolve(state, entry)
        if state.facts.position == world.store.entries[-1].position // 2:
            log.know(state)
    assert found
    assert found == lines(world, "")[-len(found) :]
