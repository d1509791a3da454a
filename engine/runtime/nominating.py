"""Which pending pods have to be told their nodes (status.nominatedNodeName, KEP-5278), and of which that is taken back.

For pods whose claim has been launched and is not in service yet, as soon as its Node's name is known; but not while all
that wait are alike, because none takes another's place then. What the plan no longer says is taken back. A nomination
that somebody else made is never touched. Nothing of it is decided or recorded: the fold sees what became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerf.engine.model.pods import Pod
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.table import LAUNCHED, REGISTERED
from kerf.engine.state.nominations import is_contested
from kerf.engine.state.state import State


class Nominating:
    """For one process, which `due` takes to write what it yields. `node_name` gives the name that the Node of a
    launched claim will have, "" if only the Node itself can tell."""

    def __init__(self, node_name: Callable[[NodeClaim], str]) -> None:
        self._node_name = node_name
        self._written: dict[str, str] = {}  # pod → the node last written, by this process or an earlier one

    def due(self, state: State) -> Iterator[tuple[Pod, str]]:
        """What is new since the last time: pods with the name of their node, "" where it is taken back. To be gone
        through to its end, after each turn."""
        facts = state.facts
        wanted: dict[str, str] = {}
        for claim, pods in state.ix.waiting_for.items():
            node = self._node_of(facts.claims.get(claim), state)
            if node:
                wanted.update((uid, node) for uid in pods)
        for uid, node in wanted.items() if is_contested(state) else ():
            pod = facts.pods.get(uid)
            if pod is not None and self._may_write(pod, node, state):
                self._written[uid] = node
                yield pod, node
        for uid, node in {**facts.nominations, **self._written}.items():
            pod = facts.pods.get(uid)
            if uid not in wanted and self._takes_back(uid, pod, node, state) and pod is not None:
                yield pod, ""

    def _node_of(self, claim: NodeClaim | None, state: State) -> str:
        if claim is None or claim.state not in (LAUNCHED, REGISTERED):
            return ""
        seen = state.ix.nodes_by_provider.get(claim.provider_id, {})
        return next(iter(seen)) if len(seen) == 1 else self._node_name(claim)

    def _may_write(self, pod: Pod, node: str, state: State) -> bool:
        if pod.node or pod.deleting or self._written.get(pod.uid) == node:
            return False
        ours = (self._written.get(pod.uid, ""), state.facts.nominations.get(pod.uid, ""))
        return not pod.nominated or (pod.nominated != node and pod.nominated in ours)

    def _takes_back(self, uid: str, pod: Pod | None, node: str, state: State) -> bool:
        """A claim in service keeps its nominations until its pods are bound: its Node is there."""
        if pod is None or pod.node:
            self._written.pop(uid, None)
            return False
        if pod.nominated != node or node in state.facts.nodes:
            return False
        self._written.pop(uid, None)
        return True
