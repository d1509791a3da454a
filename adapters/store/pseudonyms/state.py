"""Recomputes what the fold derives from names, so that deciding goes on as in the record."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kerf.engine.model.content_digest import deviation
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.state.objects.nodepool_health import spec_of
from kerf.engine.state.state import Facts


def made_anew(facts: Facts, plan_digest: str) -> None:
    """Recomputes from the pseudonyms what the fold derived from names: the digests that later digests are compared
    with.

    `plan_digest` is that of the latest plan's result, "" if that entry was removed.
    """
    facts.settings_digest = deviation(facts.settings)
    facts.plan_digest = plan_digest or facts.plan_digest
    pools: Mapping[str, NodePool] = facts.pools
    facts.health = {
        name: replace(health, pool=spec_of(pools[name])) if name in pools else health
        for name, health in facts.health.items()
    }
