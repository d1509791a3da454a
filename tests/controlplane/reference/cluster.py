"""A control plane as the reference's suites expect it, with kerf in the place of Karpenter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from tests.controlplane.reference import standin
from tests.controlplane.reference.suite import KWOK, KWOK_VERSION, MODULE, CannotBuild, Suite, device_driver, download
from tests.support.controlplane import crds
from tests.support.controlplane.plane import ControlPlane, assets
from tests.support.controlplane.running import Kerf

GATES = "NodeRepair=true,CapacityBuffer=true,StaticCapacity=true"
"""Those that the reference's own runs of its suites switch on."""
_OF_KWOK = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def stages(version: str, into: Path) -> Path:
    """What KWOK's nodes and pods do: its own `fast` stages and, over those of the same name, the reference's."""
    kwok = download(KWOK, KWOK_VERSION) / "kustomize" / "stage"
    own = download(MODULE, version) / "hack" / "kwok" / "stages"
    found = {
        file.name: file.read_text()
        for folder in (*(kwok / stage for stage in _OF_KWOK), own)
        for file in sorted(folder.glob("*.yaml"))
        if file.name != "kustomization.yaml"
    }
    into.write_text("\n---\n".join(found.values()))
    return into


def require(suite: Suite) -> None:
    """Raises CannotBuild if a cluster for the suite would lack something."""
    if assets() is None:
        raise CannotBuild("no control plane: run `make controlplane`")
    download(KWOK, KWOK_VERSION)
    download(MODULE, suite.version)
    if suite.name == "dra":
        device_driver(suite.version)


class Cluster:
    """Empty, with kerf's CustomResourceDefinitions and a kerf that acts; for the suite `dra` with the driver of its
    devices, for `performance` with a Pod that stands for kerf. For one spec after the other."""

    def __init__(self, suite: Suite, folder: Path, environment: dict[str, str]) -> None:
        binaries = assets()
        assert binaries is not None  # see `require`
        folder.mkdir(parents=True)
        self.plane = ControlPlane(binaries, folder / "plane", stages=stages(suite.version, folder / "stages.yaml"))
        self.kerf = Kerf(self.plane, folder, "--mode", "control", "--provider", "kwok")
        metrics = {"METRICS_PORT": str(standin.METRICS_PORT)} if suite.name == "performance" else {}
        self.kerf.environment = {"FEATURE_GATES": GATES, **metrics, **environment}
        self._suite, self._folder = suite, folder
        self._driver: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.plane.start()
        crds.install(self.plane)
        if self._suite.name == "dra":
            self._start_driver()
        if self._suite.name == "performance":
            standin.make(self.plane)
        self.kerf.start()

    def stop(self) -> None:
        if self.kerf.running:
            self.kerf.stop()
        if self._driver is not None:
            self._driver.kill()
            self._driver.wait()
        self.plane.stop()

    def _start_driver(self) -> None:
        definitions = download(MODULE, self._suite.version) / "dra-kwok-driver" / "pkg" / "apis" / "crds"
        for file in sorted(definitions.glob("*.yaml")):
            self.plane.apply(yaml.safe_load(file.read_text()))
        with (self._folder / "driver.log").open("ab") as log:
            self._driver = subprocess.Popen(
                [device_driver(self._suite.version)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "KUBECONFIG": str(self.plane.kubeconfig)},
            )  # fmt: skip
