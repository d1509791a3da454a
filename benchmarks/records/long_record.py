"""Long records of real decisions: a day of 500 nodes is a million entries. Other benchmarks measure on them.

    python -m benchmarks.records.long_record [--entries 1000000] [--folder ~/.cache/kerf/records]

A simulated cluster runs under the whole controller: web Deployments that follow the time of day, and Deployments for
batch work, whose nodes expire in groups. Most entries of a real day are the watch's. So Jobs come in waves besides:
each pod is seen bound, running, succeeded and gone. The simulation does not carry these pods out; what kerf decides
over them is real. The same number of entries gives the same record. It is made once and kept.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import kerf
from kerf import engine
from kerf.adapters.aws.catalogue.offerings import offline_catalogue
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.runtime.runtime import SNAPSHOT_EVERY, Runtime
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import beginning

FOLDER = Path("~/.cache/kerf/records").expanduser()
MILLION, NODES = 1_000_000, 500
MOST_PER_DAY = 5 * MILLION
DAY, MINUTE, SECOND = 86_400_000, 60_000, 1_000
BEGIN = 20 * MINUTE  # until the first nodes are there
WAVES_PER_DAY = 240
LIFE = (0, 2 * SECOND, 11 * SECOND, 14 * SECOND)
"""When a Job's pod is bound, runs, has succeeded, and is gone, from the begin of its wave (ms)."""
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
TYPES = ("m5.large", "m5.xlarge", "c5.xlarge", "r5.large")
JOB_SHAPE = PodShape(requests={"cpu": 10, "memory": 16 << 20}, grace=5)
WEBS, BATCHES = 5, 12


class Size(Struct, frozen=True):
    """How long a record is: `days` of `nodes` nodes, with `jobs` pods of Jobs a wave."""

    days: int
    nodes: int
    waves: int
    jobs: int


def size_of(entries: int) -> Size:
    """A day of 500 nodes for a million entries. Shorter records have fewer nodes, longer ones more Jobs and days."""
    days = math.ceil(entries / MOST_PER_DAY)
    share = min(1.0, entries / MILLION)
    waves = max(8, round(WAVES_PER_DAY * min(1.0, 4 * share)))
    return Size(days, max(20, round(NODES * share)), waves, round(entries * 0.9 / days / waves / len(LIFE)))


def record_of(entries: int, folder: Path = FOLDER, *, say: Any = None) -> Path:
    """The record of so many entries, which is made if it is not there. Another engine might not decide it as recorded,
    so each has its own."""
    path = folder / f"{entries}-{_engine()}.kerf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        store = SQLiteStore(unfinished, "create")
        try:
            _Life(store, entries, say).live()
        finally:
            store.close()
        unfinished.rename(path)
    _keep_snapshots(path)
    return path


def _engine() -> str:
    """A digest of the engine's code."""
    root = Path(engine.__file__).parent
    code = (path.read_bytes() for path in sorted(root.rglob("*.py")))
    return blake2b(b"".join(code), digest_size=4).hexdigest()


def _keep_snapshots(path: Path) -> None:
    """Folds the record again if its snapshots are of an older kerf, as a controller does that starts with it."""
    store = SQLiteStore(path, "write")
    try:
        if store.snapshot(None, snapshot.SCHEMA) is not None:
            return
        state, latest = beginning(store), 0
        for entry in store.scan():
            if entry.turn == entry.position and state.facts.position - latest >= SNAPSHOT_EVERY:
                latest = state.facts.position
                store.put_snapshot(latest, snapshot.SCHEMA, *snapshot.encode(state))
            evolve(state, entry)
    finally:
        store.close()


# ── the world ──────────────────────────────────────────────────────────────────────────────────────────────────────


def documents(size: Size) -> Iterator[dict[str, Any]]:
    yield {
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole",
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "day"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "day"}}],
        },
    }  # fmt: skip
    yield _pool("web", "WhenEmptyOrUnderutilized", "5m", "720h")
    yield _pool("batch", "WhenEmpty", "10m", "6h")
    web, batch = _replicas(size)
    for number in range(BATCHES):
        yield _deployment(f"batch-{number}", batch if number < 2 else 0, "batch")
    for number in range(WEBS):
        yield _deployment(f"web-{number}", web, "web")
    yield {
        "apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "days"},
        "spec": {"actions": list(_actions(size))},
    }  # fmt: skip


def _replicas(size: Size) -> tuple[int, int]:
    """Of each web Deployment, and of each batch Deployment. Six pods fill most nodes."""
    return max(1, round(size.nodes * 0.15 * 6 / WEBS)), max(1, round(size.nodes * 0.85 * 6 / BATCHES))


def _actions(size: Size) -> Iterator[dict[str, Any]]:
    """The web follows the time of day, each Deployment at minutes of its own. The batch Deployments begin one after the
    other, so that their nodes expire in groups."""
    web, batch = _replicas(size)
    for number in range(2, BATCHES):
        yield _scale(30 * number, f"batch-{number}", batch)
    for hour in range(24 * size.days):
        for number in range(WEBS):
            share = 1 + 0.3 * math.sin(2 * math.pi * (hour + number) / 24)
            yield _scale(60 * hour + 25 + 5 * number, f"web-{number}", round(web * share))


