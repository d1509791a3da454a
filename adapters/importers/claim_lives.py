"""NodeClaims and Nodes made of the steps that a source tells of: the objects as an API server would have shown them.

A step that is told twice counts once (F-92). A decision is kept as what another controller said; that it was carried
out shows only in the steps that follow (F-91).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.importers import claim_steps as st
from kerf.adapters.importers.history import History
from kerf.adapters.importers.known_claims import KnownClaims, with_own_instances
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject, condition_is_true
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record import observations as seen

KARPENTER = "karpenter"
_TAINT = Taint(lbl.DISRUPTED_TAINT, "NoSchedule")


class ClaimLives:
    """Tells a history of steps. `steps` must be in order of time."""

    def __init__(self, history: History, steps: Sequence[st.Step]) -> None:
        steps = with_own_instances(steps)
        self._history, self._steps = history, steps
        self._known = KnownClaims(steps)
        self._replacements = _replacements(steps)
        self._objects: dict[str, NodeClaimObject] = {}
        self._over: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self._decisions: dict[str, st.Decided] = {}  # claim or node → the latest about it

    def tell(self) -> None:
        for step in self._steps:
            _TELL[type(step)](self, step)

    # ── the life ───────────────────────────────────────────────────────────────────────────────────────────────

    def _created(self, step: st.Created) -> None:
        if step.claim in self._objects or step.claim in self._over:
            return
        types = (RequirementSpec(lbl.INSTANCE_TYPE, "In", step.instance_types),) if step.instance_types else ()
        made = NodeClaimObject(
            step.claim, NodeClassRef("", "", ""), labels=_labels({lbl.NODEPOOL: step.node_pool}), requirements=types,
            requests=step.requests, expire_after=None, created=step.at,
        )  # fmt: skip
        self._show(step.at, made)

    def _launched(self, step: st.Launched) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is None or condition_is_true(claim, "Launched"):
            return
        labels = {lbl.INSTANCE_TYPE: step.instance_type, lbl.ZONE: step.zone, lbl.CAPACITY_TYPE: step.capacity_type}
        self._show(step.at, replace(
            claim, provider_id=step.provider_id, labels=claim.labels | _labels(labels), allocatable=step.allocatable,
            conditions=_with(claim, "Launched", step.at),
        ))  # fmt: skip

    def _launch_failed(self, step: st.LaunchFailed) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is not None and not claim.provider_id:
            failed = Condition("Launched", "False", reason="LaunchFailed", message=step.error, since=step.at)
            self._show(step.at, replace(claim, conditions=(failed,)))

    def _registered(self, step: st.Registered) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is None or condition_is_true(claim, "Registered"):
            return
        joined = replace(self._launch_known(claim), node=step.node)
        node = self._node_of(joined)
        self._show(step.at, *node, replace(joined, conditions=_with(joined, "Registered", step.at)))

    def _initialized(self, step: st.Initialized) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is None or condition_is_true(claim, "Initialized"):
            return
        joined = self._launch_known(replace(claim, node=step.node or claim.node))
        for condition in ("Registered", "Initialized"):
            joined = replace(joined, conditions=_with(joined, condition, step.at))
        ready = [
            replace(node, ready=True, ready_since=step.at, allocatable=step.allocatable)
            for node in self._node_of(joined) or (self._nodes.get(joined.node),)
            if node is not None
        ]
        self._show(step.at, *ready, replace(joined, allocatable=step.allocatable or joined.allocatable))

    def _interrupted(self, step: st.Interrupted) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is None:
            return
        self._show(step.at, _message(claim, step) if claim.provider_id else _said_of(claim.name, step.node))
        self._show(step.at, replace(claim, deleting=claim.deleting or step.at))

    def _deletion_seen(self, step: st.DeletionSeen) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is not None:
            told = _labels({lbl.TERMINATION_TIMESTAMP: step.deadline})
            self._goes(replace(claim, annotations=claim.annotations | told), step.at)

    def _drain_began(self, step: st.DrainBegan) -> None:
        claim = self._claim(step.claim or self._known.claim_of(step.node, step.at), step.at)
        if claim is not None and not claim.node:  # the lines between are missing
            claim = replace(self._launch_known(claim), node=step.node, conditions=_with(claim, "Registered", 0))
        node = self._nodes.get(step.node, Node(step.node))
        if _TAINT not in node.taints:
            self._show(step.at, replace(node, taints=(*node.taints, _TAINT)))
        if claim is not None:
            self._goes(claim, step.at)

    def _node_gone(self, step: st.NodeGone) -> None:
        if self._nodes.pop(step.node, None) is not None:
            self._history.tell(step.at, seen.ObjectGone("node", step.node))

    def _claim_gone(self, step: st.ClaimGone) -> None:
        claim = self._claim(step.claim, step.at)
        if claim is None:
            return
        if claim.node in self._nodes:  # its own line is missing: a claim goes after its node
            self._node_gone(st.NodeGone(at=step.at, node=claim.node))
        del self._objects[step.claim]
        self._over.add(step.claim)
        self._history.tell(step.at, seen.ObjectGone("nodeclaim", step.claim))

    # ── what is said ───────────────────────────────────────────────────────────────────────────────────────────

    def _decided(self, step: st.Decided) -> None:
        targets = [(t.claim or self._known.claim_of(t.node, step.at), t.node) for t in step.targets]
        for name, node in targets:
            if name:
                self._claim(name, step.at, in_service=True)
            elif node and node not in self._nodes:
                self._show(step.at, Node(node))  # its claim is not told: then nothing else says that it is there
            self._decisions[name or node] = step
        self._history.tell(step.at, seen.ControllerDecided(
            KARPENTER, step.why, step.action,
            claims=tuple(name for name, _ in targets if name), nodes=tuple(node for _, node in targets if node),
            replacements=self._replacements.get(id(step), ()), new_nodes=step.new_nodes, pods=step.pods,
            savings=step.savings, command=step.command,
        ))  # fmt: skip

    def _gave_up(self, step: st.GaveUp) -> None:
        of = [
            name for name, decided in self._decisions.items()
            if (step.command and decided.command == step.command)
            or any(target.node in step.nodes or target.claim in step.claims for target in decided.targets)
        ]  # fmt: skip
        failed = {name: self._decisions.pop(name) for name in of}
        claims = tuple(name for name in failed if name in self._objects)
        nodes = tuple(dict.fromkeys(t.node for decided in failed.values() for t in decided.targets if t.node))
        if failed:
            why = next(iter(failed.values())).why
            self._history.tell(step.at, seen.ControllerDecided(KARPENTER, why, seen.FAILED, claims, nodes))
        if step.error:
            self._history.tell(step.at, seen.ControllerSaid(KARPENTER, "error", step.error, claims, nodes))

    def _said(self, step: st.Said) -> None:
        self._history.tell(step.at, seen.ControllerSaid(
            KARPENTER, step.level, step.text, step.claims, step.nodes, step.pods, step.node_pools, refused=step.refused
        ))  # fmt: skip

    # ── objects ────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, name: str, at: int, *, in_service: bool = False) -> NodeClaimObject | None:
        """The claim's object; None for a claim that is over. One that was never met existed before, and is shown with
        what is known of it."""
        if not name or name in self._over:
            return None
        if name not in self._objects:
            claim = self._launch_known(NodeClaimObject(name, NodeClassRef("", "", ""), expire_after=None))
            known = self._known.claims.get(name)
            if known is not None and known.node and known.joined <= at:
                claim = replace(claim, node=known.node, conditions=_with(claim, "Registered", at))
            if claim.node and in_service:
                claim = replace(claim, conditions=_with(claim, "Initialized", at))
            self._show(at, *self._node_of(claim), claim)
        return self._objects[name]

    def _launch_known(self, claim: NodeClaimObject) -> NodeClaimObject:
        """The object with what the source tells of its launch anywhere."""
        known = self._known.claims.get(claim.name)
        if known is None:
            return claim
        labels = _labels({
            lbl.NODEPOOL: known.node_pool, lbl.INSTANCE_TYPE: known.instance_type, lbl.ZONE: known.zone,
            lbl.CAPACITY_TYPE: known.capacity_type,
        })  # fmt: skip
        return replace(claim, provider_id=claim.provider_id or known.provider_id, labels=labels | claim.labels)

    def _node_of(self, claim: NodeClaimObject) -> tuple[Node, ...]:
        """The claim's Node if it is new."""
        known = self._nodes.get(claim.node)
        if not claim.node or (known is not None and known.provider_id == claim.provider_id):
            return ()
        return (Node(claim.node, provider_id=claim.provider_id, labels=claim.labels),)

    def _goes(self, claim: NodeClaimObject, at: int) -> None:
        """A replacement that is not in service yet takes nothing away: then it goes for another cause (F-91)."""
        decided = self._decisions.get(claim.name)
        replacements = self._replacements.get(id(decided), ())
        waited_for = [name for name in replacements if not self._in_service(name)]
        if decided is not None and not claim.deleting and len(replacements) == decided.new_nodes and waited_for:
            self._history.tell(at, seen.ControllerDecided(
                KARPENTER, decided.why, seen.FAILED, (claim.name,), tuple(filter(None, (claim.node,)))
            ))  # fmt: skip
        self._show(at, replace(claim, deleting=claim.deleting or at))

    def _in_service(self, name: str) -> bool:
        claim = self._objects.get(name)
        return name in self._over or (claim is not None and condition_is_true(claim, "Initialized"))

    def _show(self, at: int, *payloads: Struct) -> None:
        """Tells of those objects that are new or have changed."""
        news: list[Struct] = []
        for payload in payloads:
            if isinstance(payload, NodeClaimObject):
                if self._objects.get(payload.name) == payload:
                    continue
                self._objects[payload.name] = payload
            elif isinstance(payload, Node):
                self._nodes[payload.name] = payload
            news.append(payload)
        self._history.tell(at, *news)


