"""Which features seeds have exercised, so that one at 0 is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kerf.engine.model.labels import ON_DEMAND
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LifecycleResult,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer, InstanceSeen, InstancesListed, TimeSetBack
from kerf.engine.scheduling.reasons import SchedulingCode

FEATURES = {
    "clocks: a step forward": "scenario: clock: forward",
    "clocks: a step back": "scenario: clock: back",
    "clocks: a drift": "scenario: clock: drift",
    "clocks: a machine that sleeps": "scenario: clock: suspend",
    "clocks: two replicas that disagree": "scenario: clock: replicas disagree",
    "clocks: in doubt": "seen: clocks differ",
    "clocks: agree again": "seen: clocks agree",
    "clocks: a record that is ahead is set back": "seen: time set back",
    "launch: spot": "launched: spot",
    "launch: on-demand": "launched: on-demand",
    "launch: reserved capacity": "launched: reserved",
    "launch: what was reserved runs on as on-demand": "seen: demoted",
    "launch: given up after its time": "record: claim.launch-timed-out",
    "launch: NodeClass is not ready": "failed: nodeclass-not-ready",
    "launch: no capacity": "failed: insufficient-capacity",
    "launch: zones that refuse for hours": "scenario: zones that refuse for hours",
    "launch: what is in doubt comes first": "planned: in-doubt",
    "a NodePool of a fixed size: grows": "decided: static-scale-up",
    "a NodePool of a fixed size: shrinks": "record: why overprovisioned",
    "a NodePool of a fixed size: drifts": "proposed: drifted, static",
    "NodeOverlays change what is bought": "planned: overlaid",
    "CapacityBuffers keep room": "planned: for a buffer",
    "devices: nodes are launched for them": "planned: for devices",
    "adoption: the record is lost": "fault: process killed, record lost",
    "adoption: claims are adopted": "record: claim.adopted",
    "office: another process takes it": "fault: writer fenced (KERF103)",
    "repair: an unhealthy node goes": "record: why unhealthy",
    "repair: held back, too many are ill": "said: repair-blocked",
    "interruption": "record: why interrupted",
    "expiration": "record: why expired",
    "deletion by users": "record: why deleted",
    "a node that never registers": "record: why registration-timeout",
    "an instance that vanishes": "record: claim.instance-vanished",
    "drift": "record: why drifted",
    "a label that no launch gives: launched for it": "seen: label not given",
    "a label that no launch gives: no more launches": "planned: label-not-given",
    "emptiness": "record: why empty",
    "consolidation: removal": "proposed: underutilized, removal",
    "consolidation: replacement": "proposed: underutilized, replacement",
    "consolidation: a set that goes at once, by turns": "proposed: by turns",
    "Balanced refuses a move": "said: not-worth-it",
    "replacement first, and it fails": "record: move abandoned",
    "second look: withdrawn": "record: move withdrawn",
    "a stronger reason": "record: claim.reason-raised",
    "a budget holds a node": "said: budget",
    "a PodDisruptionBudget holds a node": "said: pod-budget-exhausted",
    "do-not-disrupt: of a pod": "said: pod-do-not-disrupt",
    "do-not-disrupt: of a node": "said: do-not-disrupt",
    "termination: evictions": "act: evict",
    "termination: by force, for the grace period": "record: claim.pod-forced",
    "termination: volumes are waited for": "record: claim.volumes-detached",
    "termination: a Node without a NodeClaim": "said: node-without-claim",
    "the taint is taken off again": "act: untaint",
    "orphans are ended": "said: terminate-orphan",
    "instances without a claim are ended": "said: terminate-unclaimed",
}
"""What it is → by what it is counted."""


_COUNTED = {SchedulingCode.IN_DOUBT.value, SchedulingCode.LABEL_NOT_GIVEN.value}
_CLOCKS: dict[type, str] = {
    ClocksDiffer: "seen: clocks differ",
    ClocksAgree: "seen: clocks agree",
    TimeSetBack: "seen: time set back",
}


def counted(entries: Iterable[Entry]) -> Counter[str]:
    """What a record has of them besides its claims' events."""
    found: Counter[str] = Counter()
    for entry in entries:
        found.update(_seen(entry.payload))
    return found


def _seen(payload: object) -> Iterator[str]:
    if isinstance(payload, ev.Launched):
        yield f"launched: {payload.capacity_type}"
        yield from ("seen: label not given" for _ in payload.unmet)
    elif isinstance(payload, ev.LaunchFailed):
        yield f"failed: {payload.kind}"
    elif isinstance(payload, InstancesListed):
        yield from ("seen: demoted" for _ in payload.demoted)
    elif isinstance(payload, InstanceSeen) and payload.capacity_type == ON_DEMAND:
        yield "seen: demoted"
    elif type(payload) in _CLOCKS:
        yield _CLOCKS[type(payload)]
    elif isinstance(payload, Decision):
        yield from _decided(payload)


def _decided(decision: Decision) -> Iterator[str]:
    result = decision.result
    if decision.decider == "static" and decision.intents:
        yield "decided: static-scale-up"
    if isinstance(result, ProvisionResult):
        codes = {reason.code for group in result.unplaced for reason in group.reasons}
        yield from (f"planned: {code}" for code in codes & _COUNTED)
        yield from ("planned: overlaid" for claim in result.claims if claim.overlaid)
        yield from ("planned: for devices" for claim in result.claims if claim.drivers)
        yield from ("planned: for a buffer" for claim in result.claims if any("buffer" in pod for pod in claim.pods))
    elif isinstance(result, LifecycleResult):
        yield f"said: {result.reason.code}"
    elif isinstance(result, ProposedMovesResult):
        yield from (f"proposed: {_kind(move)}" for move in result.proposed)
        yield from ("proposed: by turns" for move in result.proposed if move.turns)
    if isinstance(result, DisruptResult | ProposedMovesResult | MoveStepResult):
        yield from (f"said: {verdict.reason.code}" for verdict in result.verdicts)


def _kind(move: Move) -> str:
    if move.why == "drifted":
        static = move.replacements and not any(new.pods for new in move.replacements)
        return "drifted, static" if static else "drifted"
    return f"{move.why}, {'replacement' if move.replacements else 'removal'}"


def table(exercised: Counter[str]) -> list[str]:
    """A line a feature; those that never happened are marked."""
    rows = []
    for name, key in FEATURES.items():
        count = exercised[key]
        rows.append(f"  {count:8} {name}{'' if count else '   <- NEVER'}")
    return rows
