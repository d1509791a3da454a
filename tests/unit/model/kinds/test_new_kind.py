"""A kind is declared once: what follows from the declaration of a new one, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
BALL = {"namespace": "playground", "name": "ball", "size": 3}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.toy_kind", str(tmp_path_factory.mktemp("toys"))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_is_listed_watched_and_decoded(told: dict[str, Any]) -> None:
    assert told["listed"] == "/apis/example.com/v1/toys"
    assert told["watched"] == [BALL]


def test_it_is_recorded_and_folded_and_loaded_again(told: dict[str, Any]) -> None:
    assert told["recorded"] == ["toy.seen", "seen/toy", BALL]
    assert told["folded"] == told["loaded"] == {"playground/ball": BALL}
    assert told["planned anew"] == 2_000
    assert told["gone"] == {}


def test_it_is_named_in_the_rights(told: dict[str, Any]) -> None:
    assert told["rights"] == [
        "get toys.example.com", "list toys.example.com", "watch toys.example.com", "patch toys/status.example.com",
    ]  # fmt: skip


def test_it_is_pseudonymised_and_so_is_the_key_of_its_end(told: dict[str, Any]) -> None:
    toy, gone = told["pseudonymised"]
    assert re.fullmatch(r"namespace-\d+-[0-9a-f]{16}", toy["namespace"])
    assert re.fullmatch(r"toy-\d+-[0-9a-f]{16}", toy["name"])
    assert gone == {"kind": "toy", "key": f"{toy['namespace']}/{toy['name']}"}


def test_the_timeline_and_the_simulated_api_server_know_it(told: dict[str, Any]) -> None:
    assert told["told"] == [["toy/playground/ball", "info"]]
    assert told["simulated"] == ["Toy", "ObjectGone"]
