"""Runs the whole controller in virtual time over a store, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.offerings import offline_catalogue
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.devices import ResourceSlice
from kerf.engine.model.labels import RESERVED
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Intent
from kerf.engine.record.observations import Observation
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime
from tests.support.memory import MemoryStore
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs" / "examples"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
HOUR = 3_600_000


def catalogue() -> Catalogue:
    names = ("c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "r5.large")
    return offline_catalogue(region="us-west-2", zones=ZONES, names=names)


def reserved(given: Catalogue, reservations: dict[str, tuple[str, str, int]]) -> Catalogue:
    """The catalogue with capacity reservations besides: id → (instance type, zone, instances). They cost next to
    nothing, as in A-209."""

    def offerings(kind: InstanceType) -> tuple[Offering, ...]:
        mine = [(name, zone, count) for name, (own, zone, count) in reservations.items() if own == kind.name]
        return kind.offerings + tuple(
            Offering(zone, RESERVED, 1e-8, reservation_id=name, reservation_type="default", reservation_capacity=count)
            for name, zone, count in mine
        )

    return replace(given, types=tuple(replace(kind, offerings=offerings(kind)) for kind in given.types))


def with_slices(given: Catalogue, slices: dict[str, tuple[ResourceSlice, ...]]) -> Catalogue:
    """The catalogue in which these types bring devices."""
    return replace(
        given,
        types=tuple(replace(instance_type, slices=slices.get(instance_type.name, ())) for instance_type in given.types),
    )


def documents(*paths: str) -> list[Any]:
    """The documents of examples, by their paths below docs/examples."""
    return [d for path in paths for d in yaml.safe_load_all((EXAMPLES / path).read_text()) if d]


def workshop(*actions: dict[str, Any], capacity_type: str = "on-demand") -> list[Any]:
    """The workshop's manifests and a Timeline of actions."""
    found = documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml", "workshop/inflate.yaml")
    for document in found:
        if document["kind"] == "NodePool":
            for requirement in document["spec"]["template"]["spec"]["requirements"]:
                if requirement["key"] == "karpenter.sh/capacity-type":
                    requirement["values"] = [capacity_type]
    timeline = {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Timeline",
        "metadata": {"name": "test"},
        "spec": {"actions": list(actions)},
    }
    return [*found, timeline]


def scale(at: str, replicas: int) -> dict[str, Any]:
    return {"at": at, "action": "scale", "namespace": "other", "name": "inflate", "replicas": replicas}


class Run:
    """One simulation, run: `simulation`, `driver` and `store` are left for the asserts."""

    def __init__(
        self,
        given: Iterable[Any],
        *,
        until: int = HOUR,
        seed: int = 1,
        faults: FaultPlan | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        timing: Timing | None = None,
        forgets: bool = False,
        reservations: dict[str, tuple[str, str, int]] | None = None,
        slices: dict[str, tuple[ResourceSlice, ...]] | None = None,
    ) -> None:
        """`forgets`: each new process begins a new record, as if the old one were lost. `reservations`: see
        `reserved`; `slices`: what types bring of devices."""
        self.seed = seed
        self.settings = settings if settings is not None else Settings()
        self.forgets = forgets
        self.records: list[MemoryStore] = []
        self.memory = MemoryStore()
        self.store: Store = store if store is not None else self.memory
        offered = with_slices(reserved(catalogue(), reservations or {}), slices or {})
        self.simulation: Simulation = build_simulation(
            given, catalogue=offered, seed=seed, faults=faults, settings=self.settings, timing=timing
        )
        self.driver = Driver(self.simulation, self._office, listener=self.after_turn)
        self.prepare(self.simulation)
        self.driver.run(START + until)

    def prepare(self, simulation: Simulation) -> None:
        """For those who want to look on: nothing has happened yet."""

    def after_turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        """For those who want to look on: a turn is over, and its intents are not carried out yet."""

    def _office(self, now: int) -> Runtime:
        record = f"seed-{self.seed}"
        if self.forgets:
            self.store = self.memory = MemoryStore()
            self.records.append(self.memory)
            record += f"-{len(self.records)}"
        return Runtime(
            self.store,
            holder="test",
            settings=self.settings,
            record=record,
            engine="test",
            now=now,
            clocks=self.simulation.host.differ,
        )

    @property
    def runtime(self) -> Runtime:
        assert isinstance(self.driver.runtime, Runtime)
        return self.driver.runtime

    def entries(self, kind: str = "") -> list[Any]:
        """The entries of one type, or all."""
        return [e for e in self.store.scan() if not kind or e.type == kind]

    def codes_without_place(self) -> set[str]:
        """The reasons that passes gave for pods without a place."""
        made = (entry.payload for entry in self.entries("decision.made"))
        results = (decision.result for decision in made if decision.decider == "provision")
        return {reason.code for result in results for group in result.unplaced for reason in group.reasons}
