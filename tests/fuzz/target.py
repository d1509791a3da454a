"""What a fuzz target is, and the files that targets work on."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kerf.adapters.cli.main import main
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs/examples"
KNOWN_ENDS = {0, 1, 2, 3, 4}


class Target(NamedTuple):
    """`check` is given examples of `given`. It asserts, or raises what is a defect: anything but a KerfError."""

    given: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    slow: bool = False
    """Whether an example takes more than some hundredths of a second."""


@cache
def folder() -> Path:
    """A folder for this process, and the file to decode in it."""
    path = Path(tempfile.mkdtemp(prefix="kerf-fuzz-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def in_file(content: bytes, name: str = "given") -> Path:
    path = folder() / name
    path.write_bytes(content)
    return path


def plain_json(value: Any) -> bytes:
    """The value as JSON; what JSON cannot hold is a text."""
    return json.dumps(value, default=str).encode("utf-8", "surrogatepass")


def command(*arguments: str) -> None:
    """Runs a command, which ends with a known code, and not because of a defect."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    said = out.getvalue() + err.getvalue()
    assert code in KNOWN_ENDS, f"{arguments}: {code}\n{said[-2000:]}"
    assert "KERF900" not in said, said[-2000:]
    assert "KERF605" not in said, said[-2000:]
