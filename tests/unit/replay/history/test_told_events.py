"""A story told by what it is about is the one that reading everything gives, also where plans speak of room to keep
free: of its pods no entry tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.observations import Observation
from kerf.replay.history.indexed_timeline import told_of
from kerf.replay.history.story import story
from tests.support.records import stored
from tests.support.world import World


def test_room_that_has_no_place_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    world = World(capacity_buffers=True)
    world.prepare()
    huge = PodShape(requests={"cpu": 900_000, "memory": 1 << 30})
    digest, _ = content(huge)
    world.see(
        Observation(PodTemplate("shop", "t", digest), {digest: huge}),
        Observation(CapacityBuffer("u", "shop", "b", template="t", replicas=1)),
    )
    for name in ("a", "b", "c"):
        world.pending(name)
        world.after(20_000)
        world.gone(name)
    results = [entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision)]
    plans = [result for result in results if isinstance(result, ProvisionResult) and not result.repeats]
    assert sum(any("u-1" in group.pods for group in plan.unplaced) for plan in plans) > 1
    store = open_record(stored(tmp_path / "a.kerf", world.store))
    index = named_record(store, store.last_position(), short=0)
    assert index is not None
    assert told_of(store, index) is not None
    last = store.last_position()
    for name in ("default/a", "default/b", "default/c", *(claim.name for plan in plans for claim in plan.claims)):
        assert story(store, name, last, index.up_to(last)) == story(store, name, last)
    store.close()
