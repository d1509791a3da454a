"""Commands look for garbage less often than Python does."""

from __future__ import annotations

import gc
import subprocess
import sys

from kerf.adapters.cli.main import main
from tests.support.repository import ROOT


def test_a_command_looks_for_garbage_less_often_than_python_does() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        assert main(["--help"]) == 0
        assert gc.get_threshold()[0] > 10_000
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)


def test_a_command_does_not_look_for_garbage_as_it_ends() -> None:
    """The look comes after what `atexit` runs: nothing is left for it to look at."""
    script = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 10_000))
from kerf.adapters.cli.main import main
main(["--help"])
main(["--help"])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
