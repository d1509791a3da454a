"""Tables and short texts for people."""

from __future__ import annotations

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import counted, some, table_lines
from tests.support.repository import ROOT

RECORD = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"


def test_a_table_is_as_wide_as_its_cells() -> None:
    """No cell is cut off or wrapped, no markup is read, and no line ends in spaces."""
    wide = "default/" + "web-" * 300
    lines = table_lines([("POD", "NODE", "[bold]"), ("a", wide, ""), ("longer", "n", "x y")])
    assert lines == [
        "  POD     NODE" + " " * (len(wide) - 4) + "  [bold]",
        f"  a       {wide}",
        "  longer  n" + " " * (len(wide) - 1) + "  x y",
    ]
    assert table_lines([("a", "b")], indent="") == ["a  b"]


def test_a_printed_table_is_not_cut_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    Printer().table(("since", "NodeClaim"), [("10:00", "a-name-that-is-wider-than-the-terminal")])
    assert capsys.readouterr().out == "  since  NodeClaim\n  10:00  a-name-that-is-wider-than-the-terminal\n"


def test_few_names_and_how_many_more() -> None:
    assert some(["a", "b", "c"]) == "a, b, c"
    assert some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert (counted(1, "pod"), counted(0, "pod")) == ("1 pod", "0 pods")


@pytest.mark.parametrize(
    ("variables", "escapes"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
@pytest.mark.parametrize("arguments", [("status", str(RECORD)), ("cost", str(RECORD)), ("cost", "--help")])
def test_a_terminal_gets_no_escape_codes_where_none_are_wanted(
    variables: dict[str, str],
    escapes: bool,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    assert main(list(arguments)) == 0
    assert ("\x1b" in capsys.readouterr().out) == escapes
