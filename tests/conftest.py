"""What all tests share: async tests run on a loop with virtual time, unless they are marked `real_time`, and no
property test fails because the machine is slow."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, settings

from tests.support.strategies.examples import examples
from tests.support.virtual_time import VirtualTimeLoop

settings.register_profile(
    "kerf", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kerf")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("real_time") is not None:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}


def pytest_sessionfinish() -> None:
    """A server leaves what it keeps out of the looks for garbage, which here is the tests' process. duckdb complains of
    each object that is left at the end."""
    gc.unfreeze()
