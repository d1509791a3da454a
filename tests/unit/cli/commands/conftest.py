"""The command line, from outside."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.cli.main import main


@pytest.fixture
def kerf(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command: its exit code, and what it printed on stdout and on stderr."""

    def run(*tokens: object) -> tuple[int, str, str]:
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        return code, out, err

    return run
