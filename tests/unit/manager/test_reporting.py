"""What a controller says of its turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.events import EventRecorder, Happening
from kerf.adapters.manager import reporting as module
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.adapters.manager.reporting import LogOutput, TurnReports
from kerf.adapters.manager.settings import SettingError
from kerf.engine.record.observations import Observation
from kerf.engine.state.state import Facts, State
from tests.support.lives import asked, claim_of, half_empty, in_service
from tests.support.metrics import scraped, value
from tests.support.records import whole_life
from tests.support.world import World
from tests.support.worlds.drain import put


def reports_and_entries(log: LogOutput) -> tuple[TurnReports, list[Any]]:
    world = whole_life()
    state = State(Facts(), world.runtime.state.indexes.blobs)
    return TurnReports(state, log, Telemetry(provider="kwok", state_metrics=True)), world.store.entries


def test_lines_go_where_they_are_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines go where they are wanted (L-302)."""
    log = LogOutput("info", ["stdout", str(tmp_path / "log")])
    reports, entries = reports_and_entries(log)
    reports(entries)
    log.close()
    shown = capsys.readouterr().out
    assert [json.loads(line)["message"] for line in shown.splitlines()][2:4] == [
        "created nodeclaim",
        "launched nodeclaim",
    ]
    assert (tmp_path / "log").read_text() == shown
    with pytest.raises(SettingError, match="Give stdout, stderr or a file"):
        LogOutput("info", [str(tmp_path / "no" / "log")])


def test_only_errors_where_only_errors_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    """Only errors where only errors are wanted (L-302)."""
    reports, entries = reports_and_entries(LogOutput("error", ["stdout"]))
    reports(entries)
    assert not capsys.readouterr().out


def test_lg8_that_claims_become_consolidatable_is_told_at_debug_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """No entry says it: it follows from time."""
    world = in_service()
    claim = claim_of(world).name
    for level in ("info", "debug"):
        log = LogOutput(level, ["stdout"])
        log.know(world.runtime.state)
        log.consolidatable({claim: True, "gone": False}, world.now)
    marked, removed = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (marked["level"], marked["message"], marked["NodeClaim"]) == (
        "DEBUG",
        "marking consolidatable",
        {"name": claim},
    )
    assert (marked["Node"], marked["caller"]) == ({"name": "n1"}, f"record:{world.store.last_position()}")
    assert (removed["message"], removed["NodeClaim"]) == ("removing consolidatable", {"name": "gone"})


def test_a_defect_in_what_is_said_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The log fails, and the metrics behind it are counted."""
    counted: list[Any] = []

    class Broken(LogOutput):
        def __call__(self, entries: Any) -> None:
            raise KeyError("pods")

    class Counting(Telemetry):
        def __call__(self, entries: Any) -> None:
            counted.extend(entries)

    world = whole_life()
    state = State(Facts(), world.runtime.state.indexes.blobs)
    TurnReports(state, Broken("info", []), Counting(provider="kwok", state_metrics=True))(world.store.entries)
    assert "KERF605: KeyError: 'pods'" in capsys.readouterr().err
    assert counted == world.store.entries


def test_a_defect_in_what_is_said_of_consolidatable_claims_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as a full disk: whoever keeps their conditions goes on."""

    class Full(LogOutput):
        def consolidatable(self, turned: Any, now: int) -> None:
            raise OSError("No space left on device")

    reports, _ = reports_and_entries(Full("debug", []))
    reports.consolidatable({"default-1": True}, 0)
    assert "No space left on device" in capsys.readouterr().err


