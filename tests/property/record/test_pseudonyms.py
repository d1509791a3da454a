"""A dictionary attack on pseudonymised bundles: who guesses a word, or a whole object, finds nothing that confirms it.

A word is planted in each text of everything that kerf records. What the table of fields in clear names must be found in
the bundle, and nothing else.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.pseudonyms.in_clear import KINDS, POSITIONS, fields_in_clear
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.hash_chain import START, Checkpoint
from kerf.engine.state import snapshot
from kerf.engine.state.base import base_of
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State
from tests.support.strategies.planted import Planter

KEY = b"a key that nobody knows"


class Planted:
    """A source of entries of all types, after a state with everything in it."""

    record_id = "r"

    def __init__(self, names: Callable[[], str] | None = None) -> None:
        self.planter = Planter(names)
        self.payloads = [payload for known in TYPES.values() for payload in self.planter.structs(known.payload)]
        (facts,) = self.planter.structs(Facts)
        assert isinstance(facts, Facts)
        self.facts = facts
        self._encoded = [CODEC.encode(self._entry(number, value)) for number, value in enumerate(self.payloads, 2)]

    def _entry(self, position: int, payload: Struct) -> Entry:
        known = next(known for known in TYPES.values() if type(payload) is known.payload)
        return Entry(position, position, "cluster", position, known.name, known.schema, position, 0, 1, payload)

    def checkpoint(self, position: int) -> Checkpoint:
        return Checkpoint(1, START.value)

    def first_position(self) -> int:
        return 2

    def base(self) -> Base:
        state, digest = snapshot.encode(State(self.facts, Blobs(self.blob)))
        return base_of(state, digest, at=1, position=1, chain=START.value, engine="0.1.0")

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(())

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(self._encoded)

    def blob(self, digest: str) -> bytes:
        if digest not in self.planter.blobs:
            raise BlobMissing(digest)
        return self.planter.blobs[digest]


def unpacked(path: Path) -> bytes:
    """Returns all that is in a bundle, decompressed."""
    data = path.read_bytes()
    start = data.index(zstandard.FRAME_HEADER)
    found, rest = [data[:start]], data[start:]
    while rest:
        unpack = zstandard.ZstdDecompressor().decompressobj()
        found.append(unpack.decompress(rest))
        rest = unpack.unused_data
    return b"".join(found)


def words_in(path: Path) -> set[str]:
    return set(re.findall(r"qz\d{5}xy", unpacked(path).decode("latin-1")))


@pytest.fixture(scope="module")
def source() -> Planted:
    return Planted()


@pytest.fixture(scope="module")
def bundle(source: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "b.kerfb"
    export_bundle(source, path, pseudonymise=True, key=KEY, created=1)
    return path


def test_no_planted_word_is_found_but_those_of_fields_in_clear(source: Planted, bundle: Path) -> None:
    held = words_in(bundle)
    planter = source.planter
    assert len(planter.where) > 2_000
    leaks = sorted({f"{planter.where[word]} ({word})" for word in held - planter.stays})
    assert leaks == []


def test_each_field_of_the_table_is_in_clear(source: Planted, bundle: Path) -> None:
    """So nothing stands in the table that need not be told."""
    planter = source.planter
    held = words_in(bundle)
    shown = {planter.where[word] for word in held & planter.stays}
    without_words = {field for field, why in fields_in_clear().items() if why in (POSITIONS, KINDS)}
    assert sorted(set(fields_in_clear()) - without_words - shown) == []


def test_a_plain_bundle_has_every_word(source: Planted, tmp_path: Path) -> None:
    """So the planted words do get into bundles, and are found there."""
    export_bundle(source, tmp_path / "b.kerfb", created=1)
    held = words_in(tmp_path / "b.kerfb")
    hashed = {word for word in source.planter.where if word not in held}
    assert len(hashed) < len(source.planter.where) / 10


def digests(data: bytes) -> Iterator[bytes]:
    """Yields digests without a key, as anybody would make them."""
    for size in (8, 16, 32, 64):
        yield hashlib.blake2b(data, digest_size=size).digest()
    for name in ("sha256", "sha1", "md5", "sha512"):
        yield hashlib.new(name, data).digest()


def encodings(value: Any) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode()
    yield msgspec.msgpack.encode(value)
    yield msgspec.msgpack.encode(value, order="deterministic")
    yield msgspec.json.encode(value)
    yield msgspec.json.encode(value, order="sorted")


def test_no_digest_without_a_key_confirms_a_guess(source: Planted, bundle: Path) -> None:
    """Neither of a word nor of a whole object."""
    planter, data = source.planter, unpacked(bundle)
    told = [token.encode() for token in re.findall(r"[0-9a-f]{16,}", data.decode("latin-1"))]
    shown = {token[at : at + 16] for token in told for at in range(len(token) - 15)}
    raw = {data[at : at + 8] for at in range(len(data))}
    secret = [word for word in planter.where if word not in planter.stays]
    guesses: list[Any] = [*secret, *source.payloads, *planter.blobs.values()]
    found = [
        (guess, digest.hex())
        for guess in guesses
        for encoded in ({guess} if isinstance(guess, bytes) else set(encodings(guess)))
        for digest in digests(encoded)
        if digest.hex()[:16].encode() in shown or digest[:8] in raw
    ]
    assert found == []


DICTIONARY = [
    "payments", "checkout", "billing", "acme", "acme-web", "Frontend", "jupyter", "team.acme.com", "shop_7", "ml-gold",
    "pci", "gdpr", "black-friday", "postgres-main", "analytics.acme.io", "Kafka", "vault", "us-payroll",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30))
def test_who_guesses_with_a_dictionary_finds_nothing(seed: int, tmp_path: Path) -> None:
    """All sorts of things share a few names here, so that a text is a name of several kinds."""
    path = tmp_path / "b.kerfb"
    path.unlink(missing_ok=True)
    chosen = random.Random(seed)
    planted = Planted(lambda: chosen.choice(DICTIONARY))
    export_bundle(planted, path, pseudonymise=True, key=KEY, created=1)
    data = unpacked(path)
    assert [word for word in DICTIONARY if word.encode() in data] == []
    told = [digest for word in DICTIONARY for encoded in encodings(word) for digest in digests(encoded)]
    assert [digest for digest in told if digest[:8] in data or digest.hex()[:16].encode() in data] == []


def test_the_bundle_can_be_read(bundle: Path) -> None:
    assert len(list(BundleStore(bundle).scan())) > len(TYPES)
