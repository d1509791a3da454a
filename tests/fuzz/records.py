"""Records in every form, and questions to records whose entries were made up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.files.golden import GoldenStore, write_golden
from kerf.adapters.store.open import open_record
from kerf.adapters.store.retention.policy import base_at, before_turn
from kerf.engine.errors import KerfError
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.replay.time_travel.moments import locate
from tests.fuzz.manifests import ALL
from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.fuzz.target import Target, command, folder, in_file, plain_json
from tests.support import hostile

RECORDS = [hostile.SOUND, *(hostile.SOUND.parent / f"golden-{name}.kerfb" for name in ("devices", "volumes"))]


@cache
def entries() -> list[bytes]:
    """The entries of a sound record."""
    return list(BundleStore(hostile.SOUND).encoded())


@cache
def one_of_each_type() -> list[Any]:
    """An entry of each type and schema in the records of the repository, as plain values."""
    found: dict[tuple[str, int], Any] = {}
    for path in RECORDS:
        for encoded in BundleStore(path).encoded():
            entry = msgspec.msgpack.decode(encoded)
            found.setdefault((entry[4], entry[5]), entry)
    return list(found.values())


@cache
def sound_database() -> bytes:
    return hostile.sound_record(folder() / "sound.kerf").read_bytes()


@cache
def golden_lines() -> list[Any]:
    target = folder() / "golden-sound"
    write_golden(BundleStore(hostile.SOUND), target)
    return [json.loads(line) for line in (target / "record.jsonl").read_text().splitlines()]


def packed(value: Any) -> bytes:
    """The value as MessagePack; an integer that it cannot hold is a text."""
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError:
        return msgspec.msgpack.encode(json.loads(json.dumps(value), parse_int=_held))


def _held(digits: str) -> int | str:
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else digits


def check_entry(content: bytes) -> None:
    with suppress(KerfError):
        CODEC.decode(content)


def read_whole(path: Path) -> None:
    """Reads a record in any form from beginning to end."""
    with suppress(KerfError):
        store = open_record(path)
        try:
            with suppress(KerfError):
                store.check()
            with suppress(KerfError):
                list(store.scan())
            with suppress(KerfError):
                locate(store, "+1h")
        finally:
            store.close()


ASKING = (
    ("at",), ("log", "--all"), ("log", "--karpenter"), ("log", "--effort"), ("verify",), ("story", "default/web"),
    ("explain", "pod", "other/inflate-1"), ("explain", "node", "ip-10-0-0-5"), ("explain", "decision", "9"),
    ("observe", "report"), ("whatif", "--setting", "batch_idle=5s"),
    ("status",), ("diff", "start", "end"), ("cost",), ("evictions",), ("churn",), ("capacity",),
)  # fmt: skip


def check_questions(given: tuple[int, Any, int]) -> None:
    """Entries that can be decoded, and make no sense, in a bundle whose digests and chain are right."""
    at, payload, asked = given
    encoded = list(entries())
    entry = msgspec.msgpack.decode(encoded[at])
    entry[-1] = payload
    encoded[at] = packed(entry)
    path = hostile.with_entries(folder() / "given.kerfb", encoded)
    ask(path, ASKING[asked])


def ask(path: Path, words: Sequence[str]) -> None:
    """Runs a command on a record, which stands first of its arguments."""
    head = 2 if words[0] == "observe" else 1
    command(*words[:head], str(path), *words[head:])


@st.composite
def made_up_entries(draw: st.DrawFn) -> tuple[int, Any, int]:
    """The position of an entry, what it says instead, and what is asked."""
    at = draw(st.integers(0, len(entries()) - 1))
    payload = draw(mutated([msgspec.msgpack.decode(entries()[at])[-1]], most=2))
    return at, payload, draw(st.integers(0, len(ASKING) - 1))


@cache
def sound_base() -> Base:
    """The state in the middle of a sound record."""
    store = BundleStore(hostile.SOUND)
    return base_at(store, before_turn(store, 60))


def sound_facts() -> list[Any]:
    return [msgspec.msgpack.decode(sound_base().state)]


def check_base(given: tuple[Any, int]) -> None:
    """A bundle whose beginning is a made-up state."""
    facts, asked = given
    state = packed(facts)
    base = replace(sound_base(), state=state, digest=blake2b(state, digest_size=16).hexdigest())
    path = folder() / "based.kerfb"
    path.unlink(missing_ok=True)
    export_bundle(BundleStore(hostile.SOUND), path, after=base.position, base=base)
    ask(path, ASKING[asked])


CHANGES = [
    "nodepool/default.spec.limits.cpu=4", "nodepool/default.spec.template.spec.requirements[kubernetes.io/arch]=x",
    "node/ip-10-0-0-5", "pod/other/inflate-1", "m5.large/spot/us-west-2a=+20%", "m5.large=0.08", "batch_idle=5s",
    "SpotToSpotConsolidation=true",
]  # fmt: skip
CHANGE_FLAGS = ("--set", "--delete", "--remove", "--price", "--no-capacity", "--setting")


def check_change(given: tuple[str, bytes]) -> None:
    """A what-if whose change is nonsense."""
    flag, content = given
    command("whatif", str(hostile.SOUND), "--at", "60", f"{flag}={content.decode('utf-8', 'replace')}")


def check_applied(given: tuple[str, Any]) -> None:
    """A what-if with a manifest that somebody else wrote."""
    flag, document = given
    path = in_file(plain_json(document), "given.yaml")
    command("whatif", str(hostile.SOUND), "--at", "60", flag, str(path))


def check_database(statement: tuple[str, str, Any, int]) -> None:
    """A value of a sound database is changed."""
    table, column, value, row = statement
    path = in_file(sound_database(), "given.kerf")
    connection = sqlite3.connect(path)
    try:
        with suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
            value = value if isinstance(value, int | float | str | bytes | None) else str(value)
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid IN (SELECT rowid FROM {table} LIMIT 1 OFFSET ?)",
                (value, row),
            )
            connection.commit()
    finally:
        connection.close()
    read_whole(path)
    command("at", str(path))


COLUMNS = [
    ("record", name) for name in ("format", "id", "position", "chain", "epoch", "seal")
] + [
    ("stored_events", name)
    for name in ("originator_id", "originator_version", "topic", "state", "chain", "rowid")
] + [("blobs", name) for name in ("digest", "packed", "size", "content")]  # fmt: skip


def check_golden(given: tuple[int, Any]) -> None:
    at, line = given
    lines = list(golden_lines())
    lines[at % len(lines)] = line
    target = folder() / "golden"
    target.mkdir(exist_ok=True)
    for name in ("decisions.jsonl", "blobs.jsonl"):
        (target / name).write_bytes((folder() / "golden-sound" / name).read_bytes())
    (target / "record.jsonl").write_bytes(b"\n".join(map(plain_json, lines)))
    with suppress(KerfError):
        store = GoldenStore(target)
        list(store.scan())
        store.check()


TARGETS: dict[str, Target] = {
    "entries": Target(st.deferred(lambda: mutated(one_of_each_type())).map(packed), check_entry),
    "entries' bytes": Target(st.deferred(lambda: damaged(entries())), check_entry),
    "bundles' bytes": Target(
        damaged([path.read_bytes() for path in RECORDS]).map(lambda content: in_file(content, "b.kerfb")), read_whole
    ),
    "records' bytes": Target(
        st.deferred(lambda: damaged([sound_database()])).map(lambda content: in_file(content, "r.kerf")),
        read_whole,
        slow=True,
    ),
    "records' values": Target(
        st.tuples(st.sampled_from(COLUMNS), st.sampled_from(HOSTILE) | st.binary(max_size=20), st.integers(0, 99)).map(
            lambda given: (*given[0], given[1], given[2])
        ),
        check_database,
        slow=True,
    ),
    "changes of a what-if": Target(
        st.tuples(st.sampled_from(CHANGE_FLAGS), damaged([change.encode() for change in CHANGES])),
        check_change,
        slow=True,
    ),
    "manifests of a what-if": Target(
        st.tuples(st.sampled_from(["--apply", "--add-pods"]), mutated(ALL)), check_applied, slow=True
    ),
    "made-up entries": Target(made_up_entries(), check_questions, slow=True),
    "made-up bases": Target(
        st.deferred(lambda: st.tuples(mutated(sound_facts(), most=2), st.integers(0, len(ASKING) - 1))),
        check_base,
        slow=True,
    ),
    "golden lines": Target(
        st.deferred(lambda: st.tuples(st.integers(0, 90), mutated(golden_lines()))), check_golden, slow=True
    ),
}
