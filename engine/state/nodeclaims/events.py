"""The fold of what concerns one NodeClaim: its own events, the answers to effects on it, and interruptions."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec
from msgspec import Struct

from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodeclass_terms import known_user_data
from kerf.engine.model.labels import ON_DEMAND, RESERVATION_ID, RESERVED, SPOT
from kerf.engine.nodeclaim.claim import Effect, NodeClaim, apply
from kerf.engine.nodeclaim.effect_keys import LAUNCH, TERMINATE, effect_key
from kerf.engine.nodeclaim.ephemeral_taints import counting_taints
from kerf.engine.nodeclaim.state_table import GOING, TERMINATED
from kerf.engine.record import observations as seen
from kerf.engine.record.claim_events import (
    UNLISTED,
    Adopted,
    DrainStarted,
    Initialized,
    InstanceVanished,
    Launched,
    LaunchFailed,
    ReasonRaised,
    Registered,
    Requested,
    Tainted,
    Untainted,
)  # fmt: skip
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    FindInstance,
    Intent,
    LaunchInstance,
    TerminateInstance,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state import moves
from kerf.engine.state.nodeclaims import drift
from kerf.engine.state.nodeclaims.adoption import demote
from kerf.engine.state.nodeclaims.messages import is_new
from kerf.engine.state.nodeclaims.unavailable import has_launched, is_remembered, remember, use_up
from kerf.engine.state.objects.nodepool_health import count_labels, count_registration
from kerf.engine.state.objects.static_nodepools import count_launch_failures
from kerf.engine.state.provisioning_window import (
    free_capacity_changed,
    is_going,
    leaves_limits,
    nomination_period,
    note_disruption_change,
)
from kerf.engine.state.state import Asked, LaunchedFor, Orphan, Search, State

MIN_BACKOFF = 1_000
MAX_BACKOFF = 60_000
MAX_ORPHAN_BACKOFF = 600_000
"""Who has taken the tags off an instance may have taken the right to end it, too."""
MAX_EVICTION_BACKOFF = 300_000
"""The reference goes on every 10 s (D-148). Here a budget that changes brings the retry at once; so that a budget which
never does costs no entry every 10 s, the pause grows."""
UNTIL_ANSWERED = 1 << 62  # while the answer is awaited
REFUSED_PLAN_PAUSE = 10_000  # S-57: when the same plan is tried again that was refused for a reason no plan can avoid
SEARCH_DELAY = 60_000
"""Within a minute EC2 shows every instance that it has started, also one whose launch nobody got an answer to."""


def claim_event(state: State, event: Any, entry: Entry) -> None:
    """Applies an event to its claim, and removes the claim from the state when it has ended."""
    facts = state.facts
    name: str = event.claim
    claim = facts.claims.get(name)
    if claim is None:
        claim = NodeClaim(name=name)
    unmet_before = claim.unmet
    apply(claim, event, at=entry.at, position=entry.position)
    facts.claims[name] = claim
    claim.version = entry.version
    index_claim(state, claim)
    if not facts.settings.observe:  # there the object goes on being what the claim follows
        facts.found.pop(name, None)
    if isinstance(event, Launched | Adopted):
        facts.launches.pop(name, None)
        facts.orphans.pop(event.instance, None)
        if isinstance(event, Adopted):
            drift.adopt_hashes(state, claim)
            if facts.imported is None or not facts.imported.captured:  # its pods may not all have been seen yet
                claim.nominated_until = entry.at + nomination_period(facts.settings)
        if isinstance(event, Launched) and (has_launched(facts, claim) or leaves_limits(facts, claim)):
            free_capacity_changed(state, entry.at)  # others may have waited for what this launch gave, or left
    elif isinstance(event, Requested):  # its launch was asked for by the decision that stands before it
        launch = facts.launches.get(name)
        asked = facts.intents.get(launch.again) if launch is not None else None
        if launch is not None and asked is not None:
            _attempt(claim, launch.again, asked.intent, asked.at)
    lost = _is_lost_on_its_way(claim, event)
    if lost or isinstance(event, Registered):
        _launched_for(state, claim, entry.at)
    if isinstance(event, Registered | Initialized):
        _tainted_for(state, claim, event.node)
    state.indexes.touched[name] = entry.position
    count_registration(state, claim, event, entry)
    count_labels(state, claim, event, unmet_before)
    count_launch_failures(state, claim.node_pool, event, entry, lost=lost)
    if claim.state in GOING:
        state.indexes.going[name] = None
    else:
        state.indexes.going.pop(name, None)
    moves.claim_event_happened(state, event, name, entry)
    if claim.state == TERMINATED:
        _claim_ended(state, claim, entry)
        if isinstance(event, InstanceVanished) and event.status == UNLISTED:
            # A listing goes by tags, which somebody may have taken off: it may run on, and nobody else would end it.
            facts.orphans[event.instance] = Orphan(name)
        if isinstance(event, LaunchFailed) and claim.pods and not _is_refusal_remembered(claim):
            again = entry.at + REFUSED_PLAN_PAUSE
            facts.retry_at = min(facts.retry_at or again, again)
        else:
            free_capacity_changed(state, entry.at)
    elif isinstance(event, Tainted | Untainted | ReasonRaised | Initialized | Adopted) or _sets_deadline(event):
        free_capacity_changed(state, entry.at)  # its pods, or those that wait for it, may need another place
        look_at_interrupted(state, entry)


def _is_lost_on_its_way(claim: NodeClaim, event: Struct) -> bool:
    """Whether a launched claim goes before its node joins, though nobody asked for that: it has expired already, or its
    instance ended. A registration that takes too long is its own pause."""
    if not claim.instance or claim.registered:
        return False
    expired = isinstance(event, Tainted) and event.why in (DisruptionReason.EXPIRED, DisruptionReason.INTERRUPTED)
    return expired or (isinstance(event, InstanceVanished) and event.status != UNLISTED)


def _launched_for(state: State, claim: NodeClaim, at: int) -> None:
    """Counts a node that has joined, or was lost on its way, for each pod that it was launched for (S-57), but not for
    pods of a node that has yet to go: they wait for nothing."""
    facts = state.facts
    for uid in claim.pods:
        pod, before = facts.pods.get(uid), facts.launched_for.get(uid)
        if before is not None and before.claim == claim.name:
            continue
        if pod is not None and (not pod.node or is_going(state, pod.node)):
            facts.launched_for[uid] = LaunchedFor(claim.name, at, before.times + 1 if before is not None else 1)


def _tainted_for(state: State, claim: NodeClaim, node_name: str) -> None:
    """Keeps the taints of a node that stay on it, for the pods that wait though it was launched for them."""
    node = state.facts.nodes.get(node_name)
    taints = counting_taints(node.taints, claim.startup_taints) if node is not None else ()
    for uid in claim.pods:
        latest = state.facts.launched_for.get(uid)
        if latest is not None and latest.claim == claim.name:
            state.facts.launched_for[uid] = msgspec.structs.replace(latest, taints=taints)


def _sets_deadline(event: object) -> bool:
    """Whether pods that nothing may evict leave the claim's node from now on at a known time."""
    return isinstance(event, DrainStarted) and event.deadline is not None


