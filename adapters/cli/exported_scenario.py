"""Writing a moment of a record as a scenario, for `kerf plan` and `kerf disrupt`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kerf.adapters.cli.render.lines import print_error, print_text
from kerf.adapters.store.files.private_files import write_whole
from kerf.replay.what_if.export.scenario import Exported


def write_scenario(exported: Exported, file: Path) -> None:
    """Write a scenario to a new file, and say what it lacks. Raises StoreError if the file is there already."""
    write_whole(file, msgspec.json.format(msgspec.json.encode(exported.scenario), indent=1), b"\n")
    for what in exported.left_out:
        print_error(f"Note: the scenario leaves out {what}")
    print_text(f"Written to {file}. Decide it with kerf plan {file} or kerf disrupt {file}")
