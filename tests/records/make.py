"""Makes the records of one version of kerf: `python -m tests.records.make` writes tests/records/VERSION.

VERSION is that of the kerf that runs. Nothing is ever overwritten: the script refuses a folder that exists.
`python -m tests.records.make unreleased` writes small records of the decision versions that no release has yet, and
overwrites them: until a release they may still change.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import kerf
from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.postgres.store import PostgresStore
from kerf.adapters.store.retention.policy import Retention, due
from kerf.adapters.store.retention.prune import cut_now
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.decisions import Decision
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from tests.dst.play import Play
from tests.dst.scenario import scenario
from tests.golden.remake import HERE as GOLDEN
from tests.golden.remake import simulate
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.servers.postgres import running
from tests.support.simulation.chaos import chaos
from tests.support.simulation.run import Run, scale, workshop

HERE = Path(__file__).parent
DIGESTS = "digests.json"
UNRELEASED = "unreleased"
UNRELEASED_SCENES = ("workshop-scale-up-and-down", "spot-interruption", "static-pool", "drifted-replacement-first")


def make(folder: Path) -> None:
    """Writes every record and the digests. Raises FileExistsError if the folder is there already."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        for scene in sorted((GOLDEN / "scenes").glob("*.yaml")):
            store = SQLiteStore(scratch / f"{scene.stem}.kerf", "create")
            simulate(scene, store)
            export_bundle(store, folder / f"golden-{scene.stem}.kerfb")
            store.close()
        export_memory(play(6), scratch / "random.kerf", folder / "random.kerfb")
        export_memory(play(100, forgets=True), scratch / "adopted.kerf", folder / "adopted.kerfb")
        export_memory(play(0), scratch / "names.kerf", folder / "pseudonymised.kerfb", pseudonymise=True)
        export_cut(chaos(100).memory, scratch / "cut.kerf", folder / "cut.kerfb")
    with running() as server:
        export_from_postgres(f"{server.url}?schema=record", folder / "postgresql.kerfb")
    found = {path.name: digests(path) for path in sorted(folder.glob("*.kerfb"))}
    (folder / DIGESTS).write_text(json.dumps(found, indent=2) + "\n")


def make_unreleased(folder: Path) -> None:
    """Writes a few small records that use most deciders, and their digests, in place of those that are there."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        for name in UNRELEASED_SCENES:
            store = SQLiteStore(scratch / f"{name}.kerf", "create")
            simulate(GOLDEN / "scenes" / f"{name}.yaml", store)
            _replaced(store, folder / f"golden-{name}.kerfb")
        killed = FaultPlan(kills=(Kill(1, KillPoint.AFTER_EFFECT),), restart=3_000)
        run = Run(workshop(scale("1m", 2)), until=600_000, faults=killed, forgets=True)
        _replaced(SQLiteStore(stored(scratch / "adopted.kerf", run.memory), "read"), folder / "adopted.kerfb")
    found = {path.name: digests(path) for path in sorted(folder.glob("*.kerfb"))}
    (folder / DIGESTS).write_text(json.dumps(found, indent=2) + "\n")


def _replaced(store: SQLiteStore, target: Path) -> None:
    target.unlink(missing_ok=True)
    export_bundle(store, target)
    store.close()


def play(seed: int, *, forgets: bool | None = None) -> MemoryStore:
    """The record of a random cluster under faults (tests/dst). `forgets`: each death of a process loses the record, and
    this is the last one; drawn by the seed unless given."""
    return Play(scenario(seed, forgets=forgets)).memory


def export_memory(record: MemoryStore, scratch: Path, target: Path, *, pseudonymise: bool = False) -> None:
    store = SQLiteStore(stored(scratch, record), "read")
    export_bundle(store, target, pseudonymise=pseudonymise, key=b"records")
    store.close()


def export_cut(record: MemoryStore, scratch: Path, target: Path) -> None:
    """As `kerf store prune --observations AGE` leaves it, with the age of the entry in the middle."""
    store = SQLiteStore(stored(scratch, record), "write")
    middle, now = record.entries[len(record.entries) // 2].at, record.entries[-1].at
    cut = due(store, Retention(observations=now - middle), now)
    assert cut is not None
    cut_now(store, cut)
    export_bundle(store, target)
    store.close()


def export_from_postgres(url: str, target: Path) -> None:
    """The controller itself writes into the database, restarts included."""
    store = PostgresStore(url, "create")
    chaos(102, store=store)
    export_bundle(store, target)
    store.close()


def digests(path: Path) -> dict[str, Any]:
    """What must stay of a record: the file's SHA-256, and of its end the position, the chain and the state's digest;
    `deciders` has the version and the number of the decisions that are decided again."""
    store = BundleStore(path)
    base, last = store.base(), store.last_position()
    return {
        "sha256": sha256(path.read_bytes()).hexdigest(),
        "first": store.first_position(),
        "base": base.digest if base is not None else "",
        "last": last,
        "chain": store.checkpoint(last).value.hex(),
        "state": snapshot.digest(load(store)),
        "deciders": deciders(store, after=base.position if base is not None else 0),
    }


def deciders(store: Store, after: int) -> dict[str, dict[str, int]]:
    decisions = [entry.payload for entry in store.scan(after) if isinstance(entry.payload, Decision)]
    counts = Counter((decision.decider, decision.version) for decision in decisions)
    return {name: {"version": version, "decisions": counts[name, version]} for name, version in sorted(counts)}


if __name__ == "__main__":
    make_unreleased(HERE / UNRELEASED) if sys.argv[1:] == [UNRELEASED] else make(HERE / kerf.__version__)
