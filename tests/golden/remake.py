"""Simulates the scenes again and writes their records as golden cases: `make golden`.

For when a story itself goes another way than recorded, and `--golden-update` has no answers for it. A case's README
stays; that of a new one is the scene's first comment. Look at the difference as at any other change of code.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import yaml

from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.feature_gates import with_gates
from kerf.engine.model.kubernetes.devices import Device, ResourceSlice
from kerf.engine.model.settings import Settings
from kerf.engine.record.store import Store
from tests.support.simulation.run import Run, documents

HERE = Path(__file__).parent
WORKSHOP = ("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml", "workshop/inflate.yaml")
WITH_WORKSHOP, WITH_GPUS = "# with: workshop\n", "# with: gpus\n"
GPUS = ResourceSlice("", "gpu.example.com", "gpus", devices=tuple(Device(f"gpu-{n}") for n in range(4)))
_DIRECTIVES = ("# with:", "# gates:")
_GATES = re.compile(r"^# gates: (.*)$", re.MULTILINE)
WRITTEN = ("record.jsonl", "decisions.jsonl", "blobs.jsonl")


def simulate(scene: Path, store: Store) -> None:
    """Runs the controller on one scene, and records that in `store`."""
    text = scene.read_text()
    manifests = documents(*WORKSHOP) if WITH_WORKSHOP in text else []
    devices, gates = WITH_GPUS in text, _GATES.search(text)
    Run(
        [*manifests, *yaml.safe_load_all(text)],
        store=store,
        settings=with_gates(Settings(ignore_dra_requests=not devices), gates[1] if gates else ""),
        slices={"m5.xlarge": (GPUS,)} if devices else {},
    )


def remake(scene: Path) -> None:
    """One case, from one scene."""
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "scene.kerf", "create")
        simulate(scene, store)
        case = HERE / scene.stem
        for name in WRITTEN:
            (case / name).unlink(missing_ok=True)
        write_golden(store, case)
        store.close()
    readme, text = case / "README.md", scene.read_text()
    if not readme.exists():
        said = [line[2:] for line in text.splitlines() if line.startswith("# ") and not line.startswith(_DIRECTIVES)]
        readme.write_text("# " + said[0] + "\n\n" + "\n".join(said[1:]) + "\n")


if __name__ == "__main__":
    for path in sorted((HERE / "scenes").glob("*.yaml")):
        if len(sys.argv) < 2 or path.stem in sys.argv[1:]:
            remake(path)
