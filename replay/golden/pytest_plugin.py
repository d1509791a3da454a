"""The pytest plugin that decides golden records again, and holds them against policies, as tests.

A case is a folder below a `golden/` folder with `record.jsonl`, `decisions.jsonl`, `blobs.jsonl`, and a `README.md`
that says what it shows. It passes when today's engine decides all of it as recorded. `pytest --golden-update` writes
today's decisions into it.

A `policy.yaml` in the case, or in a folder above it up to `golden/`, adds a test for each assertion (docs/check.md). A
folder with a policy of its own and manifests, but without a record, is simulated and held against it.

The plugin does not know how a folder or a policy is read: the composition root (`kerf.adapters.cli.golden`) gives it
that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kerf.engine.errors import KerfError

if TYPE_CHECKING:  # pytest loads this module wherever kerf is installed: the engine is imported when a case is found
    from kerf.engine.record.store import Store
    from kerf.replay.golden.rerun import Rerun
    from kerf.replay.verify.report import Divergence, Report

GOLDEN, MANIFESTS = "golden", (".yaml", ".yml", ".json")
OPTION = "--golden-update"
RECORD, DECISIONS, README, POLICY = "record.jsonl", "decisions.jsonl", "README.md", "policy.yaml"
VERSION_RULES = "docs/CONTRIBUTING.md of kerf"
"""Where it is written when a decider's VERSION is raised."""
_MOVES = re.compile(r"(launch|remove|propose to remove|evict) ")
"""How lines begin that say which nodes come or go (`decision_lines`)."""
_VARYING = re.compile(r"\d\S*|\S+-[a-z0-9]{5}\b")
"""What differs between lines that say the same of other times, amounts and nodes: numbers, and generated names."""
_GUARDS = re.compile(r"It (?:guards|shows): (.*)")
"""How a README says what its case guards."""
_PROPERTY = "kerf-golden"
_MAX_DIVERGENCES_SHOWN = 5
"""At most this many divergences of a failed case are shown."""
_MAX_PLACES_NAMED = 6
"""So many of the positions at which a divergence is met again are named."""

Open = Callable[[Path], "Store"]
Held = list[tuple[str, str]]
"""The name of each assertion of a policy, and what to show if it fails ("" if it holds)."""
Hold = Callable[[Path, Path], Held]
"""Holds what is in a folder against a policy."""
Names = Callable[[Path], list[str]]
"""Gives the names of a policy's assertions."""
Write = Callable[["Rerun", Path], list[str]]
"""Writes the record into the folder and gives the names of the files that changed."""


class GoldenFailure(Exception):
    """A case that is not decided as recorded, with the text to show."""


