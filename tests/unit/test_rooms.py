"""The folder tree is a map: no package is crowded, and each package says what belongs there and what it may import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.repository import ROOT

MAX_MODULES = 15
"""A folder shows at most so many modules beside its subfolders; `__init__.py` does not count."""
HOUSES = ("engine", "adapters", "projections", "replay")
PAGE = ROOT / "adapters/web/static"
"""The explorer's page. Its scripts and style sheets count as modules do."""


def folders(*roots: str) -> list[str]:
    """Every folder below these that has a module in it, as a path from the repository's root."""
    modules = [path for root in roots for path in (ROOT / root).rglob("*.py")]
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in modules})


def modules(folder: str) -> list[str]:
    return sorted(path.name for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py")


def rooms_of_the_page() -> list[Path]:
    return [PAGE, *sorted(path for path in PAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def says_what_belongs_there(package: Path) -> bool:
    """Two lines at least, and a word about imports."""
    path = package / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.exists() else None
    return (
        text is not None and len([line for line in text.splitlines() if line.strip()]) >= 2 and "import" in text.lower()
    )


@pytest.mark.parametrize("folder", folders(*HOUSES, "tests", "benchmarks"))
def test_no_folder_is_crowded(folder: str) -> None:
    count = len(modules(folder))
    assert count <= MAX_MODULES, f"{folder} has {count}: give those that belong together a folder"


@pytest.mark.parametrize("folder", rooms_of_the_page(), ids=lambda folder: folder.name)
def test_no_folder_of_the_page_is_crowded(folder: Path) -> None:
    files = [path for path in folder.iterdir() if path.is_file() and path.name != "__init__.py"]
    assert 0 < len(files) <= MAX_MODULES


@pytest.mark.parametrize("folder", folders(*HOUSES))
def test_a_package_says_what_belongs_there_and_what_it_may_import(folder: str) -> None:
    assert says_what_belongs_there(ROOT / folder)


def test_every_folder_of_code_is_looked_at() -> None:
    """`folders` finds the houses and what is below them."""
    assert {*HOUSES, "tests/unit", "benchmarks", "engine/scheduling"} <= {*folders(*HOUSES, "tests", "benchmarks")}


@pytest.mark.parametrize("folder", folders("tests", "benchmarks"))
def test_helpers_live_in_tests_support(folder: str) -> None:
    """No test module lends its helpers to another, and those in tests/support lean on no test."""
    borrowed = [
        f"{path.name}: {node.module}"
        for path in (ROOT / folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    ]
    assert borrowed == []