def _scale(minute: int, name: str, replicas: int) -> dict[str, Any]:
    return {"at": f"{minute}m", "action": "scale", "name": name, "replicas": replicas}


def _pool(name: str, policy: str, after: str, expire: str) -> dict[str, Any]:
    terms = {
        "karpenter.sh/capacity-type": ["on-demand"],
        "node.kubernetes.io/instance-type": list(TYPES),
        "topology.kubernetes.io/zone": list(ZONES),
    }
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in terms.items()]
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": node_class, "requirements": requirements, "expireAfter": expire}}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "template": {"metadata": {"labels": {"for": name}}, **template},
            "disruption": {"consolidationPolicy": policy, "consolidateAfter": after},
        },
    }  # fmt: skip


def _deployment(name: str, replicas: int, pool: str) -> dict[str, Any]:
    requests = {"cpu": "550m", "memory": "1Gi"}
    container = {"name": "main", "image": "x", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"nodeSelector": {"for": pool}, "containers": [container]},
            },
        },
    }  # fmt: skip


class _Life:
    """Lives through the days of a record."""

    def __init__(self, store: SQLiteStore, entries: int, say: Any) -> None:
        self._store, self._size, self._say = store, size_of(entries), say
        self._settings = Settings(effort=1, max_launch_types=4)
        catalogue = offline_catalogue(region="us-west-2", zones=ZONES, names=TYPES)
        self.simulation: Simulation = build_simulation(
            documents(self._size), catalogue=catalogue, settings=self._settings
        )
        self.jobs = _Jobs(self.simulation, self._size, self._nodes)
        self.driver = Driver(self.simulation, self._office, listener=self._after, steps=sys.maxsize)

    def live(self) -> None:
        self.driver.run(START + BEGIN + DAY * self._size.days)

    def _office(self, now: int) -> Runtime:
        return Runtime(
            self._store, holder="benchmark", settings=self._settings, record="a-long-record",
            engine=kerf.__version__, now=now,
        )  # fmt: skip

    def _nodes(self) -> list[str]:
        """The nodes on which Jobs' pods are bound."""
        runtime = self.driver.runtime
        assert runtime is not None
        claims = runtime.state.facts.claims.values()
        return [claim.node for claim in claims if claim.state == INITIALIZED and claim.node_pool == "batch"]

    def _after(self, now: int, observations: Sequence[Observation], intents: Sequence[Any]) -> None:
        if self._say is not None and self.driver.runtime is not None:
            self._say(now - START, self.driver.runtime.state.facts.position)


class _Jobs:
    """Adds the pods of Jobs to what the simulation observes, wave by wave."""

    def __init__(self, simulation: Simulation, size: Size, nodes: Any) -> None:
        self._clock, self._size, self._nodes = simulation.clock, size, nodes
        self._digest, _ = content(JOB_SHAPE)
        self._ready: list[Observation] = []
        self._observe = simulation.drain_observations
        simulation.drain_observations = self._drain  # type: ignore[method-assign]
        for wave in range(size.waves * size.days):
            begin = START + BEGIN + wave * DAY // size.waves
            simulation.clock.at(begin, "a wave of Jobs", partial(self._begin, wave))

    def _drain(self) -> list[Observation]:
        ready, self._ready = self._ready, []
        return self._observe() + ready

    def _begin(self, wave: int) -> None:
        """A wave begins: its pods are bound to nodes as kube-scheduler would spread them."""
        now, nodes = self._clock.now, self._nodes()
        owners = [Owner("batch/v1/Job", f"job-{wave}-{number}", f"job-{wave}-{number}") for number in range(4)]
        bound = [
            Pod(
                f"{wave:08x}-{number:08x}", "jobs", f"job-{wave}-{number % 4}-{number:05}", self._digest, created=now,
                node=nodes[number % len(nodes)], owner=owners[number % 4],
            )
            for number in range(self._size.jobs if nodes else 0)
        ]  # fmt: skip
        started = now + LIFE[1]
        running = [replace(pod, phase="Running", ready=True, started=started) for pod in bound]
        over = [replace(pod, phase="Succeeded", ready=False) for pod in running]
        blobs: dict[str, Struct] = {self._digest: JOB_SHAPE}
        self._tell([Observation(pod, blobs) for pod in bound])
        for after, pods in ((LIFE[1], running), (LIFE[2], over)):
            self._clock.after(after, "Jobs go on", partial(self._tell, [Observation(pod) for pod in pods]))
        gone = [Observation(ObjectGone("pod", pod.uid)) for pod in bound]
        self._clock.after(LIFE[3], "Jobs are gone", lambda: self._tell(gone))

    def _tell(self, observations: list[Observation]) -> None:
        self._ready += observations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=MILLION)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    told = 0.0

    def say(virtual: int, position: int) -> None:
        nonlocal told
        if time.process_time() - told > 10:
            told = time.process_time()
            print(f"{told:,.0f} s of CPU: {virtual / 3_600_000:.1f} h, {position:,} entries", file=sys.stderr)

    print(record_of(given.entries, given.folder, say=say))
    return 0


if __name__ == "__main__":
    sys.exit(main())
