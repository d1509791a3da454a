"""Instances that carry the cluster's tags and belong to no claim, in the whole controller (L-238, A-365)."""

from __future__ import annotations

from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import LIST_AFTER, Driver
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.runtime.runtime import Runtime
from tests.support.memory import MemoryStore
from tests.support.records import re_derived
from tests.support.simulation.run import ZONES, catalogue, scale, workshop
from tests.support.world import NODE_CLASS

MINUTE = 60_000


def started(simulation: Simulation, claim: str) -> str:
    """An instance that somebody started with this cluster's tags."""
    order = LaunchInstance(claim, "default", NODE_CLASS, "on-demand", (Offer("m5.large", ZONES[0], 0.096),), {})
    return simulation.cloud.launch(order, intent="0.0", token=f"token of {claim}").instance


def run(simulation: Simulation, until: int) -> MemoryStore:
    store = MemoryStore()

    def office(now: int) -> Runtime:
        return Runtime(store, holder="test", settings=Settings(), record="garbage", engine="test", now=now)

    Driver(simulation, office).run(START + until)
    return store


def test_a_leaked_instance_and_its_node_go_and_nothing_else() -> None:
    given = build_simulation(workshop(scale("1s", 5)), catalogue=catalogue(), seed=1)
    leaked = started(given, "nobody")
    store = run(given, 20 * MINUTE)
    assert given.cloud.status(leaked) == "gone"
    assert len(given.cloud.alive()) == 1, "what the pods run on"
    assert len(given.cluster.api.nodes) == 1
    listed = [e for e in store.entries if e.type == "instance.listed"]
    assert [e.at for e in listed] == [START + LIST_AFTER], "it is listed once: later ones say nothing new"
    assert re_derived(store) == store.entries
