"""The reference's own end-to-end suites: test binaries built from its published Go module, asked for their specs one
by one. Nothing of the module enters the tree: sources stay in Go's module cache, binaries in kerf's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULE, VERSION = "sigs.k8s.io/karpenter", "v1.14.0"
KWOK, KWOK_VERSION = "sigs.k8s.io/kwok", "v0.8.0"
WITHIN = "40m"  # a spec; the longest ones wait eleven minutes for a replacement and two more for the rest


class CannotBuild(Exception):
    """What is missing, and what to do about it."""


@dataclass(frozen=True)
class Spec:
    """`text` is what `--ginkgo.focus` looks at, `file` where it stands in the suite."""

    text: str
    file: str


@dataclass(frozen=True)
class Outcome:
    """`state` as ginkgo says it: passed, failed, skipped, timedout, interrupted, panicked. `why` is of a failure."""

    spec: Spec
    state: str
    seconds: float
    why: str = ""


def download(module: str, version: str) -> Path:
    """A module's folder in Go's cache."""
    done = _go("mod", "download", "-json", f"{module}@{version}", cwd=Path("/"))
    found = json.loads(done.stdout or "{}")
    if "Dir" not in found:
        raise CannotBuild(
            f"{module}@{version} cannot be downloaded (is the Go module proxy reachable? go env GOPROXY): "
            f"{found.get('Error') or done.stderr}"
        )
    return Path(found["Dir"])


class Suite:
    """One of regression, performance and dra."""

    def __init__(self, name: str, version: str = VERSION) -> None:
        self.name, self.version = name, version
        self.binary = _cache(version) / f"{name}.test"

    def build(self) -> None:
        """Does nothing when it was built before. Raises CannotBuild."""
        _build(self.binary, self.version, ("test", "-c"), f"./test/suites/{self.name}")

    def specs(self, focus: str = "") -> list[Spec]:
        """In the suite's order; `focus` is a regular expression of Go's."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            self._run({}, report, "--ginkgo.dry-run", "--ginkgo.seed=1", f"--ginkgo.focus={focus}")
            return [_spec(spec) for spec in _of_report(report) if spec["State"] != "skipped"]

    def run(self, spec: Spec, kubeconfig: Path, folder: Path) -> Outcome:
        """What it printed is in `folder`/suite.log, its report in `folder`/report.json."""
        report = folder / "report.json"
        with (folder / "suite.log").open("wb") as log:
            self._run(
                {"KUBECONFIG": str(kubeconfig)},
                report,
                f"--ginkgo.focus={re.escape(spec.text)}$",
                f"--ginkgo.timeout={WITHIN}",
                "--ginkgo.v",
                log=log,
            )
        found = [own_spec for own_spec in _of_report(report) if own_spec["State"] != "skipped" or "Failure" in own_spec]
        if len(found) != 1:
            return Outcome(spec, "failed", 0.0, f"{len(found)} specs have this text: {folder / 'suite.log'}")
        failure = found[0].get("Failure") or {}
        where = failure.get("FailureNodeLocation", {}).get("LineNumber", "")
        why = f"{' '.join(str(failure.get('Message', '')).split())} (line {where})" if failure.get("Message") else ""
        return Outcome(spec, str(found[0]["State"]), found[0]["RunTime"] / 1e9, why)

    def _run(self, environment: dict[str, str], report: Path, *flags: str, log: Any = subprocess.DEVNULL) -> None:
        report.unlink(missing_ok=True)
        subprocess.run(
            [self.binary, f"--ginkgo.json-report={report}", *flags],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            cwd=report.parent, check=False,
        )  # fmt: skip


def device_driver(version: str) -> Path:
    """The module's driver of devices for KWOK's nodes, which the suite `dra` is about."""
    binary = _cache(version) / "dra-kwok-driver"
    _build(binary, version, ("build",), "./dra-kwok-driver")
    return binary


def _cache(version: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kerf" / "reference" / version


def _build(binary: Path, version: str, how: tuple[str, ...], package: str) -> None:
    if binary.exists():
        return
    module = download(MODULE, version)
    binary.parent.mkdir(parents=True, exist_ok=True)
    new = binary.with_suffix(f".{os.getpid()}")
    done = _go(*how, "-trimpath", "-o", str(new), package, cwd=module)
    if done.returncode:
        raise CannotBuild(f"{package} of {MODULE}@{version} cannot be built:\n{done.stderr}")
    new.replace(binary)


def _go(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    go = os.environ.get("GO") or "go"
    if shutil.which(go) is None:
        raise CannotBuild("no Go found: install Go 1.26 or newer, or name it with GO=/path/to/go")
    flags = {"GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0", "GOWORK": "off"}
    return subprocess.run(
        [go, *arguments], cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **flags}
    )


def _of_report(report: Path) -> list[dict[str, Any]]:
    """The specs of a report; none when the suite ended without one."""
    if not report.exists():
        return []
    suites = json.loads(report.read_text())
    return [
        spec_report
        for suite in suites
        for spec_report in suite["SpecReports"] or ()
        if spec_report["LeafNodeType"] == "It"
    ]


def _spec(reported: dict[str, Any]) -> Spec:
    texts = [*(reported["ContainerHierarchyTexts"] or ()), reported["LeafNodeText"]]
    return Spec(" ".join(texts), Path(reported["LeafNodeLocation"]["FileName"]).name)
