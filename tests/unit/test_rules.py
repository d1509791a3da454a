"""docs/rules defines each rule once, and all that are cited; rules and differences link to each other."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.repository import ROOT

DOCS = ROOT / "docs"
PAGES = ("scheduling", "disruption", "lifecycle", "aws", "formats")
DIFFERENCES = ("differences.md", "differences-scheduling.md", "differences-disruption.md")
NUMBER = r"(?:EV|LG|S|D|L|A|W|E|M|C|F)-\d+"
DEFINITION = re.compile(rf'^(?:- |\| )<a id="([a-z]+-\d+)"></a>(?:\*\*)?({NUMBER})\b')
CITATION = re.compile(
    r"""(?<![\w.-])(?P<prefix>EV|LG|S|D|L|A|W|E|M|C|F)-(?P<first>\d+)\b
        (?:(?:…|\ to\ |–)(?P=prefix)-(?P<last>\d+)\b)?  # S-116…S-208, L-9 to L-46
        (?P<more>(?:,\ -\d+\b)*)  # A-26, -27""",
    re.VERBOSE,
)
CITING = (".py", ".md", ".go", ".sh", ".yaml", ".toml")
NOT_CITING = ("tests/records/", "docs/rules/README.md")


def defined() -> dict[str, str]:
    """The page of each rule, by its number."""
    return {number: page for page in PAGES for _, number in definitions(page)}


def definitions(page: str) -> list[tuple[str, str]]:
    """Anchor and number of each rule that a page defines."""
    lines = (DOCS / "rules" / f"{page}.md").read_text().splitlines()
    return [(found[1], found[2]) for line in lines if (found := DEFINITION.match(line))]


def cited(text: str) -> list[str]:
    """Every rule that a text cites, those between the ends of a range included. A range that goes down is an error."""
    numbers: list[str] = []
    for found in CITATION.finditer(text):
        first, last = int(found["first"]), int(found["last"] or found["first"])
        assert first <= last, f"{found[0]} goes down"
        also = [int(number) for number in re.findall(r"\d+", found["more"])]
        numbers += [f"{found['prefix']}-{number}" for number in (*range(first, last + 1), *also)]
    return numbers


def citing_files() -> list[Path]:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in tracked.splitlines() if not name.startswith(NOT_CITING)]
    return [ROOT / name for name in names if name.endswith(CITING) and (ROOT / name).is_file()]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("S-33", ["S-33"]),
        ("(S-116…S-118)", ["S-116", "S-117", "S-118"]),
        ("L-9 to L-11, L-20", ["L-9", "L-10", "L-11", "L-20"]),
        ("A-26, -27", ["A-26", "A-27"]),
        ("UTF-8, KEP-5278, t3.S-4", []),
    ],
)
def test_citations_are_read(text: str, numbers: list[str]) -> None:
    assert cited(text) == numbers


def test_every_rule_is_defined_once_under_its_own_anchor() -> None:
    found = [pair for page in PAGES for pair in definitions(page)]
    assert len(found) > 1600
    assert [number for number, times in Counter(number for _, number in found).items() if times > 1] == []
    assert [(anchor, number) for anchor, number in found if anchor != number.lower()] == []


def test_every_rule_that_is_cited_is_defined() -> None:
    rules = defined()
    unknown = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in citing_files()
        for number in cited(path.read_text())
        if number not in rules
    }
    assert sorted(unknown) == []


def test_marks_and_rows_of_differences_lead_to_each_other() -> None:
    """A rule's mark links to a row; the row's first cell names the rule, alone or within a range, and links to it."""
    marks = {
        (number, target)
        for page in PAGES
        for line in (DOCS / "rules" / f"{page}.md").read_text().splitlines()
        if (found := DEFINITION.match(line))
        for number in [found[2]]
        for target in re.findall(r"\(\.\./(differences[\w-]*\.md#[\w-]+)\)", line)
    }
    rows = {
        (number, f"{name}#{row[1]}")
        for name in DIFFERENCES
        for line in (DOCS / name).read_text().splitlines()
        if (row := re.match(r'\| <a id="([\w-]+)"></a>(.*?) \| ', line))
        for number in cited(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row[2]))
    }
    assert len(rows) > 200
    assert sorted(rows - marks) == [], "rows whose rules are not marked in docs/rules"
    assert sorted(marks - rows) == [], "marks in docs/rules that no row answers"


def test_every_row_of_differences_has_an_anchor() -> None:
    bare = [
        f"{name}: {line[:60]}"
        for name in DIFFERENCES
        for line in (DOCS / name).read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| rule |", '| <a id="'))
    ]
    assert bare == []


def test_links_to_anchors_of_rules_and_differences_resolve() -> None:
    anchors = {
        path.resolve(): set(re.findall(r'<a id="([\w-]+)"></a>', path.read_text()))
        for path in [*(DOCS / "rules").glob("*.md"), *(DOCS / name for name in DIFFERENCES)]
    }
    broken = [
        f"{path.relative_to(ROOT)}: {target}#{anchor}"
        for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", path.read_text())
        if (page := (path.parent / target).resolve() if target else path.resolve()) in anchors
        and anchor not in anchors[page]
    ]
    assert broken == []
