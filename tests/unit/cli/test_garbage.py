"""Commands look for garbage less often than Python does."""

from __future__ import annotations

import gc

from kerf.adapters.cli.main import main


def test_a_command_looks_for_garbage_less_often_than_python_does() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        assert main(["--help"]) == 0
        assert gc.get_threshold()[0] > 10_000
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
