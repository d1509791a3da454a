"""A record run again from its observations: what `--golden-update` writes when decisions have changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.errors import BlobMissing
from kerf.replay.errors import ReplayError
from kerf.replay.golden.rerun import Rerun
from kerf.replay.verify.verify import verify
from tests.support.memory import MemoryStore
from tests.support.records import position_of, tampered, whole_life, without


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def made(rerun: Rerun, blobs: dict[str, bytes]) -> MemoryStore:
    memory = MemoryStore()
    memory.entries, memory.blobs = [CODEC.decode(encoded) for encoded in rerun.encoded()], blobs
    return memory


def test_an_honest_record_comes_out_as_it_is(store: MemoryStore) -> None:
    rerun = Rerun(store)
    assert list(rerun.encoded()) == [CODEC.encode(entry) for entry in store.entries]
    assert (rerun.record_id, rerun.first_position(), rerun.last_position()) == ("record-1", 1, len(store.entries))
    assert list(rerun.encoded(3, 5)) == [CODEC.encode(entry) for entry in store.entries[3:5]]
    assert rerun.checkpoint(0).position == 0
    with pytest.raises(BlobMissing):
        rerun.blob("none")


@pytest.mark.parametrize("kind", ["nodepool.seen", "claim.registered"])
def test_answers_follow_the_decisions_they_belong_to(store: MemoryStore, kind: str) -> None:
    """Everything stands one position earlier, and the claim has another name: the life goes on all the same."""
    shorter = tampered(store, without(position_of(store, "settings.seen")))
    assert verify(shorter).exit_code == 1
    rerun = Rerun(shorter)
    assert rerun.dropped == []
    again = made(rerun, store.blobs)
    assert verify(again).exit_code == 0
    assert [e.type for e in again.entries][-1] == "claim.terminated"
    assert kind in [e.type for e in again.entries]


def test_an_answer_to_what_is_no_longer_asked_is_dropped_and_counted(store: MemoryStore) -> None:
    def without_pods(entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if entry.type != "pod.seen"]

    rerun = Rerun(tampered(store, without_pods))
    assert len(rerun.dropped) > 0
    again = made(rerun, store.blobs)
    assert verify(again).exit_code == 0
    assert not [entry for entry in again.entries if entry.type.startswith("claim.")]


def test_an_unknown_entry_cannot_be_run_again(store: MemoryStore) -> None:
    def unknown(entries: list[Entry]) -> list[Any]:
        raw = msgspec.Raw(msgspec.msgpack.encode({}))
        last = entries[-1]
        extra = msgspec.structs.replace(last, type="x.seen", stream="seen/x", payload=UnknownEntry("x.seen", 1, raw))
        return [*entries, extra]

    with pytest.raises(ReplayError, match="KERF205"):
        Rerun(tampered(store, unknown))
