"""A base outlives changes of the state's schema: what an older kerf wrote is read, and what changes is noticed here.

`bases/schema-N.json` is the JSON schema of the facts of number N, `bases/N.msgpack` a base of that number. They are
never changed by hand. After a further field with a default: make the newest schema anew (`python -m
tests.unit.state.test_base`). After any other change: raise FACTS.schema, write the upcaster, then make the new files.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.adapters.store.files.golden import GoldenStore
from kerf.adapters.store.retention.policy import base_at
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.base import pack_base, unpack_base
from kerf.engine.record.entries import EntryType
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import EntryUndecodable, UpcastFailed
from kerf.engine.state import snapshot
from kerf.engine.state.base import FACTS, restore, upcast_facts
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.engine.state.state import Facts
from tests.support.repository import ROOT

HERE = Path(__file__).parent / "bases"
GOLDEN = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
NUMBERS = range(1, FACTS.schema + 1)
POSITION = 46


def blobs() -> Blobs:
    return Blobs(GoldenStore(GOLDEN).blob)


def shape() -> dict[str, Any]:
    """The facts' shape as far as stored bytes depend on it: no words of docstrings."""

    def bare(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: bare(value) for key, value in part.items() if key != "description" or isinstance(value, dict)}
        return [bare(value) for value in part] if isinstance(part, list) else part

    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(bare(msgspec.json.schema(Facts))))
    return found


def changed(was: Any, now: Any, where: str = "") -> list[str]:
    """What is not as it was, further fields with defaults apart."""
    if isinstance(was, dict) and isinstance(now, dict):
        more = where.endswith(("/properties", "$defs"))
        gone = [f"{where}/{key} is gone" for key in was.keys() - now.keys()]
        new = [] if more else [f"{where}/{key} is new" for key in now.keys() - was.keys()]
        return (
            gone
            + new
            + [path for key in was.keys() & now.keys() for path in changed(was[key], now[key], f"{where}/{key}")]
        )
    return [] if was == now else [f"{where}: {was!r} is {now!r} now"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_base_of_any_number_is_read(number: int) -> None:
    state = restore(unpack_base((HERE / f"{number}.msgpack").read_bytes()), blobs())
    facts = state.facts
    assert (facts.position, len(facts.claims), len(facts.pods)) == (POSITION, 1, 5)
    assert state.indexes.claim_by_node


def test_only_a_further_field_with_a_default_keeps_the_number() -> None:
    """If this fails: see the module's docstring."""
    locked = msgspec.json.decode((HERE / f"schema-{FACTS.schema}.json").read_bytes())
    assert changed(locked, shape()) == []


def test_a_snapshot_of_another_shape_is_told_by_its_schema() -> None:
    """If this fails: write the right value down in engine/state/snapshot.py."""
    shown = msgspec.json.encode([shape(), snapshot.MEANING], order="sorted")
    assert blake2b(shown, digest_size=8).hexdigest() == snapshot.SCHEMA


def test_what_is_noticed() -> None:
    was = {"$defs": {"A": {"properties": {"x": {"type": "string"}}, "required": ["x"]}}}
    more = {"$defs": {"A": {"properties": {"x": {"type": "string"}, "y": {"type": "integer"}}, "required": ["x"]}}}
    needed = {"$defs": {"A": {"properties": {"x": {"type": "string"}}, "required": ["x", "y"]}}}
    other = {"$defs": {"A": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}}
    assert changed(was, more) == []
    assert changed(was, needed)
    assert changed(was, other)
    assert changed(more, was)


def test_facts_are_brought_to_todays_form_step_by_step() -> None:
    """Those of their own number, then the pods in them by the upcasters of the pods' entries."""
    facts = EntryType(
        FACTS.name, 3, Facts,
        {1: lambda plain: {"position": plain.pop("place"), **plain}, 2: lambda plain: {**plain, "at": 7}},
    )  # fmt: skip
    pod = EntryType("pod.seen", 2, Pod, {1: lambda plain: {**plain, "name": plain["name"] + "-2"}})
    old = {"place": 5, "pods": {"u": {"uid": "u", "namespace": "n", "name": "p", "shape": ""}}}
    made = upcast_facts(old, 1, {"pod.seen": 1}, facts=facts, known={**TYPES, "pod.seen": pod})
    found = msgspec.convert(made, Facts)
    assert (found.position, found.at, found.pods["u"].name) == (5, 7, "p-2")


def test_what_cannot_be_read_says_so() -> None:
    base = base_at(GoldenStore(GOLDEN), POSITION)
    with pytest.raises(UpcastFailed, match="KERF117"):
        restore(msgspec.structs.replace(base, schema=0), blobs())
    with pytest.raises(EntryUndecodable, match="KERF116"):
        restore(msgspec.structs.replace(base, state=b"\x81\xa4pods\x01"), blobs())


def test_a_base_of_today_is_the_state() -> None:
    store = GoldenStore(GOLDEN)
    base = base_at(store, POSITION)
    state = load(store, POSITION)
    assert snapshot.digest(restore(base, blobs())) == snapshot.digest(state) == base.digest
    assert (base.at, base.position) == (state.facts.at, POSITION)
    assert base.types.keys() >= {"pod.seen", "node.seen", "nodepool.seen", "launch.answered", "nodeclaim.seen"}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    made = msgspec.json.format(msgspec.json.encode(shape(), order="sorted"), indent=1)
    (HERE / f"schema-{FACTS.schema}.json").write_bytes(made + b"\n")
    if not (file := HERE / f"{FACTS.schema}.msgpack").exists():
        file.write_bytes(pack_base(base_at(GoldenStore(GOLDEN), POSITION)))
