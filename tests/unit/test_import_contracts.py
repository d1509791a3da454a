"""The engine stays pure, the houses keep their directions, and kerf never appears under a top-level name."""

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.support.repository import ROOT

HOUSES = ("engine", "adapters", "projections", "replay")
COMPOSITION_ROOTS = ("cli", "manager")

# Modules that reach a clock, chance, the environment, input or output. pyproject.toml lists them, for what
# the engine reaches by way of other modules; here each import is looked at where it is written.
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {contract["id"]: contract for contract in SETTINGS["tool"]["importlinter"]["contracts"]}
FORBIDDEN = frozenset(CONTRACTS["engine-pure"]["forbidden_modules"]) | {"importlib"}
CLOCKS_AND_CHANCE = frozenset(
    {
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.datetime.today",
        "datetime.date.today",
        "eventsourcing.domain.datetime_now_with_tzinfo",
        "eventsourcing.domain.create_utc_datetime_now",
        "eventsourcing.domain.uuid4",
    }
)
OUTSIDE_CALLS = frozenset({"__import__", "breakpoint", "exec", "eval", "input", "open", "print"})
SETS = frozenset({"set", "frozenset"})
KEEPS_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "next"})


class _Purity(ast.NodeVisitor):
    """Collects what a module of the engine must not do."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.names: dict[str, str] = {}
        self.faults: list[tuple[int, str]] = []

    def fault(self, node: ast.AST, what: str) -> None:
        self.faults.append((getattr(node, "lineno", 0), what))

    def imported(self, node: ast.AST, module: str) -> None:
        top = module.partition(".")[0]
        if top in FORBIDDEN:
            self.fault(node, f"imports {module}")
        elif top in HOUSES:
            self.fault(node, f"imports {module} as a top-level package: write kerf.{module}")
        elif top == "kerf" and module != "kerf" and not f"{module}.".startswith("kerf.engine."):
            self.fault(node, f"imports {module}")
        elif top == "eventsourcing":
            if module != "eventsourcing.domain":
                self.fault(node, f"imports {module}: of eventsourcing only eventsourcing.domain is allowed")
            elif not f"{self.module}.".startswith("kerf.engine.nodeclaim."):
                self.fault(node, f"imports {module} outside kerf.engine.nodeclaim")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imported(node, alias.name)
            top = alias.name.partition(".")[0]
            self.names[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            self.fault(node, "imports relatively")
            return
        module = node.module or ""
        if module in {"kerf", "eventsourcing"}:  # from kerf import adapters
            for alias in node.names:
                self.imported(node, f"{module}.{alias.name}")
        else:
            self.imported(node, module)
        for alias in node.names:
            self.names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def full_name(self, node: ast.AST) -> str:
        """The dotted name that an expression stands for, as far as the imports tell; "" for anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.full_name(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def visit_Name(self, node: ast.Name) -> None:
        self.clock_or_chance(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.clock_or_chance(node)
        self.generic_visit(node)

    def clock_or_chance(self, node: ast.Name | ast.Attribute) -> None:
        """Finds the use of a clock or of chance, called or only handed on."""
        if (name := self.full_name(node)) in CLOCKS_AND_CHANCE:
            self.fault(node, f"uses {name}")

    def visit_Call(self, node: ast.Call) -> None:
        name = self.full_name(node.func)
        if name in OUTSIDE_CALLS:
            self.fault(node, f"calls {name}")
        if name in KEEPS_ORDER and node.args:
            self.order(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
            self.order(node.args[0])
        self.generic_visit(node)

    def order(self, node: ast.expr) -> None:
        """Finds a set whose order would be seen."""
        if isinstance(node, ast.Set | ast.SetComp) or (
            isinstance(node, ast.Call) and self.full_name(node.func) in SETS
        ):
            self.fault(node, "goes through a set in its own order: sort it first")

    def visit_For(self, node: ast.For) -> None:
        self.order(node.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self.order(node.generators[0].iter)
        self.generic_visit(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.order(node.generators[0].iter)
        self.generic_visit(node)


def purity_faults(source: str, module: str = "kerf.engine.sample") -> list[tuple[int, str]]:
    """Each fault of a module of the engine, as its line and what is wrong."""
    visitor = _Purity(module)
    visitor.visit(ast.parse(source))
    return sorted(visitor.faults)


def python_files(house: str) -> Iterator[Path]:
    """The Python files of a house, in a fixed order."""
    return iter(sorted((ROOT / house).rglob("*.py")))


def module_name(path: Path) -> str:
    """The name by which a file of a house is imported."""
    parts = ("kerf", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_engine_is_pure() -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in python_files("engine")
        for line, what in purity_faults(path.read_text(encoding="utf-8"), module_name(path))
    ]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "import uuid as u",
        "from random import choice",
        "from pathlib import Path",
        "import importlib",
        "def f():\n    import socket",
        "if True:\n    import boto3",
        "import engine.model",
        "from engine import model",
        "import kerf.adapters.store",
        "from kerf import projections",
        "from kerf.replay import verify",
        "from . import model",
        "from ..model import pods",
        "import eventsourcing",
        "from eventsourcing.persistence import StoredEvent",
        "from eventsourcing.domain import Aggregate",
        "from eventsourcing import domain",
        "from datetime import datetime\nx = datetime.now()",
        "from datetime import datetime as d, UTC\nx = d.now(UTC)",
        "import datetime\nx = datetime.datetime.utcnow()",
        "import datetime as dt\nx = dt.date.today()",
        "from datetime import date\nf = date.today",
        "print(1)",
        "open('x')",
        "__import__('os')",
        "for x in {1, 2}:\n    pass",
        "for x in set(y):\n    pass",
        "for x in frozenset(y):\n    pass",
        "x = [a for a in {b for b in y}]",
        "x = {a: 1 for a in set(y)}",
        "x = list(set(y))",
        "x = ','.join({'a', 'b'})",
        "for i, x in enumerate(set(y)):\n    pass",
    ],
)
def test_each_impurity_is_found(source: str) -> None:
    assert purity_faults(source)


@pytest.mark.parametrize(
    "source",
    [
        "import datetime\nx = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)",
        "from datetime import datetime, timedelta\ndef f(now: datetime) -> datetime:\n    return now",
        "def f(now, time, os):\n    return now, time, os",
        "import msgspec\nfrom collections.abc import Mapping",
        "from kerf.engine.model import pods\nimport kerf.engine.record",
        "for x in sorted({1, 2}):\n    pass",
        "x = any(a for a in {1, 2})",
        "x = {a for a in {1, 2}}",
    ],
)
def test_what_is_pure_is_let_through(source: str) -> None:
    assert not purity_faults(source)


def test_eventsourcing_domain_belongs_to_the_nodeclaim_alone() -> None:
    source = "from eventsourcing.domain import Aggregate"
    assert not purity_faults(source, "kerf.engine.nodeclaim.aggregate")
    assert not purity_faults(source, "kerf.engine.nodeclaim")
    assert purity_faults(source, "kerf.engine.nodeclaims")
    for name in ("datetime_now_with_tzinfo", "create_utc_datetime_now", "uuid4"):
        assert purity_faults(f"from eventsourcing.domain import {name} as n\nn()", "kerf.engine.nodeclaim")


def test_every_folder_with_code_is_a_package() -> None:
    without = {
        str(path.parent.relative_to(ROOT))
        for house in HOUSES
        for path in python_files(house)
        if not (path.parent / "__init__.py").is_file()
    }
    assert not without, f"no __init__.py in {sorted(without)}"


def test_the_links_are_relative_and_lead_to_the_houses() -> None:
    for house in HOUSES:
        link = ROOT / "kerf" / house
        assert link.is_symlink(), f"{link} must be a link: see docs/adr/0001"
        assert link.readlink() == Path("..") / house


def test_no_house_is_imported_under_its_bare_name() -> None:
    modules = [module_name(path) for house in ("engine", "projections", "replay") for path in python_files(house)]
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[m for m in sys.modules if m.partition('.')[0] in {HOUSES!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def in_circles(imports: dict[str, set[str]]) -> set[str]:
    """The modules that import themselves by way of others, and those that import such ones."""
    left = {module: set(imported) for module, imported in imports.items()}
    while free := {module for module, imported in left.items() if not imported & left.keys()}:
        for module in free:
            del left[module]
    return set(left)


def test_no_files_import_one_another_in_a_circle() -> None:
    """Also for type checkers alone: who reads one file of a circle has to read them all."""
    graph = grimp.build_graph("kerf", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert in_circles({**imports, "a": {"b"}, "b": {"a"}, "c": {"d"}, "d": set()}) == {"a", "b"}
    assert sum(map(len, imports.values())) > 1_000
    assert in_circles(imports) == set()


IMPORTS_EVERYTHING = """\
import kerf.adapters.aws
import kerf.adapters.store
import kerf.projections
import kerf.replay
"""

# One breach of each contract in pyproject.toml: its name there, the file that breaks it, what that file says.
BREACHES = [
    ("engine imports no other house", "engine/breach_a.py", "import kerf.projections"),
    (
        "engine reaches no clock, randomness, environment, input or output",
        "engine/model/breach_b.py",
        "def f() -> None:\n    import uuid",
    ),
    (
        "the floors of engine import only what lies below them",
        "engine/state/breach_g.py",
        "def f() -> None:\n    from kerf.engine.scheduling import provision",
    ),
    ("projections import only engine", "projections/breach_c.py", "import kerf.replay"),
    ("replay imports only projections and engine", "replay/breach_d.py", "from kerf.adapters import store"),
    (
        "adapters do not know one another, except the composition roots",
        "adapters/aws/breach_e.py",
        "from kerf.adapters import simulation",
    ),
    (
        "adapters other than the composition roots import only engine",
        "adapters/store/breach_f.py",
        "import kerf.projections",
    ),
    (
        "the manager does not know the command line that starts it",
        "adapters/manager/breach_g.py",
        "from kerf.adapters.cli import main",
    ),
]


def copy_of_the_tree(to: Path) -> None:
    """Copies what the import linter reads, links as links."""
    for name in ("kerf", *HOUSES):
        shutil.copytree(
            ROOT / name,
            to / name,
            symlinks=True,
            ignore=lambda _, names: {n for n in names if n == "__pycache__"},
        )
    shutil.copy(ROOT / "pyproject.toml", to)


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Runs the import linter on a tree."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_import_linter_sees_the_houses_and_finds_each_breach(tmp_path: Path) -> None:
    copy_of_the_tree(tmp_path)
    for _, path, source in BREACHES:
        (tmp_path / path).write_text(source + "\n", encoding="utf-8")
    for root in COMPOSITION_ROOTS:
        (tmp_path / "adapters" / root / "allowed.py").write_text(IMPORTS_EVERYTHING, encoding="utf-8")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    for name, path, _ in BREACHES:
        module = "kerf." + path.removesuffix(".py").replace("/", ".")
        assert f"{name} BROKEN" in done.stdout, done.stdout + done.stderr
        assert f"{module} -> " in done.stdout, done.stdout
    for root in COMPOSITION_ROOTS:
        assert f"kerf.adapters.{root}.allowed -> " not in done.stdout


@pytest.mark.slow
def test_the_composition_roots_may_import_everything(tmp_path: Path) -> None:
    copy_of_the_tree(tmp_path)
    for root in COMPOSITION_ROOTS:
        for name in ("__init__.py", "allowed.py"):
            (tmp_path / "adapters" / root / name).write_text(IMPORTS_EVERYTHING, encoding="utf-8")
    done = lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
