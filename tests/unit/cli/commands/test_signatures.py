"""`kerf bundle generate-key`, `sign` and `verify-signature`, from outside."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.files import minisign
from tests.support.repository import ROOT

RECORDS = ROOT / "tests/records/0.1.0"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bundle, and a key pair; it is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(RECORDS / "golden-no-capacity.kerfb", "incident.kerfb")
    assert main(["bundle", "generate-key", "own.key"]) == 0
    return tmp_path


def sign(bundle: str = "incident.kerfb", key: str = "own.key") -> int:
    return main(["bundle", "sign", bundle, "--secret-key", key])


def verified(key: str = "own.key.pub", bundle: str = "incident.kerfb") -> int:
    return main(["bundle", "verify-signature", bundle, "--public-key", key])


def test_a_signature_says_who_signed_and_where_the_record_ends(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign() == 0
    capsys.readouterr()
    public = (place / "own.key.pub").read_text().split()[-1]
    assert main(["bundle", "verify-signature", "incident.kerfb", "--public-key", public, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["public_key"] == public
    assert told["comment"].endswith(f"\tposition:102\tchain:{told['bundle']['chain']}")
    assert verified() == 0
    assert f"chain {told['bundle']['chain']}" in capsys.readouterr().out


def test_a_signature_that_does_not_hold_is_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign() == 0
    assert main(["bundle", "generate-key", "other.key"]) == 0
    bundle, signature = place / "incident.kerfb", place / "incident.kerfb.minisig"
    as_signed = signature.read_text()
    capsys.readouterr()
    ends = [verified("other.key.pub")]
    signature.write_text(as_signed.replace("position:102", "position:103"))
    ends.append(verified())
    signature.write_text(as_signed)
    bundle.write_bytes(bundle.read_bytes()[:-1] + b"x")
    ends.append(verified())
    assert ends == [1, 1, 1]
    assert [line[:7] for line in capsys.readouterr().err.splitlines()] == ["KERF120", "KERF122", "KERF121"]


def test_a_signed_lie_about_the_end_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = minisign.read_secret_key(place / "own.key", str)
    lie = minisign.sign(place / "incident.kerfb", key, "position:103\tchain:00")
    (place / "incident.kerfb.minisig").write_bytes(lie)
    assert verified() == 1
    assert "says position 103, and the bundle 102" in capsys.readouterr().err


def test_what_is_damaged_is_not_signed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = place / "incident.kerfb"
    bundle.write_bytes(bundle.read_bytes()[:-1])
    assert sign() == 3
    assert "KERF109" in capsys.readouterr().err
    assert not (place / "incident.kerfb.minisig").exists()


def test_a_signature_is_not_overwritten_and_has_to_be_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified() == 2
    assert sign() == 0
    assert sign() == 2
    (place / "own.key").chmod(0o644)
    assert sign() == 2
    codes = [line[:7] for line in capsys.readouterr().err.splitlines()]
    assert codes == ["KERF113", "KERF114", "KERF124"]


def test_without_a_terminal_the_password_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(_path: Path, password: object) -> minisign.SecretKey:
        assert callable(password)
        asked.append(password())
        return minisign.SecretKey(bytes(8), bytes(32))

    monkeypatch.setattr(minisign, "read_secret_key", read)
    monkeypatch.setattr("sys.stdin", io.StringIO("open sesame\nmore\n"))
    assert sign() == 0
    assert asked == ["open sesame"]
