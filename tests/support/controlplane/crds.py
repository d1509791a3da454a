"""The custom resources of a test's control plane: those of deploy/crds."""

from __future__ import annotations

import time

import yaml

from tests.support.controlplane.plane import ControlPlane
from tests.support.repository import ROOT

FOLDER = ROOT / "deploy" / "crds"
SERVED_WITHIN = 30.0  # seconds


def install(plane: ControlPlane) -> None:
    """Returns when the API server serves them."""
    definitions = [yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml"))]
    for definition in definitions:
        plane.apply(definition)
    for definition in definitions:
        spec = definition["spec"]
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            until = time.monotonic() + SERVED_WITHIN
            while version["served"] and plane.request("GET", path)[0] != 200:
                assert time.monotonic() < until, f"{path} is not served"
                time.sleep(0.05)