def test_a_restart_takes_up_the_latest_plan_for_metrics() -> None:
    """How many pods have no place is known before the next plan (L-402)."""
    world = World()
    world.prepare()
    world.pending("large", memory=1 << 50)
    world.after(1_000)
    telemetry = Telemetry(provider="kwok", state_metrics=True)
    telemetry.record_is_read(world.runtime)
    TurnReports(world.runtime.state, LogOutput("error", []), telemetry).recall(world.store)
    metrics = telemetry._metrics
    assert metrics is not None
    found = scraped(exposition(metrics.families()))
    assert value(found, "karpenter_scheduler_unschedulable_pods_count") == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_defect_does_not_end_what_tells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is over says nothing, and nobody looks at it before kerf ends."""
    monkeypatch.setattr(module, "RESTART_AFTER", 0.0)
    written: list[int] = []
    there = [1, 0, 2]

    async def work() -> None:
        while there:
            written.append(2 // there.pop())
        await asyncio.Event().wait()

    task = asyncio.create_task(module.restarted(work, "events"))
    async with asyncio.timeout(60):
        while len(written) < 2 and not task.done():
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert written == [1, 2]
    assert "KERF605: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.asyncio(loop_scope="function")
async def test_ev26_in_a_still_cluster_the_end_of_a_grace_is_told_within_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing happens, so there is no turn; the next look at what lasts is minutes away."""
    world = in_service()
    world.see(Observation(replace(world.pods["a"], started=world.now, do_not_disrupt="30s")))
    reports = TurnReports(world.runtime.state, LogOutput("error", []), Telemetry(provider="kwok", state_metrics=False))
    told: list[tuple[str, int]] = []
    passed = 0

    class Recorder(EventRecorder):
        def __init__(self) -> None:
            """It writes nothing."""

        def tell(self, happenings: Iterable[Happening]) -> None:
            told.extend((happening.reason, passed) for happening in happenings)

    async def sleep(seconds: float) -> None:
        nonlocal passed
        passed += round(seconds)
        if passed > module.LOOK_EVERY / 2:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await module.repeat_lasting(reports, Recorder(), asyncio.Lock(), lambda: world.now + 1_000 * passed)
    assert told == [("DoNotDisruptGracePeriodElapsed", 30)]


def test_ev9_m5_lg6_a_move_that_ends_with_the_turn_of_taking_office_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was proposed before the process began, and the state has it no more."""
    world = half_empty()
    world.after(10_000)
    put(world, "held", do_not_disrupt="true")
    world.now += 20_000
    world.runtime = world.start()
    telemetry = Telemetry(provider="kwok", state_metrics=False)
    telemetry.record_is_read(world.runtime)
    reports, told = TurnReports(world.runtime.state, LogOutput("debug", ["stdout"]), telemetry), list[str]()

    class Recorder(EventRecorder):
        def __init__(self) -> None:
            """It writes nothing."""

        def tell(self, happenings: Iterable[Happening]) -> None:
            told.extend(happening.reason for happening in happenings)

    reports.events = Recorder()
    reports.recall(world.store)
    reports(world.runtime.new_entries)
    assert told.count("ConsolidationRejected") == 2, "on the Node and on the NodeClaim"
    assert "disruption validation failed" in capsys.readouterr().out
    assert telemetry._metrics is not None
    found = scraped(exposition(telemetry._metrics.families()))
    assert value(found, "karpenter_voluntary_disruption_failed_validations_total", consolidation_type="single") == 1


def test_lg11_a_deadline_of_the_turn_of_taking_office_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A claim that expires while no process runs. The process after that one tells it no more."""
    world = in_service(expire_after=3_600_000, termination_grace_period=600_000)
    world.now += 3_600_000
    for times in (1, 0):
        world.runtime = world.start()
        telemetry = Telemetry(provider="kwok", state_metrics=False)
        telemetry.record_is_read(world.runtime)
        reports = TurnReports(world.runtime.state, LogOutput("info", ["stdout"]), telemetry)
        reports.recall(world.store)
        reports(world.runtime.new_entries)
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line["message"] for line in told].count("annotated nodeclaim") == times
        assert [line["message"] for line in told].count("disrupting node(s)") == times


def test_m13_l178_a_launch_that_times_out_with_the_turn_of_taking_office_has_its_nodepool(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The state that the process begins with has the claim no more."""
    world = asked(termination_grace_period=60_000)
    world.now += 300_000
    world.runtime = world.start()
    telemetry = Telemetry(provider="kwok", state_metrics=False)
    telemetry.record_is_read(world.runtime)
    reports = TurnReports(world.runtime.state, LogOutput("info", ["stdout"]), telemetry)
    reports.recall(world.store)
    reports(world.runtime.new_entries)
    assert telemetry._metrics is not None
    found = scraped(exposition(telemetry._metrics.families()))
    why = {"reason": "launch_timeout", "nodepool": "default", "termination_mode": "eventual"}
    assert value(found, "karpenter_nodeclaims_disrupted_total", **why) == 1
    assert value(found, "karpenter_nodeclaims_disrupted_total") == 1
    assert value(found, "karpenter_nodeclaims_terminated_total", nodepool="default") == 1
    assert value(found, "karpenter_nodeclaims_created_total") == 0, "an earlier process counted it"
    (line,) = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if line["level"] == "ERROR"]
    assert (line["message"], line["NodePool"]) == ("failed launching nodeclaim", {"name": "default"})
