"""Timeline documents: what they may say, and how a bad action is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.simulation.timeline import timeline as t
from kerf.adapters.simulation.timeline.timeline import decode_timeline


def document(*actions: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Timeline",
        "metadata": {"name": "x"},
        "spec": {"actions": (actions and list(actions)) or []},
    }


def test_actions_are_ordered_by_time_then_as_written() -> None:
    scheduled, errors = decode_timeline(
        document(
            {"at": "1h30m", "action": "scale", "name": "web", "replicas": 0},
            {"at": "90s", "action": "interrupt", "nodePool": "spot", "count": 2},
            {"at": "1m30s", "action": "node-notready", "for": "5m"},
        )
    )
    assert errors == []
    assert [(s.after, s.path) for s in scheduled] == [
        (90_000, "spec.actions[1]"),
        (90_000, "spec.actions[2]"),
        (5_400_000, "spec.actions[0]"),
    ]
    assert scheduled[0].action == t.Interrupt(at="90s", node_pool="spot", count=2)
    assert scheduled[1].action == t.NodeNotReady(at="1m30s", duration="5m")
    assert scheduled[2].action == t.Scale(at="1h30m", name="web", replicas=0)


@pytest.mark.parametrize(
    ("action", "where", "message"),
    [
        ({"at": "1m", "action": "explode"}, "spec.actions[1].action", "explode"),
        ({"at": "1m"}, "spec.actions[1]", "action"),
        ({"action": "vanish"}, "spec.actions[1]", "`at`"),
        ({"at": "soon", "action": "vanish"}, "spec.actions[1].at", "soon"),
        ({"at": "-1m", "action": "vanish"}, "spec.actions[1].at", "before the start"),
        ({"at": "1m", "action": "scale", "name": "w", "replicas": "3"}, "spec.actions[1].replicas", "int"),
        ({"at": "1m", "action": "scale", "name": "w", "replicas": -1}, "spec.actions[1].replicas", "at least 0"),
        ({"at": "1m", "action": "scale", "name": "w", "replicas": 1, "kind": "Job"}, "spec.actions[1].kind", "Job"),
        ({"at": "1m", "action": "vanish", "instance_type": "x"}, "spec.actions[1]", "instance_type"),
        ({"at": "1m", "action": "price"}, "spec.actions[1]", "either"),
        ({"at": "1m", "action": "price", "price": 1, "factor": 2}, "spec.actions[1]", "either"),
        ({"at": "1m", "action": "price", "factor": -2}, "spec.actions[1].factor", "-2"),
        ({"at": "1m", "action": "throttle", "for": "0s"}, "spec.actions[1].for", "more than nothing"),
        ({"at": "1m", "action": "node-condition", "condition": "Ready"}, "spec.actions[1].condition", "Ready"),
        ({"at": "1m", "action": "delete", "kind": "Pod"}, "spec.actions[1].name", "which Pod"),
        ({"at": "1m", "action": "delete", "kind": "Node", "name": "n", "zone": "a"}, "spec.actions[1]", "instance"),
        ("vanish", "spec.actions[1]", "object"),
    ],
)
def test_a_bad_action_is_refused_where_it_is_bad_and_the_others_stand(action: Any, where: str, message: str) -> None:
    good = {"at": "1m", "action": "vanish"}
    scheduled, errors = decode_timeline(document(good, action, good))
    assert [s.path for s in scheduled] == ["spec.actions[0]", "spec.actions[2]"]
    (error,) = errors
    assert error.code == "KERF810"
    assert error.where == where
    assert message in error.message


@pytest.mark.parametrize(
    ("field", "hint"),
    [("objekt", "Is it object?"), ("manifest", "Fields of apply are at, object")],
)
def test_an_unknown_field_is_told_what_fields_there_are(field: str, hint: str) -> None:
    _, (error,) = decode_timeline(document({"at": "1m", "action": "apply", field: {}}))
    assert (error.message, error.hint) == (f"Object contains unknown field `{field}`", hint)


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"apiVersion": "v1", "kind": "Timeline"}, "apiVersion"),
        ({"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline"}, "spec.actions"),
        ({"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "spec": {"actions": {}}}, "spec.actions"),
        ({"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "spec": []}, "spec.actions"),
    ],
)
def test_a_document_that_is_no_timeline_is_refused_as_a_whole(bad: dict[str, Any], where: str) -> None:
    scheduled, errors = decode_timeline(bad)
    assert scheduled == []
    assert [(error.code, error.where) for error in errors] == [("KERF810", where)]
