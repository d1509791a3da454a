"""Which pod replaced which, where it is read once for all moments, is what was known at each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.engine.model.kubernetes.pods import Owner, Pod
from kerf.engine.record.claim_events import PodEvicted
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES
from kerf.engine.record.observations import RecordStarted
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.successor_pods import Successors
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.world import World


def record_of(payloads: list[Struct]) -> MemoryStore:
    """A second between one and the next, behind the start of a real record."""
    store = World().store
    first = next(entry for entry in store.entries if isinstance(entry.payload, RecordStarted))
    del store.entries[first.position :]
    for position, payload in enumerate(payloads, first.position + 1):
        name = NAME_OF[type(payload)]
        at = first.at + 1_000 * position
        store.entries.append(
            Entry(position, position, "test", position, name, TYPES[name].schema, at, 0, first.epoch, payload)
        )
    return store


def pod(name: str, node: str = "", *, owned: bool = True, deleting: int = 0) -> Pod:
    owner = Owner("ReplicaSet", "web-5d8c7f9b4", "o") if owned else None
    return Pod(f"u-{name}", "shop", name, "s", node=node, deleting=deleting, owner=owner)


LATE_EVICTION = [
    pod("a", "n1"),
    pod("b", "n1"),
    pod("a", "n1", deleting=1),  # its eviction is told last
    PodEvicted("c1", "u-b", "shop/b"),
    pod("new", "n2"),
    PodEvicted("c1", "u-a", "shop/a"),
]
ADOPTED = [pod("a", "n1"), PodEvicted("c1", "u-a", "shop/a"), pod("new", "n2", owned=False), pod("new", "n2")]


@pytest.mark.parametrize(("payloads", "then"), [(LATE_EVICTION, {"u-b": "u-new"}), (ADOPTED, {})])
def test_at_a_moment_less_may_be_known_of_a_pod_than_later(
    payloads: list[Struct], then: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = open_record(stored(tmp_path / "a.kerf", record_of(payloads)))
    last = store.last_position()
    index = named_record(store, last, short=0)
    assert index is not None
    found = []
    for until in range(1, last + 1):
        cut, folded = histories_of(store, until, index.up_to(until)), histories_of(store, until)
        there = list(folded.pods.every())
        found.append(Successors(cut).of(cut.pods[pod.uid] for pod in there))
        assert found[-1] == Successors(folded).of(there), until
    assert found[-2:] == [then, {"u-a": "u-new"}]
    store.close()
