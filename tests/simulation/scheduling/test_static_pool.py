"""A static NodePool in the whole controller (S-190 to S-193, D-160 to D-168)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.support.simulation.static_pool import document, run


def apply(at: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"at": at, "action": "apply", "object": given}


def test_it_comes_up_without_a_pod_and_stays() -> None:
    made = run(3)
    assert len(made.simulation.cloud.alive()) == 3
    assert {c.state for c in made.runtime.state.facts.claims.values()} == {"initialized"}
    assert verify(made.store).exit_code == 0


def test_its_size_follows_its_replicas() -> None:
    made = run(2, apply("10m", document(5)), apply("30m", document(1)))
    assert len(made.entries("claim.launched")) == 5
    assert len(made.simulation.cloud.alive()) == 1
    assert Counter(e.payload.why for e in made.entries("claim.terminated")) == {"overprovisioned": 4}
    assert verify(made.store).exit_code == 0


def test_a_launch_under_way_is_given_up_without_a_trace() -> None:
    """D-166: what is not launched goes first; an instance that turns up afterwards is ended."""
    made = run(2, apply("10m", document(6)), apply("602s", document(3)))
    assert len(made.simulation.cloud.alive()) == 3
    assert len(made.entries("claim.cancelled")) == 3
    assert made.runtime.state.facts.orphans == {}
    assert verify(made.store).exit_code == 0


def test_a_node_that_is_lost_is_replaced() -> None:
    made = run(2, {"at": "20m", "action": "vanish"})
    assert len(made.simulation.cloud.alive()) == 2
    assert len(made.entries("claim.launched")) > 2
    assert verify(made.store).exit_code == 0


def test_without_the_gate_it_has_no_nodes() -> None:
    assert run(3, settings=Settings()).simulation.cloud.instances == {}


def test_d167_drifted_nodes_are_replaced_within_the_budget_and_first() -> None:
    """At no time does the pool have fewer nodes in service than its replicas."""
    made = run(4, apply("30m", document(4, team="b")))
    alive = made.simulation.cloud.alive()
    assert len(alive) == 4
    assert {i.machine.labels.get("team") for i in alive} == {"b"}
    assert Counter(e.payload.why for e in made.entries("claim.terminated")) == {"drifted": 4}
    ready, least, most = 0, 4, 0
    for entry in made.entries():
        ready += (entry.type == "claim.initialized") - (entry.type == "claim.drain-started")
        most = max(most, ready)
        if entry.at > made.simulation.start + 30 * 60_000:
            least = min(least, ready)
    assert least == 4
    assert most <= 6, "a budget of 50% lets two be replaced at a time"
    assert verify(made.store).exit_code == 0


def test_d167_a_template_that_is_not_valid_replaces_none() -> None:
    """A replacement was launched and its predecessor tainted, given up after five minutes, and then the next one."""
    changed = document(2)
    asked = {"key": "team", "operator": "In", "values": ["not valid!"]}
    changed["spec"]["template"]["spec"]["requirements"].append(asked)
    made = run(2, apply("30m", changed))
    assert len(made.entries("claim.launched")) == 2
    claims = made.runtime.state.facts.claims.values()
    assert [(claim.state, claim.verdict) for claim in claims] == [("initialized", "nodepool-not-ready")] * 2
    assert verify(made.store).exit_code == 0


@pytest.mark.parametrize("limit", [4, 5])
def test_d168_a_limit_that_is_reached_leaves_no_room_to_replace(limit: int) -> None:
    changed = document(4, team="b")
    changed["spec"]["limits"] = {"nodes": limit}
    made = run(4, apply("30m", changed))
    new = [i for i in made.simulation.cloud.alive() if i.machine.labels.get("team") == "b"]
    assert len(made.simulation.cloud.alive()) == 4
    assert bool(new) == (limit > 4)
