"""Compute the conditions of a NodeClaim object from the state (L-66…L-79, C-1…C-6).

Whoever writes them compares them with what is there.
"""

from __future__ import annotations

from kerf.engine.disruption.cluster_from_state import quiet_at
from kerf.engine.lifecycle.initialization import not_initialized_because
from kerf.engine.lifecycle.published_devices import drivers_missing
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DriftReason, karpenter_spelling
from kerf.engine.model.karpenter.launch_reasons import LAUNCH_FAILED, LAUNCH_REASONS
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.effect_keys import TERMINATE
from kerf.engine.record.claim_events import Drained, Initialized, Launched, Registered, VolumesDetached
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State
from kerf.projections.prose.reasons import sentence

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
Reached = Launched | Registered | Initialized | Drained | VolumesDetached
"""Ends the time in which the condition of its name is Unknown."""
WAITING, WAITING_WORDS = "AwaitingReconciliation", "object is awaiting reconciliation"
AWAITING_VOLUMES, ELAPSED = "AwaitingVolumeDetachment", "TerminationGracePeriodElapsed"
_MAX_LAUNCH_ERROR = 300  # characters of a launch error (L-155)
CREATE_ERRORS = LAUNCH_REASONS | {"NoLaunchableOffer", "NodeClassReadinessUnknown"}
"""Codes of failed launches that are reasons of their own (L-154, A-299 to A-313). Any other is LaunchFailed (L-155)."""


def claim_conditions(claim: NodeClaim, state: State, now: int) -> tuple[Condition, ...]:
    """Return the conditions at `now` (ms since the epoch). Consolidatable follows from time alone, once pods have been
    quiet for long enough (D-55)."""
    dependents = (_launched(claim), _registered(claim, state), _initialized(claim, state))
    independent = (
        _consolidatable(claim, state, now),
        _drifted(claim),
        _consistent(claim),
        _disrupted(claim),
        _drained(claim),
        _detached(claim),
        _terminating(claim),
    )
    return (*dependents, _ready(dependents, claim), *(condition for condition in independent if condition is not None))


# ── what Ready follows from ─────────────────────────────────────────────────────────────────────────────────────────


def _launched(claim: NodeClaim) -> Condition:
    """The condition Launched: never False, since what failed is tried again. Its reason is the cloud's, if that gave
    one (L-70, L-154, L-155)."""
    if claim.launched:
        return Condition("Launched", TRUE, "Launched", since=claim.launched)
    answer = claim.answer
    if answer is None or answer.instance or not answer.message:
        return _waiting("Launched", claim)
    return Condition("Launched", UNKNOWN, *launch_failure(answer.code, answer.message), claim.created)


def launch_failure(code: str, message: str) -> tuple[str, str]:
    """Return reason and message of a condition that tells of a failed launch (L-154, L-155). Not each code may be a
    reason to the API server: KWOK's are HTTP statuses."""
    text = message if len(message) <= _MAX_LAUNCH_ERROR else f"{message[:_MAX_LAUNCH_ERROR]}..."
    return code if code in CREATE_ERRORS else LAUNCH_FAILED, text


def _registered(claim: NodeClaim, state: State) -> Condition:
    """The condition Registered, with what it waits for (L-71)."""
    if claim.registered:
        return Condition("Registered", TRUE, "Registered", since=claim.registered)
    if not claim.launched:
        return _waiting("Registered", claim)
    if len(state.indexes.nodes_by_provider.get(claim.provider_id, {})) > 1:
        words = "several Nodes have its provider id"
        return Condition("Registered", FALSE, "MultipleNodesFound", words, claim.created)
    if node_of(claim, state) is None:
        return Condition(
            "Registered", UNKNOWN, *_reason_and_message(Reason.of(LifecycleCode.NODE_NOT_FOUND)), claim.created
        )
    return _waiting("Registered", claim)


def _initialized(claim: NodeClaim, state: State) -> Condition:
    """The condition Initialized, with the first check that fails (L-72)."""
    if claim.initialized:
        return Condition("Initialized", TRUE, "Initialized", since=claim.initialized)
    if not claim.registered:
        return _waiting("Initialized", claim)
    node = node_of(claim, state)
    missing: Reason | None = Reason.of(LifecycleCode.NODE_NOT_FOUND)
    if node is not None:
        missing = not_initialized_because(claim, node) or drivers_missing(claim, node, state)
    if missing is None:
        return _waiting("Initialized", claim)
    return Condition("Initialized", UNKNOWN, *_reason_and_message(missing), claim.created)


