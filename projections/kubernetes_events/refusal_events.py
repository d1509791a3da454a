"""Make Events of what the cloud cannot launch by: a NodeClass that is not there, a spot role that is not (A-139, A-218,
A-296, L-465).

Karpenter gives these Events no reason. A reason is what Events are searched by, so here they have one.
"""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.model.karpenter.launch_reasons import NO_SPOT_ROLE, SPOT_ROLE_FAILED
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.labels import RESERVED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.observations import LaunchAnswered
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import WARNING, KubernetesEvent, ObjectReference
from kerf.projections.kubernetes_events.references import References, escaped, events_about

NO_NODE_CLASS = "FailedResolvingNodeClass"
_MAX_ERROR = 300  # characters of a launch error (L-454)


def pools_without_class(
    state: State, concerns: Callable[[NodePool], bool] = lambda pool: True
) -> list[KubernetesEvent]:
    """Tell NodePools that their NodeClass is missing or being deleted (A-139), those that `concerns` takes."""
    events: list[KubernetesEvent] = []
    for name in sorted(state.facts.pools):
        pool = state.facts.pools[name]
        why = _missing(pool, state)
        if why and not pool.deleting and concerns(pool):
            text = escaped(f"Failed resolving NodeClass: {pool.node_class.kind}/{pool.node_class.name} {why}")
            events += events_about([References(state).pool(name)], WARNING, NO_NODE_CLASS, text)
    return events


def of_another_controller(pool: NodePool, state: State) -> bool:
    """Return whether the NodePool's NodeClass is of a kind that kerf launches nothing for (L-48)."""
    ref, ours = pool.node_class, state.facts.settings.node_classes
    return bool(ours) and ours != f"{ref.group}/{ref.kind}"


def _missing(pool: NodePool, state: State) -> str:
    """Say what is wrong with the NodeClass of a NodePool: "" if it is there, or another controller's (L-48)."""
    if of_another_controller(pool, state):
        return ""
    ref = pool.node_class
    known = state.facts.node_classes.get(ref.key)
    if known is None:
        return "is not there"
    return "is being deleted" if known.reason == "Deleting" else ""


def claim_without_class(event: ev.LaunchFailed) -> list[KubernetesEvent]:
    """Tell a claim that its NodeClass was missing when it was to be launched (A-218). The claim is over, but its object
    may still show for a moment."""
    if event.code != "NodeClassNotFound":
        return []
    text = f"Failed resolving NodeClass: {event.message}"[:_MAX_ERROR]
    return [KubernetesEvent(_claim(event.claim), WARNING, NO_NODE_CLASS, text, (event.claim,))]


def without_spot_role(answer: LaunchAnswered) -> list[KubernetesEvent]:
    """Tell a claim that spot instances need a service-linked role that is missing, even if another offering served it
    (A-296)."""
    codes = {error.code for error in answer.errors if error.capacity_type != RESERVED}
    if NO_SPOT_ROLE not in codes and answer.code != SPOT_ROLE_FAILED:
        return []
    text = (
        f"Failed to launch a spot instance: {NO_SPOT_ROLE}. The account lacks the service-linked role for spot, and "
        "kerf may not create it: run `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`"
    )
    return [KubernetesEvent(_claim(answer.claim), WARNING, SPOT_ROLE_FAILED, text, (answer.claim,))]


def _claim(name: str) -> ObjectReference:
    return ObjectReference("karpenter.sh/v1", "NodeClaim", name)
