"""`kerf verify`: same, diverged, unsupported, corrupt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kerf.engine.scheduling import provision
from tests.support.records import changed, position_of, stored, tampered
from tests.support.world import World


def test_verify_says_same(kerf: Any, record: Path) -> None:
    code, out, err = kerf("verify", record)
    assert (code, err) == (0, "")
    assert out.startswith("same: ")


def test_verify_says_diverged_and_where(kerf: Any, forged: Path) -> None:
    code, out, _ = kerf("verify", forged)
    assert code == 1
    assert "payload.price: 9.0 → 0.096" in out
    code, out, _ = kerf("verify", forged, "--json")
    assert code == 1
    assert json.loads(out)["divergences"][0]["path"] == "payload.price"


def test_verify_says_unsupported(kerf: Any, life: World, tmp_path: Path) -> None:
    position = position_of(life.store, "decision.made")
    older = stored(tmp_path / "older.kerf", tampered(life.store, changed(position, version=0)))
    code, out, _ = kerf("verify", older)
    assert code == 4
    assert f"decision-version: provision 0, today's is {provision.VERSION}" in out


def test_verify_says_corrupt(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "life.kerfb"
    assert kerf("bundle", "export", record, bundle)[0] == 0
    damaged = bytearray(bundle.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    bundle.write_bytes(damaged)
    code, out, err = kerf("verify", bundle)
    assert code == 3
    assert "KERF109" in out + err
    code, _, err = kerf("bundle", "inspect", bundle)
    assert (code, err.split(":")[0]) == (3, "KERF109")
