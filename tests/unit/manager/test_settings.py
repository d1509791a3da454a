"""Settings by flag and environment (L-287 to L-316)."""

from __future__ import annotations

import re

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.render.notes import print_gate_notes
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import NAMES, SettingError, read_settings
from kerf.adapters.store.retention.policy import DAY, Retention
from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings
from tests.support.repository import ROOT


def test_defaults_are_the_references() -> None:
    """The defaults of settings are Karpenter's (L-290 to L-315)."""
    found = read_settings(Flags(), {})
    assert found.engine == Settings(batch_enough=100)
    assert (found.engine.batch_max, found.engine.batch_idle) == (10_000, 1_000)
    assert (found.metrics_port, found.health_port, found.qps, found.burst) == (8080, 8081, 200, 300)
    assert (found.leader_election, found.lease_name) == (True, "karpenter-leader-election")
    assert (found.log_level, found.outputs, found.state_metrics) == ("info", ("stdout",), True)
    assert (found.aws.memory_overhead, found.aws.reserved_enis, found.aws.isolated_vpc) == (0.075, 0, False)


def test_a_flag_beats_the_environment_which_beats_the_default() -> None:
    """A flag beats the environment which beats the default (L-287)."""
    environment = {"METRICS_PORT": "9000", "BATCH_IDLE_DURATION": "1m30s", "HEALTH_PROBE_PORT": ""}
    found = read_settings(Flags(metrics_port="9100"), environment)
    assert (found.metrics_port, found.health_port, found.engine.batch_idle) == (9100, 8081, 90_000)


def test_l287_effort_and_the_stay_of_interrupted_pods_are_settings() -> None:
    found = read_settings(Flags(effort="0"), {"EFFORT": "7", "KEEP_UNTIL_REPLACED": "false"})
    assert (found.engine.effort, found.engine.keep_until_replaced) == (0, False)
    assert (Settings().effort, Settings().keep_until_replaced) == (100, True)


def test_l415_metrics_of_each_object_are_a_setting() -> None:
    assert not read_settings(Flags(), {}).condition_metrics_per_object
    assert read_settings(Flags(), {"CONDITION_METRICS_PER_OBJECT": "true"}).condition_metrics_per_object


def test_metrics_for_those_alone_who_may_read_them_are_a_setting() -> None:
    assert not read_settings(Flags(), {}).metrics_authorization
    assert read_settings(Flags(metrics_authorization="true"), {}).metrics_authorization


@pytest.mark.parametrize(("text", "seconds"), [("", 300.0), ("0s", 0.0), ("30s", 30.0), ("1h", 3600.0)])
def test_how_long_a_turn_may_take_is_a_setting(text: str, seconds: float) -> None:
    assert read_settings(Flags(), {"LONGEST_TURN": text}).longest_turn == seconds


@pytest.mark.parametrize("text", ["1s", "29s", "-5m", "soon"])
def test_a_limit_that_would_end_a_busy_kerf_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="KERF340"):
        read_settings(Flags(), {"LONGEST_TURN": text})


def test_gates_of_a_flag_replace_all_of_the_environments() -> None:
    """Gates of a flag replace all gates of the environment (L-288)."""
    found = read_settings(Flags(feature_gates="NodeOverlay=true,Unknown=true"), {"FEATURE_GATES": "NodeRepair=true"})
    assert (found.engine.node_overlays, found.engine.node_repair) == (True, False)


@pytest.mark.parametrize(("gates", "is_open"), [("", True), ("ReservedCapacity=false", False)])
def test_a15_reserved_capacity_is_on_unless_its_gate_is_closed(gates: str, is_open: bool) -> None:
    assert read_settings(Flags(), {"FEATURE_GATES": gates}).aws.reserved_capacity == is_open


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ("NodeRepairs=true", [("mistyped-gate", "NodeRepair")]),
        ("spotToSpot=true,StaticCapacity=true", [("mistyped-gate", "SpotToSpotConsolidation")]),
        ("Something=true", [("unknown-gate", None)]),
        ("Drift=true,ReservedCapacity=false", []),
    ],
)
def test_l288_a_gate_that_nobody_knows_is_told_with_a_near_one(gates: str, said: list[tuple[str, str | None]]) -> None:
    notes = read_settings(Flags(feature_gates=gates), {}).notes
    assert [(note.code, note.params.get("near")) for note in notes] == said


