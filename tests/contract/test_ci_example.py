"""The workflow for GitHub Actions is sound: its YAML, the shape of a workflow, and every kerf command in it."""

from __future__ import annotations

import inspect
import re
import shlex
from importlib import import_module
from typing import Any

import yaml

from kerf.adapters.cli.checking.policy_file import policy_of
from kerf.adapters.cli.command_table import COMMANDS
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs/examples/ci"


def workflow() -> dict[Any, Any]:
    document = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text())
    assert isinstance(document, dict)
    return document


def commands() -> list[list[str]]:
    """The kerf commands of all steps, as words."""
    scripts = [step.get("run", "") for job in workflow()["jobs"].values() for step in job["steps"]]
    lines = [line.strip() for script in scripts for line in script.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("kerf ")]


def test_it_is_a_workflow() -> None:
    found = workflow()
    assert found[True].keys() == {"pull_request"}, "YAML 1.1 reads `on` as true, and so does GitHub"
    for job in found["jobs"].values():
        assert "runs-on" in job
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step


def test_every_kerf_command_in_it_exists_with_its_flags() -> None:
    by_name = {command.name: command.path for command in COMMANDS}
    assert {command[0] for command in commands()} == {"validate", "check", "whatif", "replay"}
    for name, *arguments in commands():
        module, function = by_name[name].split(":")
        flags = inspect.signature(getattr(import_module(module), function)).parameters
        known = {f"--{flag.replace('_', '-')}" for flag in flags}
        used = {argument for argument in arguments if re.fullmatch(r"--[a-z-]+", argument)}
        assert used <= known, f"kerf {name} {used - known}"


def test_its_policy_can_be_read() -> None:
    assert len(policy_of(EXAMPLES / "policy.yaml")) == 10