def look_at_interrupted(state: State, entry: Entry) -> None:
    """Looks again at interrupted claims: where their pods can go may have changed, and their drain waits for that
    (kerf.engine.lifecycle.drain.interruption_notice)."""
    for name in state.indexes.going:
        if state.facts.claims[name].interruption:
            state.indexes.touched[name] = entry.position


def index_claim(state: State, claim: NodeClaim) -> None:
    """Enters the claim into the indexes by provider id, instance and node, as far as these are known."""
    indexes = state.indexes
    if claim.provider_id and claim.provider_id not in indexes.claim_by_provider:
        indexes.claim_by_provider[claim.provider_id] = claim.name
        indexes.claim_by_instance[claim.instance] = claim.name
        for node in indexes.nodes_by_provider.get(claim.provider_id, {}):
            indexes.claim_by_node[node] = claim.name


def _claim_ended(state: State, claim: NodeClaim, entry: Entry) -> None:
    """Removes an ended claim. If a launch may still have started an instance, a search for that is noted."""
    facts, indexes = state.facts, state.indexes
    del facts.claims[claim.name]
    facts.over[claim.name] = entry.position
    order = facts.launches.pop(claim.name, None)
    if order is not None and not _refused_for_good(claim):
        facts.searches[claim.name] = Search(order, entry.at + SEARCH_DELAY)
    indexes.claim_by_provider.pop(claim.provider_id, None)
    indexes.claim_by_instance.pop(claim.instance, None)
    for node in indexes.nodes_by_provider.get(claim.provider_id, {}):
        indexes.claim_by_node.pop(node, None)
    for uid in indexes.waiting_for.pop(claim.name, {}):
        if uid in indexes.pending and not facts.pods[uid].unschedulable:
            facts.targets[uid] = ""  # it waits only because it was planned for, and goes on waiting (bursts.is_planned)
        else:
            facts.targets.pop(uid, None)
    indexes.touched.pop(claim.name, None)
    indexes.held_back.pop(claim.name, None)
    indexes.due.drop(claim.name)


def _is_refusal_remembered(claim: NodeClaim) -> bool:
    """Whether the refused offerings are marked as unavailable, so that the next plan avoids them."""
    errors = claim.answer.errors if claim.answer is not None else ()
    return any(map(is_remembered, errors))


