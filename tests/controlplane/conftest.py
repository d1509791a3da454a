"""A control plane for each module of tests, where its binaries are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.controlplane import crds
from tests.support.controlplane.live import QUICK, Live
from tests.support.controlplane.plane import CONDITION, ControlPlane, assets
from tests.support.controlplane.running import Kerf, node_class


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """With kerf's custom resources, and nothing else in it. A module that says `AUDITED = True` gets an audit log."""
    binaries = assets()
    if binaries is None:
        pytest.skip(CONDITION)
    audited = getattr(request.module, "AUDITED", False)
    made = ControlPlane(binaries, tmp_path_factory.mktemp("plane"), audit=audited)
    try:
        made.start()
        crds.install(made)
        yield made
    finally:
        made.stop()


@pytest.fixture
def kerf(plane: ControlPlane, tmp_path: Path) -> Iterator[Kerf]:
    """In control mode; started by the test."""
    process = Kerf(plane, tmp_path, "--lease-name", tmp_path.name[:50].replace("_", "-").lower())
    try:
        yield process
    finally:
        if process.running:
            process.kill()


@pytest.fixture(scope="module")
def live(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """kerf as it runs for a whole module, with the module's FLAGS, and a NodeClass `default`. In the end all that it
    has decided must be decided again the same."""
    kerf = Kerf(plane, tmp_path_factory.mktemp("live"), *QUICK, *getattr(request.module, "FLAGS", ()))
    plane.apply(node_class())
    kerf.start()
    try:
        yield Live(plane, kerf)
        if not kerf.running:  # a test may leave it stopped
            kerf.start()
        assert kerf.stop() == 0, kerf.tail()
        assert "same" in kerf.verify()
    finally:
        if kerf.running:
            kerf.kill()


@pytest.fixture
def cluster(live: Live) -> Iterator[Live]:
    """`live`, emptied when the test ends."""
    yield live
    live.clear()
