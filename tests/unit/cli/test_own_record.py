"""A record is gone on with by the mode and the cluster that it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.own_record import open_own
from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings
from kerf.engine.runtime.runtime import Runtime


def made(url: str, settings: Settings) -> None:
    """A record that begins with these settings."""
    store = open_own(url, observe=settings.observe, cluster=settings.cluster)
    Runtime(store, holder="a", settings=settings, record="0" * 32, engine="test", now=0)
    store.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 'record.kerf'}"


def test_a_record_of_another_cluster_is_refused(url: str) -> None:
    """To this cluster, all nodes of the other one would be gone: their instances would be ended."""
    made(url, Settings(cluster="uid-of-one"))
    with pytest.raises(InputError, match="uid-of-one there, and uid-of-two here") as refused:
        open_own(url, observe=False, cluster="uid-of-two")
    assert refused.value.code == "KERF345"
    open_own(url, observe=False, cluster="uid-of-one").close()


@pytest.mark.parametrize(("there", "here"), [("", "uid-of-two"), ("uid-of-one", "")])
def test_where_nobody_has_said_the_cluster_the_record_is_taken(url: str, there: str, here: str) -> None:
    """A record of an older kerf; an API server that does not say."""
    made(url, Settings(cluster=there))
    open_own(url, observe=False, cluster=here).close()


def test_a_record_of_the_other_mode_is_refused(url: str) -> None:
    made(url, Settings(observe=True))
    with pytest.raises(InputError, match="observe mode") as refused:
        open_own(url, observe=False, cluster="")
    assert refused.value.code == "KERF342"