def _replacements(steps: Sequence[st.Step]) -> dict[int, tuple[str, ...]]:
    """Which claims were made for which decision (by id): those that the same run made, or in logs without runs those
    before the next decision. A run with several decisions leaves them unlinked (F-90)."""
    runs: dict[str, list[st.Decided]] = {}
    latest: st.Decided | None = None
    found: dict[int, list[str]] = {}
    for step in steps:
        if isinstance(step, st.Decided):
            runs.setdefault(step.run, []).append(step)
            latest = step
        elif isinstance(step, st.Created) and step.replaces:
            of = runs.get(step.run, []) if step.run else [latest] if latest is not None else []
            of = [decided for decided in of if decided.new_nodes]
            if len(of) == 1 and len(found.get(id(of[0]), ())) < of[0].new_nodes:
                found.setdefault(id(of[0]), []).append(step.claim)
    return {key: tuple(names) for key, names in found.items()}


def _labels(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if value}


def _with(claim: NodeClaimObject, condition: str, at: int) -> tuple[Condition, ...]:
    others = (known for known in claim.conditions if known.type != condition)
    return (*others, Condition(condition, "True", since=at))


def _message(claim: NodeClaimObject, step: st.Interrupted) -> seen.InterruptionSeen:
    instance = claim.provider_id.rpartition("/")[2]
    return seen.InterruptionSeen(f"{claim.name}/{step.kind}", step.kind, instance, sent=step.at)


def _said_of(claim: str, node: str) -> seen.ControllerDecided:
    nodes = (node,) if node else ()
    return seen.ControllerDecided(KARPENTER, DisruptionReason.INTERRUPTED.value, "delete", (claim,), nodes)


_TELL: dict[type[st.Step], Callable[[ClaimLives, Any], None]] = {
    st.Created: ClaimLives._created,
    st.Launched: ClaimLives._launched,
    st.LaunchFailed: ClaimLives._launch_failed,
    st.Registered: ClaimLives._registered,
    st.Initialized: ClaimLives._initialized,
    st.Decided: ClaimLives._decided,
    st.GaveUp: ClaimLives._gave_up,
    st.Interrupted: ClaimLives._interrupted,
    st.DeletionSeen: ClaimLives._deletion_seen,
    st.DrainBegan: ClaimLives._drain_began,
    st.NodeGone: ClaimLives._node_gone,
    st.ClaimGone: ClaimLives._claim_gone,
    st.Said: ClaimLives._said,
}
