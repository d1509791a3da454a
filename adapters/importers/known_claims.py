"""What the whole source tells of each NodeClaim: what never changes in its life, and when which claim had which node.

A claim that is first met late is shown with what later lines tell of it: its instance, its node. Node names are
addresses, which a cloud uses again, so that a node's claim is looked up by time (F-87, F-92).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.importers import claim_steps as st

_NEVER = 1 << 62


_OfInstance = st.Launched | st.Registered | st.Initialized | st.ClaimGone


def with_own_instances(steps: Sequence[st.Step]) -> list[st.Step]:
    """The steps without the ids of instances that several claims have: somebody has masked them (`i-xxxxxxxx`), and
    what befalls one of these instances would befall any of the claims."""
    claims: dict[str, set[str]] = {}
    for step in steps:
        if isinstance(step, _OfInstance) and step.provider_id:
            claims.setdefault(step.provider_id.rpartition("/")[2], set()).add(step.claim)
    masked = {instance for instance, of in claims.items() if len(of) > 1}
    return [
        replace(step, provider_id="")
        if isinstance(step, _OfInstance) and step.provider_id.rpartition("/")[2] in masked
        else step
        for step in steps
    ]


class Known(Struct):
    """One claim. `begun` and `ended` bound its life as far as it is told; `joined` is when its node is first told to
    have registered, or to be in service."""

    name: str
    node_pool: str = ""
    provider_id: str = ""
    node: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    begun: int = 0
    joined: int = 0
    ended: int = _NEVER


class KnownClaims:
    """The claims of a source, by name."""

    def __init__(self, steps: Iterable[st.Step]) -> None:
        self.claims: dict[str, Known] = {}
        self._of_node: dict[str, list[Known]] = {}
        for step in steps:
            self._learn(step)
        for claim in self.claims.values():
            if claim.node:
                self._of_node.setdefault(claim.node, []).append(claim)

    def claim_of(self, node: str, at: int) -> str:
        """The claim that had the node at a time; "" if none did, or if that cannot be told."""
        alive = [claim for claim in self._of_node.get(node, ()) if claim.begun <= at <= claim.ended]
        if len(alive) > 1:  # of those that were there from the beginning of time, the one that began last
            alive = [claim for claim in alive if claim.begun == max(other.begun for other in alive)]
        return alive[0].name if len(alive) == 1 else ""

    def _learn(self, step: st.Step) -> None:
        if isinstance(step, st.Decided):
            only = step.node_pools[0] if len(step.node_pools) == 1 else ""
            for target in step.targets:
                self._note(target.claim, node=target.node, instance_type=target.instance_type,
                           capacity_type=target.capacity_type, node_pool=only)  # fmt: skip
        elif isinstance(step, st.Created):
            self._note(step.claim, node_pool=step.node_pool, begun=step.at)
        elif isinstance(step, st.Launched):
            self._note(step.claim, provider_id=step.provider_id, instance_type=step.instance_type, zone=step.zone,
                       capacity_type=step.capacity_type)  # fmt: skip
        elif isinstance(step, st.Registered | st.Initialized | st.ClaimGone):
            self._note(step.claim, node=step.node, provider_id=step.provider_id)
        elif isinstance(step, st.Interrupted | st.DrainBegan | st.NodeGone):
            self._note(step.claim, node=step.node)
        if isinstance(step, st.Registered | st.Initialized) and step.claim:
            self.claims[step.claim].joined = self.claims[step.claim].joined or step.at
        if isinstance(step, st.ClaimGone) and step.claim:
            self.claims[step.claim].ended = min(self.claims[step.claim].ended, step.at)

    def _note(self, name: str, *, begun: int = 0, **facts: str) -> None:
        """What was told first stays (F-92)."""
        if not name:
            return
        claim = self.claims.setdefault(name, Known(name))
        claim.begun = claim.begun or begun
        for field, value in facts.items():
            if value and not getattr(claim, field):
                setattr(claim, field, value)
