"""Rendering the charts, where helm is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.repository import ROOT

CHARTS = ROOT / "deploy" / "charts"
CONDITION = "needs helm: run `make helm`, or have helm on the PATH"


def helm() -> str:
    """Its path. Skips the test where there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kerf" / "bin" / "helm"
    found = shutil.which("helm") or (str(cache) if os.access(cache, os.X_OK) else None)
    if found is None:
        pytest.skip(CONDITION)
    return found


def rendered(*values: str, chart: str = "kerf", namespace: str = "kerf") -> list[dict[str, Any]]:
    """The documents of a release named kerf, with values as `--set` takes them; of KWOK unless they say."""
    given = ("provider=kwok", *values) if chart == "kerf" else values
    flags = [flag for value in given for flag in ("--set", value)]
    command = [helm(), "template", "kerf", str(CHARTS / chart), "--namespace", namespace, "--kube-version", "1.36.0"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == kind]
