"""Several new nodes of one plan, each with its own way to its types."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.cli.render.explain.decision import decision_text
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.kubernetes.pods import HostPort
from kerf.engine.record.observations import Observation
from kerf.replay.explain.decision import explain_decision
from kerf.replay.explain.pod import explain_pod
from kerf.replay.history.pod_histories import PodDecision
from tests.support.world import Mi, World, pool


def apart() -> World:
    """Three pods that cannot share a node; the heavy NodePool's limits allow one."""
    world = World()
    world.prepare()
    world.see(Observation(pool("heavy", weight=9, limits={"cpu": 2_000})))
    world.pending("a", "b", "c", memory=100 * Mi, host_ports=(HostPort(80),))
    world.after(1_000)
    return world


def test_a_pod_is_told_of_its_own_node_and_of_what_was_considered_before() -> None:
    world = apart()
    targets = world.runtime.state.facts.targets
    pools = {claim.name: claim.node_pool for claim in world.runtime.state.facts.claims.values()}
    assert sorted(pools.values()) == ["default", "default", "heavy"]
    for name in "abc":
        found = explain_pod(world.store, f"default/{name}").how
        assert found is not None
        mine = targets[f"uid-{name}"]
        *before, last = found.pools
        assert (last.claim, last.node_pool, last.reason) == (mine, pools[mine], None)
        assert [(attempt.node_pool, attempt.claim) for attempt in before] == (
            [] if last.node_pool == "heavy" else [("heavy", "")]
        )
        assert all(attempt.reason is not None for attempt in before)
        assert mine not in " ".join(refusal.example for refusal in found.refused)


def test_a_pod_on_a_node_of_another_class_is_not_told_of_nodes_that_its_like_got() -> None:
    """A large pod opens a node, which a small one joins; its twin, which needs the same port, gets one of its own."""
    world = World()
    world.prepare()
    world.pending("large", memory=4_000 * Mi)
    world.pending("a", "b", memory=100 * Mi, host_ports=(HostPort(80),))
    world.after(1_000)
    targets = world.runtime.state.facts.targets
    joined, alone = sorted("ab", key=lambda name: targets[f"uid-{name}"] != targets["uid-large"])
    assert targets[f"uid-{joined}"] == targets["uid-large"] != targets[f"uid-{alone}"]
    found = explain_pod(world.store, f"default/{joined}").how
    assert found is not None
    assert found.chosen
    assert [attempt.claim for attempt in found.pools if attempt.claim] == []
    found = explain_pod(world.store, f"default/{alone}").how
    assert found is not None
    assert [attempt.claim for attempt in found.pools] == [targets[f"uid-{alone}"]]


def test_new_nodes_are_named_where_funnels_and_refusals_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    world = apart()
    claims = set(world.runtime.state.facts.claims)
    position = next(entry.position for entry in world.store.entries if entry.type == "decision.made")
    decision_text(Printer(), explain_decision(world.store, position), [])
    pod_text(Printer(), explain_pod(world.store, "default/a"))
    out = capsys.readouterr().out
    named = {line.rsplit(" ", 1)[1] for line in out.splitlines() if "considered for the new node" in line}
    assert named == claims
    refused = [line for line in out.splitlines() if line.startswith("  not on the new node ")]
    assert refused
    assert all(any(name in line for name in claims) for line in refused)


def test_of_many_decisions_about_a_pod_the_first_and_the_latest_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    explained = explain_pod(apart().store, "default/a")
    looks = tuple(PodDecision(n, 0, "no-place" if n % 2 else "new-claim", f"c{n}") for n in range(20))
    pod_text(Printer(), replace(explained, looks=looks))
    lines = capsys.readouterr().out.splitlines()
    told = [line.split(" at ")[0].removeprefix("decision ") for line in lines if line.startswith("decision ")]
    assert told == ["0", "1", "2", "15", "16", "17", "18", "19"]
    assert "… 12 more: 6 times no place, 6 times planned onto a new node" in lines
