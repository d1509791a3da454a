"""A record is gone on with by the mode and the cluster that it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.manager.writable_record import open_writable
from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings
from kerf.engine.runtime.runtime import Runtime


def went_on(url: str, settings: Settings) -> Settings:
    """kerf starts with these settings on the record, which it makes if need be; those that it has then."""
    store = open_writable(url, observe=settings.observe)
    try:
        return Runtime(store, holder="a", settings=settings, record="0" * 32, engine="test", now=0).state.facts.settings
    finally:
        store.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 'record.kerf'}"


def test_a_record_of_another_cluster_is_refused_and_nothing_is_written(url: str) -> None:
    """To this cluster, all nodes of the other one would be gone: their instances would be ended."""
    went_on(url, Settings(cluster="uid-of-one"))
    store = open_writable(url, observe=False)
    before = store.last_position()
    store.close()
    with pytest.raises(InputError, match="uid-of-one there, and uid-of-two here") as refused:
        went_on(url, Settings(cluster="uid-of-two"))
    assert refused.value.code == "KERF345"
    store = open_writable(url, observe=False)
    assert store.last_position() == before
    store.close()
    assert went_on(url, Settings(cluster="uid-of-one")).cluster == "uid-of-one"


def test_a_record_of_nobody_is_the_first_clusters_that_says_who_it_is(url: str) -> None:
    """One that an older kerf began, or one at whose beginning the API server did not say."""
    went_on(url, Settings())
    went_on(url, Settings(cluster="uid-of-one"))
    with pytest.raises(InputError, match="uid-of-one there"):
        went_on(url, Settings(cluster="uid-of-two"))


def test_an_api_server_that_does_not_say_makes_nobody_forget_whose_record_it_is(url: str) -> None:
    went_on(url, Settings(cluster="uid-of-one"))
    assert went_on(url, Settings(batch_idle=2_000)) == Settings(batch_idle=2_000, cluster="uid-of-one")
    with pytest.raises(InputError, match="uid-of-one there"):
        went_on(url, Settings(cluster="uid-of-two"))


def test_a_record_of_the_other_mode_is_refused(url: str) -> None:
    went_on(url, Settings(observe=True))
    with pytest.raises(InputError, match="observe mode") as refused:
        open_writable(url, observe=False)
    assert refused.value.code == "KERF342"
