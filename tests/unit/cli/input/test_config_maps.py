"""ConfigMaps of Karpenter before 0.32: what `kerf run`, `kerf validate` and `kerf convert` make of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kerf.adapters.cli.input.manifests import converted
from kerf.adapters.cli.input.validation import check_manifests
from kerf.adapters.manager.config_maps import NoSettings, environment_with, old_settings
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import SettingError, read_settings

GLOBAL = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "karpenter-global-settings", "namespace": "karpenter"},
    "data": {
        "batchMaxDuration": "20s", "batchIdleDuration": "2s", "aws.clusterName": "prod",
        "aws.clusterEndpoint": "https://10.0.0.1", "aws.clusterCABundle": "TUlJ", "aws.isolatedVPC": "true",
        "aws.vmMemoryOverheadPercent": "0.05", "aws.interruptionQueueName": "queue", "aws.reservedENIs": "1",
        "featureGates.driftEnabled": "true", "aws.enablePodENI": "true", "aws.tags": '{"team": "a"}', "aws.other": "x",
    },
}  # fmt: skip
ZAP = '{"level": "debug", "outputPaths": ["stdout", "/var/log/kerf"], "encoding": "console", "disableCaller": true}'
LOGGING = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "config-logging"},
    "data": {"zap-logger-config": ZAP, "loglevel.webhook": "error"},
}


def written(folder: Path, *documents: object) -> Path:
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_l317_l324_each_key_becomes_a_variable_or_is_told_to_have_no_effect(tmp_path: Path) -> None:
    environment, notes = environment_with(written(tmp_path, GLOBAL, LOGGING), {})
    options = read_settings(Flags(), environment)
    assert (options.engine.batch_max, options.engine.batch_idle, options.engine.cluster_name) == (20_000, 2_000, "prod")
    aws = options.aws
    assert (aws.endpoint, aws.ca_bundle, aws.isolated_vpc) == ("https://10.0.0.1", "TUlJ", True)
    assert (aws.memory_overhead, aws.interruption_queue, aws.reserved_enis) == (0.05, "queue", 1)
    assert (options.log_level, options.outputs) == ("debug", ("stdout", "/var/log/kerf"))
    said = dict(note.split(": ", 1) for note in notes)
    assert said.keys() == GLOBAL["data"].keys() | LOGGING["data"].keys()  # type: ignore[attr-defined]
    assert said["aws.reservedENIs"] == "RESERVED_ENIS=1"
    assert said["featureGates.driftEnabled"] == "no effect: drift is always on"
    assert said["aws.other"].startswith("no effect: no version")
    assert said["zap-logger-config"].endswith("no effect, since the log is JSON: disableCaller, encoding")


def test_the_environment_goes_first_and_an_empty_variable_does_not(tmp_path: Path) -> None:
    given = {"CLUSTER_NAME": "other", "RESERVED_ENIS": ""}
    environment, _ = environment_with(written(tmp_path, GLOBAL), given)
    assert (environment["CLUSTER_NAME"], environment["RESERVED_ENIS"]) == ("other", "1")


def test_a_folder_where_a_config_map_is_mounted_has_a_file_for_each_key(tmp_path: Path) -> None:
    for key, value in LOGGING["data"].items():  # type: ignore[attr-defined]
        (tmp_path / key).write_text(value)
    environment, _ = environment_with(tmp_path, {})
    assert environment == {"LOG_LEVEL": "debug", "LOG_OUTPUT_PATHS": "stdout,/var/log/kerf"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("batchMaxDuration", "soon"), ("aws.reservedENIs", "-1"), ("zap-logger-config", '{"level": "loud"}'),
     ("loglevel.controller", "loud"), ("aws.clusterEndpoint", "10.0.0.1")],
)  # fmt: skip
def test_a_value_that_cannot_be_read_is_named_and_the_others_stand(key: str, value: str, tmp_path: Path) -> None:
    document = {**GLOBAL, "data": {"aws.clusterName": "prod", key: value}}
    found = old_settings(document)
    assert [violation.path for violation in found.violations] == [f"data.{key}"]
    assert found.environment == {"CLUSTER_NAME": "prod"}
    with pytest.raises(SettingError, match=key.replace(".", r"\.")):
        environment_with(written(tmp_path, document), {})


def test_l324_a_zap_config_with_a_comment_is_no_json_and_keeps_nothing_from_starting() -> None:
    found = old_settings({**LOGGING, "data": {"zap-logger-config": '{\n# to read it\n"level": "debug"}'}})
    assert (found.environment, found.violations) == ({}, ())
    assert found.notes[0].startswith("zap-logger-config: no effect: it is no JSON object. JSON is malformed")


@pytest.mark.parametrize("text", ["kind: Pod\n", "a: [", "{}\n"])
def test_a_file_without_settings_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(NoSettings):
        environment_with(tmp_path / "file", {})
    with pytest.raises(NoSettings):
        environment_with(tmp_path / "none", {})


def test_validate_says_what_each_key_became_and_refuses_what_cannot_be_read(tmp_path: Path) -> None:
    bad = {**GLOBAL, "data": {"batchMaxDuration": "soon"}}
    good, refused = check_manifests([str(written(tmp_path, GLOBAL, bad))])
    assert (good.verdict, len(good.notes)) == ("accepted", 1 + len(GLOBAL["data"]))
    assert (refused.verdict, refused.violations[0].path) == ("refused", "data.batchMaxDuration")


def test_convert_writes_variables_that_a_container_takes_by_env_from(tmp_path: Path) -> None:
    bad = {**LOGGING, "data": {"zap-logger-config": '{"level": "no"}'}}
    result = converted([str(written(tmp_path, GLOBAL, bad))])
    (document,) = result.documents
    assert document["metadata"] == GLOBAL["metadata"]
    assert document["data"]["INTERRUPTION_QUEUE"] == "queue"
    assert read_settings(Flags(), document["data"]).aws.reserved_enis == 1
    assert len(result.notes) == len(GLOBAL["data"])
    assert "zap-logger-config" in str(result.refused[0])