class GoldenPlugin:
    """The hooks that pytest calls."""

    def __init__(self, open_folder: Open, write_folder: Write, names: Names, hold: Hold) -> None:
        self.open_folder = open_folder
        self.write_folder = write_folder
        self.names = names
        self.hold = hold
        self._rewritten: list[str] = []

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        group = parser.getgroup("kerf", "kerf golden records")
        group.addoption(OPTION, action="store_true", help="write what kerf decides now into the golden records")

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if GOLDEN in path.parent.parts and ((path / RECORD).is_file() or _is_simulated(path)):
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
    """One folder with one record, or with manifests to simulate."""

    def __init__(self, *, plugin: GoldenPlugin, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.plugin = plugin
        self._held: Held | None = None
        self.policy = next((file for file in _policies(self.path) if file.is_file()), None)

    def collect(self) -> Iterator[pytest.Item]:
        if (self.path / RECORD).is_file():
            item: pytest.Item = GoldenItem.from_parent(self, name="decisions", plugin=self.plugin)
            yield item
        for number, name in enumerate(self._names()):
            assertion: pytest.Item = PolicyItem.from_parent(self, name=f"policy: {name}", case=self, number=number)
            yield assertion

    def _names(self) -> list[str]:
        try:
            return self.plugin.names(self.policy) if self.policy is not None else []
        except KerfError as error:
            raise self.CollectError(str(error)) from error

    def held(self, number: int) -> str:
        """Say what is to be shown of an assertion, "" if it holds. The record is folded once for all of them."""
        if self._held is None:
            assert self.policy is not None
            self._held = self.plugin.hold(self.policy, self.path)
        return self._held[number][1]


class PolicyItem(pytest.Item):
    """The test of one assertion over a case."""

    def __init__(self, *, case: GoldenCase, number: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._case, self._number = case, number

    def runtest(self) -> None:
        shown = self._case.held(self._number)
        if shown:
            raise GoldenFailure(shown)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GoldenFailure | KerfError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"golden record {self.path.name}, {self.name}"


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

        report = verify(self.plugin.open_folder(self.path))
        if report.exit_code:
            raise GoldenFailure(failure(report, guarded_by(self.path / README)))

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


def _is_simulated(path: Path) -> bool:
    """Whether a folder has a policy and manifests of its own."""
    return (path / POLICY).is_file() and any(file.suffix in MANIFESTS for file in path.iterdir() if file.name != POLICY)


def _policies(path: Path) -> Iterator[Path]:
    """Give where a policy for a case may be, the nearest first: up to the folder `golden`."""
    for folder in (path, *path.parents):
        yield folder / POLICY
        if folder.name == GOLDEN:
            return


def _most_telling(divergences: Sequence[Divergence]) -> list[list[Divergence]]:
    """Return the first divergence, and of the others those first by which nodes come or go; in their order. Divergences
    that say the same but for names and numbers stand together."""
    alike: dict[object, list[Divergence]] = {}
    for found in divergences:
        alike.setdefault(_likeness(found), []).append(found)
    groups = list(alike.values())
    first, others = groups[:1], groups[1:]
    moving = sorted(others, key=lambda group: not any(map(_MOVES.match, _changed_lines(group[0]))))
    chosen = [*first, *moving[: _MAX_DIVERGENCES_SHOWN - 1]]
    return sorted(chosen, key=lambda group: group[0].position)


def _changed_lines(found: Divergence) -> set[str]:
    return {*found.outcome_was} ^ {*found.outcome_now}


def _likeness(found: Divergence) -> object:
    """What two divergences have in common that say the same of several times, or of several nodes."""
    words = (found.outcome_was, found.outcome_now) if _changed_lines(found) else (found.was, found.now)
    return found.kind, found.type, found.decider, _VARYING.sub("", f"{found.path} {words}")


def guarded_by(readme: Path) -> str:
    """Return what a case guards: what its README says after "It guards:" or "It shows:", or all of it but the title."""
    paragraphs = [" ".join(part.split()) for part in readme.read_text(encoding="utf-8").split("\n\n")]
    text = [part for part in paragraphs if part and not part.startswith("#")]
    said = [found[1] for part in text if (found := _GUARDS.search(part))]
    return " ".join(said or text)


def failure(report: Report, guarded: str = "") -> str:
    """Say in words what is decided otherwise, what the case guards, and what to do."""
    from kerf.replay.verify.report_lines import divergence_lines, obstacle_lines, verdict

    first = report.divergences[0] if report.divergences else None
    by = f" by {first.decider}" if first is not None and first.decider else ""
    lines = [verdict(report) + (f", the first at position {first.position}{by}" if first is not None else "")]
    shown = _most_telling(report.divergences)
    for group in shown:
        title, *rest = divergence_lines(group[0])
        lines += [title, *(f"  {line}" for line in rest), *_repeated(group[1:])]
    hidden = report.diverged - sum(map(len, shown))
    if hidden > 0:
        lines.append(f"… and {hidden} more")
    lines += obstacle_lines(report)
    lines += [f"What this case guards: {guarded}"] if guarded else []
    lines.append(
        f"If this is meant, raise {_version_to_raise(report)}, run pytest {OPTION}, and look at the difference."
    )
    lines.append(f"When a VERSION is raised, and what is declared then: {VERSION_RULES}")
    return "\n".join(lines)


def _repeated(group: Sequence[Divergence]) -> list[str]:
    """Say where else a divergence is met that was shown."""
    if not group:
        return []
    places = [str(found.position) for found in group[:_MAX_PLACES_NAMED]]
    more = len(group) - len(places)
    return [f"  likewise at position {', '.join(places)}{f' and {more} more' if more else ''}"]


def _version_to_raise(report: Report) -> str:
    """Name the VERSION of what differs first, and where it stands: what differs later may follow from that."""
    from kerf.replay.verify.decide_again import DECIDERS, VERSIONS

    decider = report.divergences[0].decider if report.divergences else ""
    if decider not in DECIDERS:
        return "the decider's VERSION"
    file = DECIDERS[decider].__name__.removeprefix("kerf.").replace(".", "/") + ".py"
    return f"the VERSION of {decider} ({file}, now {VERSIONS[decider]})"
