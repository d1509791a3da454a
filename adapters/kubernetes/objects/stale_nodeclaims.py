"""Finds NodeClaim objects that are out of date although their claims have no event.

A Node, an answer of the cloud or time alone may change their conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kerf.engine.disruption.cluster_from_state import NEVER, quiet_at
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision, TerminateInstance
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, LaunchAnswered
from kerf.engine.state.state import State

QUIETED_BY: tuple[type[Struct], ...] = (Pod, NodePool, *CLAIM_EVENTS)
"""The entries that can move the time at which a claim becomes Consolidatable (D-55 to D-57)."""


class StaleNodeClaims:
    def __init__(self) -> None:
        self._ends: dict[str, str] = {}  # intent → claim: ends of instances that are asked for
        self._quiet: frozenset[str] = frozenset()
        self._looked = False
        self.turned: dict[str, bool] = {}
        """The claims that the last call of `consolidatable` saw become so, or cease to be. A new process has seen none
        yet when it looks for the first time."""

    def touched(self, entries: Sequence[Entry], state: State) -> list[str]:
        """Returns the claims whose conditions a turn's entries may change.

        They are: how a launch failed (L-70), what a node that is not in service yet waits for (L-71, L-72), and that
        the cloud ends an instance (C-6).
        """
        found: dict[str, None] = {}
        for entry in entries:
            payload = entry.payload
            if isinstance(payload, Node):
                found |= dict.fromkeys(_joining(payload, state))
            elif isinstance(payload, LaunchAnswered):
                found[payload.claim] = None
            elif isinstance(payload, Decision):
                for index, intent in enumerate(payload.intents):
                    if isinstance(intent, TerminateInstance):
                        self._ends[f"{entry.position}.{index}"] = intent.claim
            elif isinstance(payload, EffectAnswered) and payload.intent in self._ends:
                found[self._ends.pop(payload.intent)] = None
        return [name for name in found if name in state.facts.claims]

    def consolidatable(self, state: State, now: int) -> tuple[list[str], int]:
        """Returns the claims that became Consolidatable, or ceased to be, since the last call, and when the next one
        will.

        That time is in ms since the epoch; NEVER if there is none.
        """
        times = {name: quiet_at(claim, state) for name, claim in state.facts.claims.items()}
        quiet = frozenset(name for name, at in times.items() if at <= now)
        changed = sorted(name for name in quiet ^ self._quiet if name in times)
        self.turned = {name: name in quiet for name in changed} if self._looked else {}
        self._quiet, self._looked = quiet, True
        return changed, min((at for at in times.values() if at > now), default=NEVER)


def _joining(node: Node, state: State) -> list[str]:
    name = state.indexes.claim_by_provider.get(node.provider_id, "") if node.provider_id else ""
    claim = state.facts.claims.get(name)
    return [name] if claim is not None and not claim.initialized else []
