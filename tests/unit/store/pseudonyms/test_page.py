"""The page of what a record holds shows the tables that the code has."""

from __future__ import annotations

from kerf.adapters.store.pseudonyms.in_clear import IN_CLEAR, PARTLY
from tests.support.repository import ROOT
from tests.support.strategies.planted import recorded_structs

PAGE = ROOT / "docs" / "record-contents.md"


def rows() -> list[str]:
    """The rows as they are to stand on the page."""
    fields = [f"| {' '.join(f'`{field}`' for field in kept.split())} | {why} |" for why, kept in IN_CLEAR.items()]
    return [*fields, *(f"| {what} | {stays} |" for what, stays in PARTLY.items())]


def test_the_page_shows_each_field_that_stays_in_clear() -> None:
    lines = PAGE.read_text().splitlines()
    _, _, stays = PAGE.read_text().partition("### Fields that stay")
    assert [row for row in rows() if row not in lines] == []
    shown = [line for line in stays.splitlines() if line.startswith("| ") and not line.startswith(("| fields", "| of"))]
    assert [line for line in shown if line not in rows()] == []


def test_the_fields_of_the_table_are_recorded() -> None:
    recorded = {f"{kind.__name__}.{field}" for kind in recorded_structs() for field in kind.__struct_fields__}
    assert [field for kept in IN_CLEAR.values() for field in kept.split() if field not in recorded] == []
