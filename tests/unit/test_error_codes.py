"""Every code that the code may show stands in docs/errors.md or docs/errors-input.md, and the other way round."""

from __future__ import annotations

import re

import pytest

from kerf.engine.errors import InputError
from tests.support.repository import ROOT

HOUSES = ("engine", "adapters", "replay", "projections")
CODE = re.compile(r"KERF\d{3}\b")
ROW = re.compile(r"^\| (KERF\d{3}) \|", re.MULTILINE)
FAMILIES = {"KERF000", "KERF300"}


def test_codes_and_their_pages_are_the_same() -> None:
    used = {
        code for house in HOUSES for path in (ROOT / house).rglob("*.py") for code in CODE.findall(path.read_text())
    }
    documented: set[str] = set()
    for page in ("errors.md", "errors-input.md"):
        rows = ROW.findall((ROOT / "docs" / page).read_text())
        assert len(rows) == len(set(rows)), f"a code stands twice in {page}"
        documented |= set(rows)
    assert used - FAMILIES == documented


@pytest.mark.parametrize(
    ("message", "where", "said"),
    [
        ("there is none", "", "KERF300: there is none. Look again"),
        ("there is none", "a.kerf", "KERF300: there is none [a.kerf]. Look again"),
        ('Did you mean "claims"?', "", 'KERF300: Did you mean "claims"? Look again'),
        ("It is refused.", "", "KERF300: It is refused. Look again"),
    ],
)
def test_a_hint_follows_the_end_of_a_sentence(message: str, where: str, said: str) -> None:
    assert str(InputError(message, where=where, hint="Look again")) == said
