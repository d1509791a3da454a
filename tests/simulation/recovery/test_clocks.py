"""The whole controller on a machine whose clocks are wrong (ADR 9)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer, TimeSetBack
from kerf.engine.runtime.runtime import Runtime
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, Run, scale, workshop

MINUTE = 60_000
DAY = 24 * HOUR


def at(second: int, action: str, **fields: Any) -> dict[str, Any]:
    return {"at": f"{second}s", "action": action, **fields}


def expiring(*actions: dict[str, Any], after: str = "720h") -> list[Any]:
    """The workshop, whose nodes expire and are never consolidated."""
    documents = workshop(*actions)
    for document in documents:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"]["expireAfter"] = after
            document["spec"]["disruption"] = {"consolidateAfter": "Never"}
    return documents


def said(run: Run, kind: type) -> list[Any]:
    return [entry.payload for entry in run.store.scan() if isinstance(entry.payload, kind)]


def launched(run: Run) -> list[int]:
    """When instances were launched (ms since the start, by virtual time)."""
    return sorted(instance.launched - START for instance in run.simulation.cloud.instances.values())


def whys(run: Run) -> list[str]:
    return [entry.payload.why for entry in run.entries("claim.tainted")]


def sound(run: Run) -> bool:
    return verify(run.store).exit_code == 0 and run.runtime.state.facts.clocks_differ == 0


def test_a_step_of_31_days_takes_no_node_and_holds_no_pod_back() -> None:
    run = Run(
        expiring(
            scale("10s", 5),
            at(600, "clock-step", by="744h"),
            scale("1200s", 40),
            at(1800, "clock-step", by="-744h"),
        )
    )
    assert whys(run) == []
    assert [time for time in launched(run) if 1200_000 < time < 1205_000]
    assert [differ.jump for differ in said(run, ClocksDiffer)] == [31 * DAY, 0]
    assert len(said(run, ClocksAgree)) == 1
    assert said(run, TimeSetBack) == []
    assert sound(run)


def test_a_step_back_freezes_nothing() -> None:
    run = Run(expiring(scale("10s", 5), at(600, "clock-step", by="-24h"), scale("1200s", 40)))
    assert [time for time in launched(run) if 1200_000 < time < 1205_000]
    assert run.runtime.state.facts.clocks_differ
    assert verify(run.store).exit_code == 0


def test_a_node_that_expires_while_the_clocks_differ_goes_when_they_agree() -> None:
    run = Run(
        expiring(scale("10s", 5), at(600, "clock-step", by="24h"), at(2400, "clock-step"), after="20m"),
        until=50 * MINUTE,
    )
    tainted = [entry.at - START for entry in run.entries("claim.tainted") if entry.payload.why == "expired"]
    assert tainted
    assert 2400_000 < tainted[0] < 2410_000
    assert sound(run)


def test_a_machine_that_slept_does_what_was_due() -> None:
    run = Run(expiring(scale("10s", 5), at(600, "suspend", **{"for": "30m"}), scale("900s", 40), after="20m"))
    assert [differ.jump for differ in said(run, ClocksDiffer)] == [30 * MINUTE]
    assert [agree.moved for agree in said(run, ClocksAgree)] == [30 * MINUTE]
    assert [time for time in launched(run) if 2400_000 < time < 2405_000]
    assert "expired" in whys(run)
    assert sound(run)


def test_a_clock_that_drifts_is_doubted_and_right_when_it_is_set() -> None:
    run = Run(expiring(scale("10s", 5), at(300, "clock-drift", by="5m", **{"for": "20m"}), at(2400, "clock-step")))
    assert said(run, ClocksDiffer)
    assert abs(run.simulation.host.now - run.simulation.clock.now) < 3_000
    assert sound(run)


@pytest.mark.parametrize("wrong", [DAY, -DAY])
def test_two_replicas_that_disagree_have_one_time_in_the_record(wrong: int) -> None:
    faults = FaultPlan(rivals=(10 * MINUTE, 20 * MINUTE), host_clocks=(0, wrong))
    run = Run(expiring(scale("10s", 5), scale("900s", 40), after="45m"), faults=faults, until=40 * MINUTE)
    assert run.driver.offices == 3
    assert whys(run) == []
    assert [time for time in launched(run) if 900_000 < time < 905_000]
    times = [entry.at for entry in run.store.scan()]
    assert times == sorted(times)
    assert times[-1] <= run.simulation.clock.now
    assert sound(run)


class WasAhead(Run):
    """After a death an older kerf took office on a machine whose clock was a day ahead, which believed it."""

    def _office(self, now: int) -> Runtime:
        if self.driver.offices == 2:
            Runtime(self.store, holder="old", settings=self.settings, record="", engine="old", now=now + DAY)
        return super()._office(now)


def test_a_record_that_is_ahead_recovers_in_a_turn() -> None:
    faults = FaultPlan(kills=(Kill(3, KillPoint.AFTER_EFFECT),))
    run = WasAhead(expiring(scale("10s", 5), scale("900s", 40)), faults=faults)
    (back,) = said(run, TimeSetBack)
    assert back.was > START + DAY
    assert [time for time in launched(run) if 900_000 < time < 905_000]
    assert whys(run) == []
    assert sound(run)


def test_a_world_whose_clocks_are_right_records_nothing_of_them() -> None:
    run = Run(expiring(scale("10s", 5)))
    assert said(run, ClocksDiffer) + said(run, ClocksAgree) == []


def test_another_machine_takes_over_while_one_sleeps() -> None:
    faults = replace(FaultPlan(), rivals=(15 * MINUTE,))
    run = Run(expiring(scale("10s", 5), at(600, "suspend", **{"for": "40m"}), scale("1200s", 40)), faults=faults)
    assert [time for time in launched(run) if 1200_000 < time < 1205_000]
    assert sound(run)


def test_the_virtual_api_server_tells_whole_seconds() -> None:
    run = Run(expiring(), until=1_234)
    simulation: Simulation = run.simulation
    assert simulation.cluster.api.date == START + 1_000
