"""Fold what happened to instances that kerf did not do: interruptions, ends, deletions, cordons, silent kubelets."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, TERMINATED
from kerf.engine.record.claim_events import InstanceVanished
from kerf.engine.record.observations import InterruptionSeen, NodeClaimDeletionSeen, ObjectGone
from kerf.engine.state.state import State
from kerf.projections.cordons import is_cordoned
from kerf.replay.modelled.workload import Offering, Step, Strike, Timed

ACTIONS = {
    "spot_interrupted": "interrupt",
    "rebalance_recommendation": "rebalance",
    "scheduled_change": "maintenance",
    "instance_terminated": "reclaim",
    "instance_stopped": "reclaim",
}
"""Kinds of interruption messages, and the actions of a Timeline that they are."""
BY_ITSELF = ("cloud-node-lifecycle-controller", "garbage collector")
"""Who asks for deletions that the model makes by itself."""
UNREACHABLE_AFTER = 40_000
"""A kubelet was silent so long (ms) before its node is not ready."""
NOTICED_WITHIN = 300_000
"""The end of an instance is noticed within this time (ms)."""


class Strikes:
    """Folds the strikes. Give it each entry before the state has it; `steps` gives them in the end."""

    def __init__(self) -> None:
        self._found: list[Timed] = []
        self._silent: dict[str, tuple[int, str, Offering, int]] = {}  # by node: since when, its claim, offering, rank
        self._silent_since: dict[str, int] = {}  # by claim, the latest
        self._struck: dict[str, int] = {}  # claims that the cloud has ended, or is about to → when
        self._over: list[tuple[str, Timed]] = []  # silences, by claim
        self.unknown = 0

    def apply(self, payload: Struct, at: int, before: State) -> None:
        if isinstance(payload, InterruptionSeen):
            self._interrupted(payload, at, before)
        elif isinstance(payload, InstanceVanished):
            self._vanished(payload.claim, at, before)
        elif isinstance(payload, NodeClaimDeletionSeen):
            self._deleted(payload, at, before)
        elif isinstance(payload, Node):
            self._node(payload, at, before)
        elif isinstance(payload, ObjectGone) and payload.kind == "node":
            self._heard(payload.key, 0)

    def steps(self) -> list[Timed]:
        """Return all strikes. The silence of an instance that the cloud has ended is part of its end."""
        for node in list(self._silent):
            self._heard(node, 0)
        return self._found + [timed for claim, timed in self._over if claim not in self._struck]

    def _interrupted(self, seen: InterruptionSeen, at: int, state: State) -> None:
        claim = self._claim(state.indexes.claim_by_instance.get(seen.instance, ""), state)
        kind = ACTIONS.get(seen.kind)
        if seen.message in state.facts.messages or claim is None or kind is None:
            return
        if kind == "reclaim" and (claim.name in self._struck or claim.effect("terminate") is not None):
            return
        if kind in ("interrupt", "reclaim"):
            self._struck[claim.name] = at
        self._strike(kind, claim, seen.sent if 0 <= at - seen.sent < UNREACHABLE_AFTER else at, state)

    def _vanished(self, name: str, at: int, state: State) -> None:
        claim = self._claim(name, state)
        if claim is None or name in self._struck or claim.effect("terminate") is not None:
            return
        self._struck[name] = at
        since = self._silent_since.get(name, at)  # its end is noticed once its kubelet does not answer
        self._strike("vanish", claim, since if at - since < NOTICED_WITHIN else at, state)

    def _deleted(self, seen: NodeClaimDeletionSeen, at: int, state: State) -> None:
        claim = self._claim(seen.claim, state)
        pool = state.facts.pools.get(claim.node_pool) if claim is not None else None
        if claim is None or pool is None or pool.deleting or seen.actor in BY_ITSELF or seen.claim in self._struck:
            return
        if not claim.deletion and claim.instance_status not in ENDED:
            self._strike("delete", claim, at, state)

    def _node(self, node: Node, at: int, state: State) -> None:
        claim = self._claim(state.indexes.claim_by_node.get(node.name, ""), state)
        old = state.facts.nodes.get(node.name)
        if claim is None or old is None:
            return
        if old.ready and not node.ready and claim.state not in GOING:
            self._silent_since[claim.name] = at - UNREACHABLE_AFTER
            self._silent[node.name] = at - UNREACHABLE_AFTER, claim.name, offering_of(claim), rank(claim, state)
        elif node.ready and not old.ready:
            self._heard(node.name, at)
        was, now = is_cordoned(old), is_cordoned(node)
        if was != now and claim.state not in GOING:
            self._strike("cordon" if now else "uncordon", claim, at, state)

    def _heard(self, node: str, at: int) -> None:
        silent = self._silent.pop(node, None)
        if silent is not None:
            since, claim, offering, of_age = silent
            lasts = at - since if at else 0
            self._over.append((claim, Timed(since, Strike("node-notready", offering, of_age, lasts))))

    def _strike(self, kind: str, claim: NodeClaim, at: int, state: State) -> None:
        step: Step = Strike(kind, offering_of(claim), rank(claim, state))
        self._found.append(Timed(at, step))

    def _claim(self, name: str, state: State) -> NodeClaim | None:
        claim = state.facts.claims.get(name)
        return claim if claim is not None and claim.instance else None


def offering_of(claim: NodeClaim) -> Offering:
    return Offering(claim.instance_type, claim.zone, claim.capacity_type)


def rank(claim: NodeClaim, state: State) -> int:
    """Return how many living instances of the same offering are older."""
    wanted = offering_of(claim)
    alive = (other for other in state.facts.claims.values() if other.instance and other.state != TERMINATED)
    same = ((other.launched, other.name) for other in alive if offering_of(other) == wanted)
    return sum(other < (claim.launched, claim.name) for other in same)
