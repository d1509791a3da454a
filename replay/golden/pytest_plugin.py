"""The pytest plugin that decides golden records again, as tests.

A case is a folder below a `golden/` folder with `record.jsonl`, `decisions.jsonl`, `blobs.jsonl`, and a `README.md`
that says what it shows. It passes when today's engine decides all of it as recorded. `pytest --golden-update` writes
today's decisions into it.

The plugin does not know how a golden folder is read: the composition root (`kerf.adapters.cli.golden`) gives it that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kerf.engine.errors import KerfError

if TYPE_CHECKING:  # pytest loads this module wherever kerf is installed: the engine is imported when a case is found
    from kerf.engine.record.store import Store
    from kerf.replay.golden.rerun import Rerun
    from kerf.replay.verify.report import Report

OPTION = "--golden-update"
RECORD, DECISIONS, README = "record.jsonl", "decisions.jsonl", "README.md"
VERSION_RULES = "docs/CONTRIBUTING.md of kerf"
"""Where it is written when a decider's VERSION is raised."""
_PROPERTY = "kerf-golden"
_MAX_DIVERGENCES_SHOWN = 5
"""At most this many divergences of a failed case are shown."""

Open = Callable[[Path], "Store"]
Write = Callable[["Rerun", Path], list[str]]
"""Writes the record into the folder and gives the names of the files that changed."""


class GoldenFailure(Exception):
    """A case that is not decided as recorded, with the text to show."""


class GoldenPlugin:
    """The hooks that pytest calls."""

    def __init__(self, open_folder: Open, write_folder: Write) -> None:
        self.open_folder = open_folder
        self.write_folder = write_folder
        self._rewritten: list[str] = []

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        group = parser.getgroup("kerf", "kerf golden records")
        group.addoption(OPTION, action="store_true", help="write what kerf decides now into the golden records")

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if "golden" in path.parent.parts and (path / RECORD).is_file():
            case: pytest.Collector = GoldenCase.from_parent(parent, path=path, plugin=self)
            return case
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":  # a case was run here, or by a worker of pytest-xdist
            self._rewritten += [str(text) for name, text in report.user_properties if name == _PROPERTY]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._rewritten:
            terminalreporter.section("golden records")
        for line in self._rewritten:
            terminalreporter.line(line)


class GoldenCase(pytest.Directory):
    """One folder with one record."""

    def __init__(self, *, plugin: GoldenPlugin, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.plugin = plugin

    def collect(self) -> Iterator[pytest.Item]:
        item: pytest.Item = GoldenItem.from_parent(self, name="decisions", plugin=self.plugin)
        yield item


class GoldenItem(pytest.Item):
    """The test of one record: decide it again."""

    def __init__(self, *, plugin: GoldenPlugin, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.plugin = plugin

    def runtest(self) -> None:
        missing = [name for name in (DECISIONS, README) if not (self.path / name).is_file()]
        if missing:
            raise GoldenFailure(f"the case has no {' and no '.join(missing)}: every golden record needs both")
        if self.config.getoption(OPTION):
            self._update()
            return
        from kerf.replay.verify.verify import verify

        report = verify(self.plugin.open_folder(self.path), keep=_MAX_DIVERGENCES_SHOWN)
        if report.exit_code:
            raise GoldenFailure(failure(report))

    def _update(self) -> None:
        from kerf.projections.prose.amounts import count
        from kerf.replay.golden.rerun import Rerun
        from kerf.replay.verify.verify import verify

        diverged = verify(self.plugin.open_folder(self.path), keep=0).diverged
        rerun = Rerun(self.plugin.open_folder(self.path))
        names = self.plugin.write_folder(rerun, self.path)
        lines = [f"rewritten: {self.path / name}" for name in names]
        if diverged:
            lines.append(
                f"{self.path}: {count(diverged, 'turn')} decided otherwise by deciders whose VERSION is the recorded "
                f"one. If you changed a decider on purpose, raise its VERSION and update again ({VERSION_RULES})"
            )
        if rerun.dropped:
            lines.append(
                f"{self.path}: {len(rerun.dropped)} recorded answers belong to nothing any more (the first stood at "
                f"position {rerun.dropped[0]}): simulate the case again"
            )
        self.user_properties += [(_PROPERTY, line) for line in lines]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GoldenFailure | KerfError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"golden record {self.path.name}"


def failure(report: Report) -> str:
    """Say in words what is decided otherwise, and what to do."""
    from kerf.replay.verify.report_lines import divergence_lines, obstacle_lines, verdict

    lines = [verdict(report)]
    for found in report.divergences:
        title, *rest = divergence_lines(found)
        lines += [title, *(f"  {line}" for line in rest)]
    hidden = report.diverged - len(report.divergences)
    if hidden > 0:
        lines.append(f"… and {hidden} more")
    lines += obstacle_lines(report)
    lines.append(f"If this is meant, raise the decider's VERSION and run pytest {OPTION}, and look at the difference.")
    lines.append(f"When a VERSION is raised: {VERSION_RULES}")
    return "\n".join(lines)
