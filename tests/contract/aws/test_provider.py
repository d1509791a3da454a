"""The provider of `kerf run --provider aws` on the mock: what it writes of EC2NodeClasses."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.nodeclasses import NodeClassObjects
from kerf.adapters.manager.providers.aws import AwsProvider
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.engine.record.observations import NodeClassSeen
from tests.support.servers.aws_world import CLOCK, AwsWorld


class Objects:
    """Keeps what is written of each class. Writing of "bad" fails in a way that nobody foresaw."""

    def __init__(self) -> None:
        self.written: dict[str, dict[str, str]] = {}

    async def mark(self, name: str, finalizer: str, annotations: Any) -> None:
        if name == "bad":
            raise TypeError("a defect")

    async def write_status(self, name: str, generation: int, status: Any, conditions: Any) -> None:
        self.written[name] = {condition.type: condition.status for condition in conditions}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_136_a_class_that_cannot_be_written_keeps_no_other_from_being_written(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    objects = Objects()
    provider = AwsProvider(
        world.environment.operator.shim,
        world.environment.settings,
        objects=cast(NodeClassObjects, objects),
        interruptions=None,
        clock=CLOCK,
    )
    malformed = replace(default.spec, kubelet={"podsPerCore": "x"})
    for name, spec in (("aaa", default.spec), ("bad", default.spec), ("malformed", malformed), ("zzz", default.spec)):
        provider.put(replace(default, name=name, spec=spec))
    seen = [entry.payload for entry in await provider.first()]
    assert {node_class.name: node_class.ready for node_class in seen if isinstance(node_class, NodeClassSeen)} == {
        "aaa": True, "bad": True, "malformed": False, "zzz": True,
    }  # fmt: skip
    for node_class in list(provider._classes.values()):
        await provider._bring(node_class, cast(ProviderHost, None))
    assert {name: written["Ready"] for name, written in objects.written.items()} == {
        "aaa": "True", "malformed": "False", "zzz": "True",
    }  # fmt: skip
    assert provider.error is not None
    assert (provider.error.code, provider.error.where) == ("KERF605", "EC2NodeClass/bad")
