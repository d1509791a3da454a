"""`kerf bundle export --pseudonymise` and `names`: keys, and the way back."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.entries import UnknownEntry
from kerf.engine.record.observations import RecordStarted
from tests.contract.store_contract import turn


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_key_of_pseudonyms_is_random_and_kept_beside_the_bundle(kerf: Any, record: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.kerfb", tmp_path / "two.kerfb"
    for bundle in (one, two):
        code, _, told = kerf("bundle", "export", record, bundle, "--pseudonymise")
        assert code == 0
        assert f"{bundle}.key" in told
        assert (mode_of(bundle), mode_of(Path(f"{bundle}.key"))) == (0o600, 0o600)
    assert list(BundleStore(one).encoded()) != list(BundleStore(two).encoded())
    assert Path(f"{one}.key").read_bytes() != Path(f"{two}.key").read_bytes()


def test_the_same_key_gives_the_same_pseudonyms(kerf: Any, record: Path, tmp_path: Path) -> None:
    key = tmp_path / "my.key"
    for name in ("one", "two"):
        assert kerf("bundle", "export", record, tmp_path / name, "--pseudonymise", "--key", key)[0] == 0
    assert mode_of(key) == 0o600
    assert list(BundleStore(tmp_path / "one").encoded()) == list(BundleStore(tmp_path / "two").encoded())
    assert not (tmp_path / "one.key").exists()


def test_with_key_and_record_pseudonyms_are_mapped_back(kerf: Any, record: Path, tmp_path: Path) -> None:
    """Also those of a part of the record, in which names have other ranks."""
    bundle, part = tmp_path / "b.kerfb", tmp_path / "part.kerfb"
    kerf("bundle", "export", record, bundle, "--pseudonymise")
    kerf("bundle", "export", record, part, "--pseudonymise", "--key", f"{bundle}.key", "--since", "20")
    given = json.loads(kerf("bundle", "names", record, "--key", f"{bundle}.key", "--json")[1])
    pods = {e.payload.name for file in (bundle, part) for e in BundleStore(file).scan() if isinstance(e.payload, Pod)}
    assert pods
    code, out, _ = kerf("bundle", "names", record, *sorted(pods), "--key", f"{bundle}.key")
    assert code == 0
    assert {line.split()[1] for line in out.splitlines()} <= set(given.values())
    code, _, told = kerf("bundle", "names", record, "pod-1-0123456789abcdef", "--key", f"{bundle}.key")
    assert (code, "pod-1-0123456789abcdef" in told) == (1, True)
    code, _, told = kerf("bundle", "names", bundle, "--key", f"{bundle}.key")
    assert (code, "KERF201" in told) == (2, True)


def test_a_key_is_neither_overwritten_nor_left_behind(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle, key = tmp_path / "b.kerfb", tmp_path / "b.kerfb.key"
    key.write_text("somebody else's file, which stays")
    code, _, told = kerf("bundle", "export", record, bundle, "--pseudonymise")
    assert (code, "KERF114" in told, bundle.exists()) == (2, True, False)
    assert key.read_text().startswith("somebody")
    key.unlink()
    assert kerf("bundle", "export", record, tmp_path / "none" / "b", "--pseudonymise")[0] == 2
    assert kerf("bundle", "export", record, bundle, "--pseudonymise", "--until", "9999999")[0] == 2
    assert not key.exists()


def test_entries_of_a_newer_kerf_are_counted(kerf: Any, tmp_path: Path) -> None:
    newer = UnknownEntry("acme.seen", 3, msgspec.Raw(msgspec.msgpack.encode({"who": "acme"})))
    with closing(SQLiteStore(tmp_path / "r.kerf", "create")) as store:
        store.append(turn([RecordStarted("r-1", "0.1.0"), newer, newer], first=1))
    _, out, told = kerf("bundle", "export", tmp_path / "r.kerf", tmp_path / "b.kerfb", "--pseudonymise")
    assert told.startswith("Note: entries of a newer kerf: 2. What they say is left out, because ")
    assert "entries of a newer kerf: 2, left empty" in out
    assert "acme" not in out + told
    _, out, told = kerf("bundle", "export", tmp_path / "r.kerf", tmp_path / "plain.kerfb")
    assert ("entries of a newer kerf: 2\n" in out, told) == (True, "")


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 5000])
def test_a_file_that_is_no_key_is_refused(kerf: Any, record: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "k").write_bytes(content)
    code, _, told = kerf("bundle", "export", record, tmp_path / "b", "--pseudonymise", "--key", tmp_path / "k")
    assert (code, told[:8]) == (2, "KERF207:")
    assert kerf("bundle", "names", record, "--key", tmp_path / "none")[2].startswith("KERF207")


def test_a_key_without_pseudonyms_is_refused(kerf: Any, record: Path, tmp_path: Path) -> None:
    assert kerf("bundle", "export", record, tmp_path / "b", "--key", tmp_path / "k")[2].startswith("KERF200")
