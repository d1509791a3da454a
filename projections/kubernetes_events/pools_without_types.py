"""Which NodePools can launch nothing, whatever pods ask for (S-66): also those beside a NodePool that can."""

from __future__ import annotations

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.refusals import explain_dropped
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.templates import Template
from kerf.engine.scheduling.planner import STRICT, usable_pools
from kerf.engine.scheduling.problem.from_state import pool_inputs
from kerf.engine.state.nodeclaims.unavailable import unavailable
from kerf.engine.state.state import State


def pools_without_types(state: State, now: int) -> dict[str, Reason]:
    """Return why, by NodePool. `now` is in ms since the epoch."""
    strict, lacking = state.facts.settings.min_values_policy == STRICT, unavailable(state.facts, now)
    found: dict[str, Reason] = {}
    for given in usable_pools(pool_inputs(state, now)):
        catalogue = state.indexes.blobs.catalogue(given.catalogue) if given.catalogue else Catalogue(types=())
        compiled = compiled_catalogue(given.catalogue, catalogue)
        template = Template(given.pool, given.usage, compiled, lacking | given.unavailable, (), strict)
        if not template.types:
            found[given.pool.name] = explain_dropped(template, None)
    return found
