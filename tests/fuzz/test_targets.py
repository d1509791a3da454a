"""Some examples of each fuzz target; `make fuzz` tries many more."""

from __future__ import annotations

import pytest

from tests.fuzz.targets import TARGETS
from tests.fuzz.trying import QUICK, QUICK_OF_SLOW, SLOW, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_each_decoder_gives_a_value_or_a_coded_error(name: str) -> None:
    target = TARGETS[name]
    fuzz(target, QUICK_OF_SLOW if target.slow else QUICK, same=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_each_decoder_gives_a_value_or_a_coded_error_for_more(name: str) -> None:
    target = TARGETS[name]
    fuzz(target, SLOW * (QUICK_OF_SLOW if target.slow else QUICK), same=True)
