"""Simulations by the command line, and what came of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs/examples"
WORKSHOP = str(EXAMPLES / "workshop")


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["simulate", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def example(name: str) -> str:
    return str(EXAMPLES / "simulations" / name)


def written(folder: Path, text: str, name: str = "given.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def codes(outcome: dict[str, Any]) -> list[str]:
    return [refused["code"] for refused in outcome["refused"]]


def entries(record: Path, kind: str) -> list[Any]:
    store = SQLiteStore(record, "read")
    try:
        return [entry for entry in store.scan() if entry.type == kind]
    finally:
        store.close()
