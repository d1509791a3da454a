"""Objects that the API server holds are read also where a controller refuses them: their conditions are to say so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from kerf.adapters.kubernetes.watch.decoding import reader
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.manifests.wire import Read
from kerf.engine.record.observations import InputRefused, Observation
from kerf.projections.status.nodepool import nodepool_conditions
from tests.support.lives import asked
from tests.support.manifests.small import NODE_POOL, changed, refusals
from tests.support.world import NODE_CLASS

TWICE = [{"key": "a", "effect": "NoSchedule", "value": value} for value in ("x", "y")]
NOT_VALID = [
    ("spec.template.spec.taints", TWICE, "taint a:NoSchedule stands there twice"),
    ("spec.template.metadata", {"labels": {"a b": "x"}}, "label a b is not a qualified name"),
]


def seen(document: dict[str, Any]) -> Read | InputRefused:
    return reader("karpenter.sh/v1/NodePool")(Raw(json.dumps(document).encode()))


@pytest.mark.parametrize(("field", "value", "message"), NOT_VALID, ids=["taint", "label"])
def test_l252_l254_a_nodepool_that_becomes_invalid_says_so_and_launches_nothing(
    field: str, value: object, message: str
) -> None:
    """The API server lets it pass (L-36, L-37): who reads it as it was goes on launching by what it was."""
    document = changed(NODE_POOL, field, value)
    read = seen(document)
    assert isinstance(read, Read)
    assert isinstance(read.object, NodePool)
    world = asked()
    launched = len(world.runtime.state.facts.claims)
    world.see(Observation(replace(read.object, node_class=NODE_CLASS, requirements=())))
    (verdict, *_) = nodepool_conditions(world.runtime.state, "default")
    assert (verdict.status, verdict.reason, verdict.message) == ("False", "NodePoolValidationFailed", message)
    world.pending("later", memory=4 << 30)
    assert world.after(10_000) == []
    assert len(world.runtime.state.facts.claims) == launched
    assert refusals(document), "its author hears of it before (kerf validate)"


def test_what_admission_itself_refuses_is_refused_of_a_watch_too() -> None:
    assert isinstance(seen(changed(NODE_POOL, "spec.weight", 0)), InputRefused)