def test_l288_it_is_told_before_anything_begins(capsys: pytest.CaptureFixture[str]) -> None:
    print_gate_notes(read_settings(Flags(feature_gates="NodeRepairs=true"), {}).notes)
    told = capsys.readouterr().err
    assert told.startswith("KERF339: feature gate NodeRepairs: ")
    assert "NodeRepair?" in told


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_a_variable_may_have_any_of_gos_booleans(text: str) -> None:
    """L-287: a flag may not."""
    assert not read_settings(Flags(), {"DISABLE_LEADER_ELECTION": text}).leader_election
    if text != "true":
        with pytest.raises(SettingError, match="true or false"):
            read_settings(Flags(disable_leader_election=text), {})


def test_defaults_of_spreading_come_from_yaml_or_json() -> None:
    """Default constraints are read from YAML or JSON (L-305)."""
    text = (
        'podTopologySpread: {"defaultConstraints": '
        '[{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]}'
    )
    (constraint,) = read_settings(Flags(scheduler_config=text), {}).engine.default_spread
    assert (constraint.max_skew, constraint.topology_key) == (2, "zone")


@pytest.mark.parametrize(
    ("variable", "value", "accepted"),
    [
        ("LOG_LEVEL", "warn", "debug, info or error"),
        ("PREFERENCE_POLICY", "respect", "Respect or Ignore"),
        ("MIN_VALUES_POLICY", "Relax", "Strict or BestEffort"),
        ("BATCH_MAX_DURATION", "10", "a duration"),
        ("METRICS_PORT", "70000", "a port"),
        ("KUBE_CLIENT_QPS", "0", "from 1 on"),
        ("CLUSTER_ENDPOINT", "10.0.0.1", "a URL"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "-0.1", "a share of 1"),
        ("RESERVED_ENIS", "-1", "from 0 on"),
        ("EFFORT", "-1", "from 0 on"),
        ("KEEP_UNTIL_REPLACED", "yes", "true or false"),
        ("AMI_REFRESH_INTERVAL", "59s", "at least 1m"),
        ("CPU_REQUESTS", "one", "a whole number"),
        ("ISOLATED_VPC", "yes", "true or false"),
        ("FEATURE_GATES", "NodeOverlay", "NodeOverlay=true"),
        ("AWS_FEATURE_GATES", "NodeClassCEL", "NodeClassCEL=true"),
        ("SCHEDULER_CONFIG", "podTopologySpread: [", "YAML or JSON"),
        ("SCHEDULER_CONFIG", "/etc/kerf/scheduler.yaml", "not a file's name"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_accepted(variable: str, value: str, accepted: str) -> None:
    """What cannot be read is refused with what is accepted (L-289)."""
    with pytest.raises(InputError, match=re.escape(accepted)) as caught:
        read_settings(Flags(), {variable: value})
    assert caught.value.code in ("KERF338", "KERF339", "KERF340")


def test_a14_gates_of_the_aws_provider_that_it_does_not_know_are_left_alone() -> None:
    for text, on in (("", False), ("NodeClassCEL=true", True), ("Other=true,NodeClassCEL=false", False)):
        assert read_settings(Flags(), {"AWS_FEATURE_GATES": text}).aws.node_class_cel is on


def test_every_setting_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    missing = [name.upper() for name in NAMES if f"`{name.upper()}`" not in text]
    assert not missing


def test_ages_and_sizes_of_the_record() -> None:
    assert read_settings(Flags(), {}).retention == Retention(7 * DAY, 90 * DAY, 8 << 30)
    given = read_settings(Flags(retain_observations="36h", retain_decisions="0", retain_size="500Mi"), {}).retention
    assert given == Retention(DAY * 3 // 2, 0, 500 << 20)
    for name, text in (("retain_observations", "7"), ("retain_decisions", "-1h"), ("retain_size", "8G?")):
        with pytest.raises(SettingError, match="KERF340"):
            read_settings(Flags(), {name.upper(): text})
    with pytest.raises(SettingError, match="64Mi"):
        read_settings(Flags(), {"RETAIN_SIZE": "1Mi"})


@pytest.mark.parametrize("flag", ["--effort INT", "--keep-until-replaced BOOL", "--ignore-dra-requests BOOL"])
def test_the_help_tells_numbers_and_switches_from_texts(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert f" {flag} " in capsys.readouterr().out