def _refused_for_good(claim: NodeClaim) -> bool:
    """Whether the cloud has answered once, after one attempt, that it started nothing."""
    launch, answer = claim.effects.get(LAUNCH), claim.answer
    if launch is None or answer is None or launch.attempts > 1:
        return False
    return answer.kind in ("insufficient-capacity", "nodeclass-not-ready")


# ── answers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def launch_answered(state: State, answer: seen.LaunchAnswered, entry: Entry) -> None:
    """The cloud's answer: offerings refused for capacity are remembered (A-212, A-294), also beside a success."""
    facts = state.facts
    asked = facts.intents.get(answer.intent)
    doubts = asked is not None and isinstance(asked.intent, LaunchInstance) and asked.intent.doubts
    for error in answer.errors:
        remember(facts, error, entry.at + facts.settings.unavailable_for, doubts=doubts)
    if asked is not None and isinstance(asked.intent, FindInstance):
        _searched(state, answer, entry)
    _settle(state, answer.intent, ok=bool(answer.instance), code=answer.code, entry=entry)
    claim = facts.claims.get(answer.claim)
    held = _instance_of(claim)
    if claim is not None and not held:
        claim.answer, claim.answered = answer, entry.at
        state.indexes.touched[claim.name] = entry.position
    elif answer.instance and answer.instance != held:
        facts.orphans[answer.instance] = Orphan(answer.claim)


def _instance_of(claim: NodeClaim | None) -> str:
    """The claim's instance, also when `Launched` does not stand in the record yet."""
    if claim is None:
        return ""
    return claim.instance or (claim.answer.instance if claim.answer is not None else "")


def _searched(state: State, answer: seen.LaunchAnswered, entry: Entry) -> None:
    searches = state.facts.searches
    search = searches.get(answer.claim)
    if search is None:
        return
    if answer.instance or answer.kind == "not-found":
        del searches[answer.claim]
    else:
        at = entry.at + backoff(search.attempts, MAX_BACKOFF)
        searches[answer.claim] = Search(search.order, at, search.attempts)


def answered(state: State, answer: seen.EffectAnswered, entry: Entry) -> None:
    _settle(state, answer.intent, ok=answer.ok, code=answer.code, entry=entry)


def _settle(state: State, ref: str, *, ok: bool, code: str, entry: Entry) -> None:
    """Notes the outcome of an intent. After a failure it may be tried again; the pause doubles each time."""
    asked = state.facts.intents.pop(ref, None)
    if asked is None:
        return
    if _ends_orphan(asked.intent, state):
        _settle_orphan(state, asked.intent.instance, ok=ok, entry=entry)
        return
    claim = state.facts.claims.get(asked.intent.claim) or state.facts.lone.get(_lone(asked.intent))
    if claim is None:
        return
    effect = claim.effects.get(effect_key(asked.intent))
    if effect is None or effect.ref != ref:
        return
    effect.ok, effect.answered, effect.code = ok, entry.at, code
    if ok and isinstance(asked.intent, TerminateInstance):
        note_disruption_change(state.facts, entry.at)  # D-49: from now on it spends nothing of its NodePool's budgets
    if not ok:
        last = MAX_EVICTION_BACKOFF if isinstance(asked.intent, EvictPod) else MAX_BACKOFF
        effect.retry_at = entry.at + backoff(effect.attempts, last)
    state.indexes.touched[claim.name] = entry.position


def _ends_orphan(intent: Intent, state: State) -> TypeGuard[TerminateInstance]:
    """Whether it is about a surplus instance. Its claim may well live, with another instance."""
    return isinstance(intent, TerminateInstance) and intent.instance in state.facts.orphans


def _settle_orphan(state: State, instance: str, *, ok: bool, entry: Entry) -> None:
    """Notes the answer to the end of an instance that no claim has. It stays known until its Nodes are gone as well:
    nobody else takes their finalizer off, and their deletion may have failed."""
    orphan = state.facts.orphans[instance]
    if not ok:
        retry_at = entry.at + backoff(orphan.attempts, MAX_ORPHAN_BACKOFF)
    elif orphan.listed and nodes_of_instance(state, instance):
        retry_at = entry.at + MAX_BACKOFF
    else:
        del state.facts.orphans[instance]
        return
    state.facts.orphans[instance] = msgspec.structs.replace(orphan, retry_at=retry_at)


def nodes_of_instance(state: State, instance: str) -> list[str]:
    """The Nodes of an instance that no claim has: they go with it (L-238)."""
    found = (names for provider, names in state.indexes.nodes_by_provider.items() if provider.endswith(f"/{instance}"))
    return sorted(name for names in found for name in names)


def backoff(attempts: int, last: int) -> int:
    """1 s after the first attempt, then doubling up to `last` (ms)."""
    return min(last, MIN_BACKOFF << min(attempts - 1, 10))


