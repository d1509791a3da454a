"""What a runtime keeps in memory of content that nothing names any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.observations import CatalogueSeen, ObjectGone, Observation
from kerf.engine.state import indexes
from tests.support.world import CATALOGUE, NODE_CLASS, World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(indexes, "_SPARE_SHAPES", 10)
    made = World()
    made.prepare()
    return made


def decoded(world: World) -> tuple[int, int]:
    blobs = world.runtime.state.indexes.blobs
    return len(blobs._shapes), len(blobs._catalogues)


def test_the_shapes_of_pods_that_are_gone_go(world: World) -> None:
    """Each Job's pods have labels of their own."""
    for number in range(60):
        shape = PodShape(requests={"cpu": 100}, labels={"job-name": f"backup-{number}"})
        digest, _ = content(shape)
        pod = Pod(f"uid-{number}", "default", f"backup-{number}", digest, node="n1", phase="Running")
        world.see(Observation(pod, {digest: shape}))
        if number:
            world.see(Observation(ObjectGone("pod", f"uid-{number - 1}")))
    assert decoded(world)[0] < 30


def test_catalogues_of_old_prices_go(world: World) -> None:
    key = f"{NODE_CLASS.group}/{NODE_CLASS.kind}/{NODE_CLASS.name}"
    latest = CATALOGUE
    for number in range(30):
        dearer = [replace(o, price=o.price + number / 1000) for o in CATALOGUE.types[0].offerings]
        latest = Catalogue((replace(CATALOGUE.types[0], offerings=tuple(dearer)), *CATALOGUE.types[1:]))
        digest, _ = content(latest)
        world.see(Observation(CatalogueSeen(key, digest), {digest: latest}))
    assert decoded(world)[1] < 10
    blobs = world.runtime.state.indexes.blobs
    assert blobs.catalogue(content(latest)[0]) == latest
    assert blobs.catalogue(content(CATALOGUE)[0]) == CATALOGUE, "what is stored can be had again"
    world.pending("a")
    assert world.after(1_000)
