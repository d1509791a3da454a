"""A position's histories are cut out of the whole once for all questions about it, and are those of a fold up to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.store.open import open_record
from kerf.replay.history.histories_until import histories_of
from tests.support.records import stored, whole_life


def test_questions_about_one_position_share_its_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = open_record(stored(tmp_path / "a.kerf", whole_life().store))
    last = store.last_position()
    index = named_record(store, last, short=0)
    assert index is not None
    half = histories_of(store, last // 2, index.up_to(last // 2))
    assert histories_of(store, last // 2, index.up_to(last // 2)) is half
    whole = histories_of(store, last, index.up_to(last))
    assert len(whole.decisions) > len(half.decisions)
    again = histories_of(store, last // 2, index.up_to(last // 2))
    assert (again.decisions, again.nodes) == (half.decisions, half.nodes)
    assert again.decisions == histories_of(store, last // 2).decisions
    store.close()