def _ready(dependents: tuple[Condition, ...], claim: NodeClaim) -> Condition:
    """The condition Ready, which follows from the others (L-68)."""
    bad = [dependent for dependent in dependents if dependent.status != TRUE]
    if not bad:
        return Condition("Ready", TRUE, "Ready", since=claim.initialized)
    words = ", ".join(f"{dependent.type}={dependent.status}" for dependent in bad)
    if any(dependent.status == FALSE for dependent in bad):
        return Condition("Ready", FALSE, "UnhealthyDependents", words, claim.created)
    return Condition("Ready", UNKNOWN, "ReconcilingDependents", words, claim.created)


# ── what stands for itself ──────────────────────────────────────────────────────────────────────────────────────────


def _consolidatable(claim: NodeClaim, state: State, now: int) -> Condition | None:
    """The condition Consolidatable, once consolidateAfter is over (C-1)."""
    since = quiet_at(claim, state)
    return Condition("Consolidatable", TRUE, "Consolidatable", since=since) if since <= now else None


def _drifted(claim: NodeClaim) -> Condition | None:
    """The condition Drifted: its reason is also its message (C-2)."""
    if claim.drift is None:
        return None
    reason = drift_condition(claim.drift)
    return Condition("Drifted", TRUE, reason, reason, claim.drifted_since)


def reached(event: Reached) -> tuple[str, str, str]:
    """Return type, status and reason of the condition that an event brings."""
    kind = type(event).__name__
    if isinstance(event, VolumesDetached) and event.left:  # L-199
        return kind, FALSE, ELAPSED
    return kind, TRUE, kind


def drift_condition(drift: Reason) -> str:
    """Return the reason of the condition Drifted (C-2)."""
    return next((known.condition for known in DriftReason if known == drift.code), drift.code)


def _consistent(claim: NodeClaim) -> Condition | None:
    """The condition ConsistentStateFound: the Node has the capacity that was expected (L-76, L-241)."""
    if not claim.initialized:
        return None
    kind, since = "ConsistentStateFound", claim.inconsistent_changed or claim.initialized
    if not claim.inconsistent:
        return Condition(kind, TRUE, kind, since=since)
    words = f"the Node has less than 90% of the capacity expected of {', '.join(claim.inconsistent)}"
    return Condition(kind, FALSE, "ConsistencyCheckFailed", words, since)


def _disrupted(claim: NodeClaim) -> Condition | None:
    """The condition DisruptionReason (C-3), for all reasons to go, also for those for which Karpenter sets none."""
    if not (claim.why and claim.tainted):
        return None
    return Condition("DisruptionReason", TRUE, *goes_for(claim.why, claim.detail), claim.tainted)


def goes_for(why: str, detail: str) -> tuple[str, str]:
    """Return reason and message of the condition DisruptionReason (C-3, L-75)."""
    reason = karpenter_spelling(why)
    return reason, reason if why in BUDGET_REASONS else detail


def _drained(claim: NodeClaim) -> Condition | None:
    """The condition Drained. While it is Unknown its reason is also its message (C-4, D-146)."""
    if claim.drained:
        return Condition("Drained", TRUE, "Drained", since=claim.drained)
    return Condition("Drained", UNKNOWN, "Draining", "Draining", claim.drain_started) if claim.drain_started else None


def _detached(claim: NodeClaim) -> Condition | None:
    """The condition VolumesDetached. Unless it is True its reason is also its message (C-5)."""
    if not claim.drained:
        return None
    kind = "VolumesDetached"
    if claim.volumes and not claim.detached:
        return Condition(kind, UNKNOWN, AWAITING_VOLUMES, AWAITING_VOLUMES, claim.drained)
    if claim.volumes and claim.deadline is not None and claim.detached >= claim.deadline:  # D-156
        return Condition(kind, FALSE, ELAPSED, ELAPSED, claim.detached)
    return Condition(kind, TRUE, kind, since=claim.detached or claim.drained)


def _terminating(claim: NodeClaim) -> Condition | None:
    """The condition InstanceTerminating: the cloud accepted the order to end the instance (C-6, D-157). It stays while
    the order is repeated, as it is for an instance that takes longer than a minute."""
    effect = claim.effect(TERMINATE)
    if effect is None or not effect.accepted:
        return None
    return Condition("InstanceTerminating", TRUE, "InstanceTerminating", since=effect.accepted)


def _waiting(kind: str, claim: NodeClaim) -> Condition:
    """A condition of which nothing is known yet (L-66)."""
    return Condition(kind, UNKNOWN, WAITING, WAITING_WORDS, claim.created)


def _reason_and_message(reason: Reason) -> tuple[str, str]:
    return karpenter_spelling(reason.code).replace("DraDriver", "DRADriver"), sentence(reason)  # L-175
