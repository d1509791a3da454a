"""A record of a whole life, and one of it that is forged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.records import changed, position_of, stored, tampered, whole_life
from tests.support.world import World


@pytest.fixture(scope="module")
def life() -> World:
    return whole_life()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory, life: World) -> Path:
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", life.store)


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory, life: World) -> Path:
    position = position_of(life.store, "claim.launched")
    return stored(
        tmp_path_factory.mktemp("records") / "forged.kerf", tampered(life.store, changed(position, price=9.0))
    )
