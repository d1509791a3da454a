"""Volumes that must be detached before an instance may end, so that they can be attached elsewhere at once (L-199,
D-155, D-156). kerf never deletes a VolumeAttachment."""

from __future__ import annotations

from kerf.engine.lifecycle.drain.pods import drainable
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, wait
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record import claim_events as ev
from kerf.engine.scheduling.pods.pod_volumes import claim_names
from kerf.engine.state.state import State

MAX_VOLUMES_NAMED = 5
"""How many volumes a reason names (EV-17)."""


def attached(node: Node, state: State, now: int) -> tuple[str, ...]:
    """The PersistentVolumes whose detachment is awaited, by name: all that are attached to the node, except those of
    pods that stay on it."""
    facts = state.facts
    attachments = (facts.attachments[name] for name in state.indexes.attachments_by_node.get(node.name, {}))
    found = {attachment.volume for attachment in attachments if attachment.volume}
    return tuple(sorted(found - _staying(node, state, now))) if found else ()


def _staying(node: Node, state: State, now: int) -> set[str]:
    """The volumes of pods that are not drained. A PersistentVolumeClaim that is missing counts as none."""
    facts = state.facts
    volumes: set[str] = set()
    for uid in state.indexes.pods_by_node.get(node.name, {}):
        pod = facts.pods[uid]
        if not drainable(pod, state, now):
            names = claim_names(pod.namespace, pod.name, state.indexes.blobs.shape(pod.shape))
            volumes.update(facts.volume_claims[name].volume for name in names if name in facts.volume_claims)
    return volumes


def detach(claim: NodeClaim, node: Node, state: State, now: int) -> Step | None:
    """The wait for the volumes of a drained node, or its end; None if there is nothing to wait for."""
    if not claim.volumes or claim.detached:
        return None
    left = attached(node, state, now)
    if left and (claim.deadline is None or now <= claim.deadline):
        due = claim.deadline + 1 if claim.deadline is not None else 0
        return wait(LifecycleCode.WAITING_FOR_VOLUMES, due=due, volumes=list(left[:MAX_VOLUMES_NAMED]), count=len(left))
    detached = ev.VolumesDetached(claim.name, now - claim.drained, left)
    code = LifecycleCode.VOLUMES_LEFT if left else LifecycleCode.VOLUMES_DETACHED
    return Step(events=(detached,), reason=Reason.of(code))
