"""What holds for every file of the repository: docstrings say something, and nothing points beside the clone."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"\b(?:EV|LG|S|D|L|A|W|E|M|C)-\d+\b")
FILLING = re.compile(r"\b(?:to|and|or|also|as|with|see|steps?|item|row|section|rules?)\b|[\W\d_]")
OUTSIDE = re.compile(r"\.\./shared|/work/|[\"']shared[\"'] /|conformance FORMAT\.md")
LARGE_SET = "tests/conformance/large_set.py"
"""It alone may name a folder beside the clone, and the tests that need it are skipped without."""


PATH = re.compile(r"(?<![\w./-])((?:engine|adapters|projections|replay|tests|benchmarks|deploy)/[\w./-]*\w)")
TEST = re.compile(r"(?<![\w/])test_\w+(?!\w|\.py)")
SECTION = re.compile(r"(docs/[\w/-]+\.md),? sections? (\d+(?:\.\d+)*)")
NO_PATH = {"deploy/kerf"}
"""What kubectl calls the Deployment."""


def tracked(*endings: str) -> Iterator[str]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return (name for name in names.splitlines() if name.endswith(endings) and (ROOT / name).is_file())


def says_nothing(docstring: str) -> bool:
    """Whether only rule numbers are there, and words between them."""
    return not FILLING.sub("", RULE.sub("", docstring))


@pytest.mark.parametrize(
    ("docstring", "nothing"),
    [("S-33.", True), ("A-203…A-206, L-1 (6).", True), ("D-30, steps 11 and 12.", True), ("A pod (S-33).", False)],
)
def test_a_docstring_of_numbers_says_nothing(docstring: str, nothing: bool) -> None:
    assert says_nothing(docstring) is nothing


def test_no_docstring_is_only_a_rule_number() -> None:
    """A docstring says what the rule asks, and then its number."""
    bare = [
        f"{name}:{getattr(node, 'lineno', 1)}: {docstring}"
        for name in tracked(".py")
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (docstring := ast.get_docstring(node))
        and says_nothing(docstring)
    ]
    assert bare == []


def test_nothing_points_beside_the_clone() -> None:
    endings = (".py", ".md", ".go", ".sh", ".yaml", ".toml", "Makefile", ".ci/run", "Dockerfile")
    own = {LARGE_SET, str(Path(__file__).relative_to(ROOT))}
    outside = [
        f"{name}:{number}: {line.strip()}"
        for name in tracked(*endings)
        if name not in own
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if OUTSIDE.search(line)
    ]
    assert outside == []


def documents() -> list[Path]:
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_documents_name_paths_that_exist() -> None:
    stale = [
        f"{document.relative_to(ROOT)}: {path}"
        for document in documents()
        for path in PATH.findall(document.read_text())
        if path not in NO_PATH and not (ROOT / path).exists() and not (ROOT / f"{path}.py").exists()
    ]
    assert stale == []


def test_documents_name_tests_that_exist() -> None:
    defined = {
        found for name in tracked(".py") if name.startswith("tests/")
        for found in re.findall(r"def (test_\w+)", (ROOT / name).read_text())
    }  # fmt: skip
    stale = [
        f"{document.relative_to(ROOT)}: {test}"
        for document in documents()
        for test in TEST.findall(document.read_text())
        if test not in defined
    ]
    assert stale == []


def test_sections_that_are_cited_exist() -> None:
    cited = {
        (name, page, section)
        for name in tracked(".py", ".go", ".md")
        for page, section in SECTION.findall((ROOT / name).read_text())
    }
    assert len(cited) > 10
    missing = [
        f"{name}: {page}, section {section}"
        for name, page, section in sorted(cited)
        if not re.search(rf"^#+ {re.escape(section)}\.? ", (ROOT / page).read_text(), re.MULTILINE)
    ]
    assert missing == []
