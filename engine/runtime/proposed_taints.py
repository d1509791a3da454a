"""Works out which nodes carry the taint that keeps new pods off them while their disruption is proposed.

A node of a proposed move goes in some seconds, or as soon as the disruption budgets have room, and so does one that has
drifted. kube-scheduler likes such nodes best, because they are the emptiest ones. A pod that is evicted from another
node would go there, and be evicted again. The taint has the effect PreferNoSchedule: pods go there only where no other
node has room for them. The Cluster Autoscaler marks nodes that may go in the same way.

Nothing of this is decided or recorded. The fold sees the result in the Nodes (`Node.proposed`).
"""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.disruption.budgets import allowance
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.labels import PROPOSED_TAINT
from kerf.engine.nodeclaim.state_table import GOING, STEADY
from kerf.engine.state.state import State

PROPOSED = Taint(PROPOSED_TAINT, "PreferNoSchedule")


class ProposedTaints:
    """For one process, which writes what `due` yields and calls `failed` for a write that was not made."""

    def __init__(self) -> None:
        self._tainted: set[str] | None = None  # nodes that carry the taint once all that was yielded is written

    def due(self, state: State) -> Iterator[tuple[str, bool]]:
        """What is new since the last time: nodes, by name, and whether they get the taint or lose it. To be gone
        through to its end, after each turn."""
        nodes = state.facts.nodes
        if self._tainted is None:
            self._tainted = {name for name, node in nodes.items() if node.proposed}
        wanted = _nodes_to_go(state)
        for name in sorted(wanted - self._tainted):
            self._tainted.add(name)
            yield name, True
        for name in sorted(self._tainted - wanted):
            if name not in nodes:
                self._tainted.discard(name)
            elif not _is_going(name, state):
                self._tainted.discard(name)
                yield name, False

    def failed(self, node: str, *, on: bool) -> None:
        """Has it yielded again: the node did not get the taint (`on`), or did not lose it."""
        tainted = self._tainted or set()
        tainted.discard(node) if on else tainted.add(node)


def _nodes_to_go(state: State) -> set[str]:
    """The nodes of moves that are proposed and have not started, and those that have drifted and were left by a pass,
    unless the budgets of their NodePool let no drifted node go now."""
    facts = state.facts
    proposed = (name for underway in facts.moves.values() if not underway.started for name in underway.move.claims)
    claims = [facts.claims[name] for name in proposed if name in facts.claims]
    drifted = [claim for claim in facts.claims.values() if 0 < claim.drifted_since < facts.moves_looked]
    replaced = {name for name in {claim.node_pool for claim in drifted} if _replaces_drifted(name, state)}
    claims += [claim for claim in drifted if claim.node_pool in replaced]
    return {claim.node for claim in claims if claim.state in STEADY and claim.node in facts.nodes}


def _replaces_drifted(name: str, state: State) -> bool:
    pool = state.facts.pools.get(name)
    return pool is not None and allowance(pool, DisruptionReason.DRIFTED, 1, state.facts.at).nodes > 0


def _is_going(node: str, state: State) -> bool:
    """Whether it has the taint of disruption already: then this one makes no difference."""
    claim = state.facts.claims.get(state.indexes.claim_by_node.get(node, ""))
    return claim is not None and claim.state in GOING
