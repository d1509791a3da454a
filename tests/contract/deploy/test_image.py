"""The image: which packages it has, what it is built on, and its bill of materials (`make sbom`)."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Iterable

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kerf
from deploy import make_sbom
from tests.support.repository import ROOT

LOCKS = ("production.txt", "build.txt")


def lock(name: str) -> str:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


def needed(requirements: Iterable[str], extras: Iterable[str], seen: set[str]) -> set[str]:
    """The packages that are required, and those that they need to run."""
    for text in requirements:
        wanted = Requirement(text)
        environments = [make_sbom.LINUX | make_sbom.CPYTHON | {"extra": extra} for extra in ("", *extras)]
        if wanted.marker is not None and not any(wanted.marker.evaluate(environment) for environment in environments):
            continue
        name = canonicalize_name(wanted.name)
        if name not in seen:
            seen.add(name)
            needed(importlib.metadata.requires(name) or (), wanted.extras, seen)
    return seen


def test_the_bill_names_every_package_that_kerf_needs_to_run_and_no_other() -> None:
    document = json.loads(make_sbom.text())
    libraries = {part["name"]: part["version"] for part in document["components"] if part["type"] == "library"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgres"], *extras["ui"]]
    assert libraries.keys() == needed(wanted, [], set())
    assert libraries == {name: importlib.metadata.version(name) for name in libraries}
    assert not libraries.keys() & {"pytest", "mypy", "ruff", "moto", "hypothesis", "hatchling", "pip"}


def test_the_bill_is_whole_and_the_same_each_time() -> None:
    document = json.loads(make_sbom.text())
    assert make_sbom.text() == make_sbom.text()
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    own = document["metadata"]["component"]
    assert (own["name"], own["version"]) == ("kerf-autoscaler", kerf.__version__)
    refs = {part["bom-ref"] for part in document["components"]}
    assert len(refs) == len(document["components"])
    named = {ref for entry in document["dependencies"] for ref in (entry["ref"], *entry["dependsOn"])}
    assert named <= refs | {own["bom-ref"]}
    asked = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    assert any("/aiohttp@" in ref for ref in asked[own["bom-ref"]])
    assert [any("/botocore@" in ref for ref in needs) for ref, needs in asked.items() if "/boto3@" in ref] == [True]
    reached, todo = set(), [own["bom-ref"]]
    while todo:
        ref = todo.pop()
        if ref not in reached:
            reached.add(ref)
            todo += asked[ref]
    assert reached == set(asked), "each package is asked for by another"
    for part in document["components"][1:]:
        assert part["properties"], f"{part['name']} has no hash"
        assert part.get("licenses"), f"{part['name']} names no licence"


def test_the_image_is_built_on_what_its_digest_names() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    base = make_sbom.bill(lock("production.txt"), dockerfile)["components"][0]
    assert re.fullmatch(r"3\.\d+\.\d+-\S+@sha256:[0-9a-f]{64}", base["version"])
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON}"}
    with pytest.raises(SystemExit, match="no image with its digest"):
        make_sbom.bill("", "ARG PYTHON=python:3.13-slim\n")


def test_the_image_installs_what_is_locked_for_production() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    build, final = dockerfile.split(" AS build\n")[1].split("FROM ${PYTHON}\n")
    assert "requirements/production.txt" in build
    assert "requirements/build.txt" not in build
    assert re.findall(r"COPY (.*)", final) == ["--from=build /kerf /kerf"]
    assert "requirements.txt" not in dockerfile
    for command in re.findall(r"pip.* install (.*)", dockerfile):
        assert "--require-hashes" in command or "--no-index" in command


@pytest.mark.parametrize("name", LOCKS)
def test_each_lock_is_a_part_of_the_lock(name: str) -> None:
    """`make lock` writes them together: the same versions and files."""
    whole = {package.name: package for package in make_sbom.packages(lock("requirements.txt"))}
    for package in make_sbom.packages(lock(name)):
        assert (package.version, package.hashes) == (whole[package.name].version, whole[package.name].hashes)
