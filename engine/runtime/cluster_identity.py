"""Checks that a record belongs to this cluster, which is known by the uid of its namespace kube-system."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings


def settings_of_one_cluster(known: Settings, wanted: Settings) -> Settings:
    """The settings that a record goes on with: `wanted`, with the cluster that is known where nobody says it now.

    Raises InputError (KERF345) when `wanted` says another one: there all nodes of the record would be gone, so that
    their instances would be ended. It is the latest cluster that counts: a record that was begun before anybody said
    which one it is belongs to the first that does.
    """
    if not known.cluster or known.cluster == wanted.cluster:
        return wanted
    if not wanted.cluster:
        return replace(wanted, cluster=known.cluster)
    raise InputError(
        f"this record is of another cluster: kube-system has the uid {known.cluster} there, and {wanted.cluster} here",
        where="settings.cluster",
        hint="Name the record of this cluster, or a new one: kerf adopts the nodes that it finds",
        code="KERF345",
    )
