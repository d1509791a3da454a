"""Records of every kind that the explorer may be opened on, each made in a folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.records.long_record import record_of
from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.record.observations import Observation
from tests.support.lives import decide, half_empty
from tests.support.records import stored, whole_life
from tests.support.repository import ROOT
from tests.support.world import World
from tests.support.worlds.observe_mode import in_use, watching

HOSTILE = ("<img src=x onerror=alert(1)>", "</script><b>bold</b>", "a\u202e.yaml", "' OR 1=1 --")
"""Names of pods that a page could take for something else."""
_OLD = ROOT / "tests" / "records" / "0.1.0"


def demo(folder: Path) -> Path:
    place = folder / "demo.kerf"
    assert main(["demo", "--record", str(place)]) == 0
    return place


def observed(folder: Path) -> Path:
    world = watching()
    in_use(world)
    world.after(60_000)
    return stored(folder / "observed.kerf", world.store)


def pseudonymised(_: Path) -> Path:
    return _OLD / "pseudonymised.kerfb"


def partial(_: Path) -> Path:
    """One that `kerf import` made: a golden folder."""
    return ROOT / "tests" / "golden" / "imported-karpenter-log"


def drifted(_: Path) -> Path:
    """A node drifts, and another one is made before it goes."""
    return ROOT / "tests" / "records" / "unreleased" / "golden-drifted-replacement-first.kerfb"


def cut(_: Path) -> Path:
    return _OLD / "cut.kerfb"


def day(folder: Path) -> Path:
    """A short one of the long records that are measured: 20 nodes, 8,000 entries, most of them of Jobs' pods."""
    return record_of(8_000, folder).rename(folder / "day.kerf")


def life(folder: Path) -> Path:
    """A node's whole life, short and quick to make."""
    return stored(folder / "life.kerf", whole_life().store)


def corrupt(folder: Path) -> Path:
    """An entry in the middle has been changed."""
    place = stored(folder / "corrupt.kerf", whole_life().store)
    with closing(sqlite3.connect(place)) as database:
        (last,) = database.execute("SELECT max(rowid) FROM stored_events").fetchone()
        database.execute("UPDATE stored_events SET state = x'00' WHERE rowid = ?", (last // 2,))
        database.commit()
    return place


def empty(folder: Path) -> Path:
    place = folder / "empty.kerf"
    SQLiteStore(place, "create").close()
    return place


def hostile(folder: Path) -> Path:
    """Pods with names that a page could take for something else; some wait, some run."""
    world = World()
    world.prepare()
    world.pending(*HOSTILE)
    world.pending("far-too-large", memory=1 << 40)
    world.after(1_000)
    ((ref, order), *_) = world.launches()
    world.answer_launch(ref, order)
    world.node("n1", "aws:///us-west-2a/i-1", registered="true", initialized="true")
    world.answer_all()
    world.bind(HOSTILE[0], "n1")
    return stored(folder / "hostile.kerf", world.store)


def budget(folder: Path) -> Path:
    """A node stays for a PodDisruptionBudget that is called like one of its pods."""
    world = half_empty()
    world.see(Observation(PodDisruptionBudget("b", "default", "d", Selector())))
    decide(world)
    return stored(folder / "budget.kerf", world.store)


RECORDS: dict[str, Callable[[Path], Path]] = {
    maker.__name__: maker
    for maker in (demo, day, life, observed, pseudonymised, partial, drifted, cut, corrupt, empty, hostile, budget)
}