def intent_made(state: State, ref: str, intent: Intent, at: int) -> None:
    """Notes an effect that a decision asked for, and that has no outcome yet."""
    facts = state.facts
    if isinstance(intent, LaunchInstance) and not intent.again:
        known = facts.node_classes.get(intent.node_class.key)
        intent = msgspec.structs.replace(intent, user_data=known_user_data(known.terms) if known is not None else "")
        facts.launches[intent.claim] = msgspec.structs.replace(intent, again=ref)
    facts.intents[ref] = Asked(intent, at)
    claim = facts.claims.get(intent.claim)
    if _ends_orphan(intent, state):
        orphan = facts.orphans[intent.instance]  # not again until this attempt is answered
        attempts = orphan.attempts + 1
        facts.orphans[intent.instance] = msgspec.structs.replace(orphan, attempts=attempts, retry_at=UNTIL_ANSWERED)
    elif claim is not None:
        _attempt(claim, ref, intent, at)
    elif _lone(intent):
        _attempt(facts.lone.setdefault(_lone(intent), NodeClaim("")), ref, intent, at)
    elif isinstance(intent, FindInstance):
        search = facts.searches.get(intent.claim)
        if search is not None:
            facts.searches[intent.claim] = Search(search.order, UNTIL_ANSWERED, search.attempts + 1)


def _lone(intent: Intent) -> str:
    """The Node without a claim that the intent is about (W-80); "" for none."""
    return "" if intent.claim else str(getattr(intent, "node", ""))


def _attempt(claim: NodeClaim, ref: str, intent: Intent, at: int) -> None:
    key = effect_key(intent)
    before = claim.effects.get(key)
    pod = f"{intent.namespace}/{intent.name}" if isinstance(intent, EvictPod | DeletePod) else ""
    grace = intent.grace if isinstance(intent, DeletePod) else 0
    effect = Effect(ref=ref, asked=at, pod=pod, grace=grace)
    if before is not None:
        if isinstance(intent, TerminateInstance | DeleteNode):  # how long these take is told
            effect.began, effect.was_accepted = before.first_asked, before.accepted
        effect.attempts, effect.done = before.attempts + 1, before.done + bool(before.ok)
    claim.effects[key] = effect


def interrupted(state: State, message: seen.InterruptionSeen, entry: Entry) -> None:
    """Note an interruption; duplicates and messages about foreign instances change nothing (A-344, A-354), nor does the
    news of an end that kerf itself has asked for: the claim goes for the reason that it had (A-362)."""
    facts = state.facts
    if not is_new(state, message.message, entry.at):
        return
    name = state.indexes.claim_by_instance.get(message.instance)
    if name is None or message.kind == "rebalance_recommendation":
        return
    claim = facts.claims[name]
    if message.kind in seen.ENDS and claim.effect(TERMINATE) is not None:
        return
    if message.kind == "spot_interrupted" and claim.zone:
        key = f"{SPOT}|{claim.instance_type}|{claim.zone}"
        facts.unavailable[key] = entry.at + facts.settings.unavailable_for
    if message.kind == seen.TAKEN_BACK:
        use_up(facts, claim.labels.get(RESERVATION_ID, ""))
    fails_now = message.kind in seen.FAILED_CHECKS and claim.interruption not in seen.FAILED_CHECKS
    if not claim.interruption or fails_now:  # a notice that was given before counts no more
        claim.interruption = message.kind
        claim.interrupted = min(message.sent or entry.at, entry.at)
        state.indexes.touched[name] = entry.position


def deletion_seen(state: State, deletion: seen.NodeClaimDeletionSeen, entry: Entry) -> None:
    claim = state.facts.claims.get(deletion.claim)
    if claim is not None and not claim.deletion:
        claim.deletion = deletion.actor or "unknown"
        state.indexes.touched[claim.name] = entry.position


def controller_decided(state: State, decided: seen.ControllerDecided, entry: Entry) -> None:
    """Note why another controller takes claims away. A decision that failed is none any more (F-91)."""
    for name in decided.claims:
        claim = state.facts.claims.get(name)
        if claim is not None:
            claim.announced = "" if decided.action == seen.FAILED else decided.why


def instance_seen(state: State, instance: seen.InstanceSeen, entry: Entry) -> None:
    if instance.status == "gone" and not nodes_of_instance(state, instance.instance):
        state.facts.orphans.pop(instance.instance, None)
    name = state.indexes.claim_by_instance.get(instance.instance)
    if name is not None:
        claim = state.facts.claims[name]
        claim.instance_status = instance.status
        if instance.capacity_type and drift.reservation_in_question(state.facts, claim):
            claim.off_selection = instance.capacity_type == RESERVED
            if instance.capacity_type == ON_DEMAND:
                demote(state, claim, entry)
        state.indexes.touched[name] = entry.position
