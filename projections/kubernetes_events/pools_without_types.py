"""Which NodePools can launch nothing, whatever pods ask for (S-66): also those beside a NodePool that can, and those of
a fixed size, which no pod waits for (S-191)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.refusals import explain_dropped
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.templates import Template
from kerf.engine.scheduling.planner import STRICT, usable_pools
from kerf.engine.scheduling.problem.from_state import pool_inputs
from kerf.engine.scheduling.problem.problem import PoolInput
from kerf.engine.state.nodeclaims.unavailable import unavailable
from kerf.engine.state.state import State


def pools_without_types(state: State, now: int) -> dict[str, Reason]:
    """Return why, by NodePool. `now` is in ms since the epoch."""
    strict = state.facts.settings.min_values_policy == STRICT
    return _without_types(usable_pools(pool_inputs(state, now)), state, now, strict=strict)


def static_pools_without_types(state: State, now: int) -> dict[str, Reason]:
    """Return why, by NodePool of a fixed size that was found to have nothing to launch. Its claims need no minValues
    (S-192)."""
    found = {name for name, pool in state.facts.static.items() if pool.code == LifecycleCode.STATIC_NO_OFFERING}
    given = [pool_input for pool_input in pool_inputs(state, now) if pool_input.pool.name in found] if found else []
    return _without_types(given, state, now, strict=False)


def _without_types(pools: Iterable[PoolInput], state: State, now: int, *, strict: bool) -> dict[str, Reason]:
    lacking, found = unavailable(state.facts, now), dict[str, Reason]()
    for given in pools:
        catalogue = state.indexes.blobs.catalogue(given.catalogue) if given.catalogue else Catalogue(types=())
        compiled = compiled_catalogue(given.catalogue, catalogue)
        template = Template(given.pool, given.usage, compiled, lacking | given.unavailable, (), strict)
        if not template.types:
            found[given.pool.name] = explain_dropped(template, None)
    return found
