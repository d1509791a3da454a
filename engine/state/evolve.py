"""`evolve(state, entry)`: the one function that changes the state, live, in replay and in tests.

Handlers are found by the payload's type. They must stay cheap: a record of a million entries is folded through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import deviation
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, is_active, is_reschedulable, is_terminal, owned_by
from kerf.engine.nodeclaim.claim import Effect, NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record import observations as seen
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.state import pod_bursts as burst
from kerf.engine.state.decisions import decided
from kerf.engine.state.nodeclaims.adoption import ADOPTION_HANDLERS, claim_object_gone
from kerf.engine.state.nodeclaims.drift import catalogue_kept, class_kept, pool_kept
from kerf.engine.state.nodeclaims.events import answered, claim_event, interrupted, launch_answered, nodes_of_instance
from kerf.engine.state.objects import nodepool_health as health
from kerf.engine.state.objects.capacity_reservations import RESERVATION_HANDLERS
from kerf.engine.state.objects.daemonsets import daemon_pod_seen, daemonset_gone, daemonset_seen
from kerf.engine.state.objects.devices import DEVICE_HANDLERS, DEVICE_KINDS, device_gone
from kerf.engine.state.objects.feature_gated import EXTENSION_HANDLERS, EXTENSION_KINDS, extension_gone
from kerf.engine.state.objects.static_nodepools import forget_pool, gate_seen, look_at_all, look_at_pool
from kerf.engine.state.objects.volumes import VOLUME_HANDLERS, VOLUME_KINDS, volume_gone
from kerf.engine.state.pod_nominations import note_nomination, waits, waits_untried
from kerf.engine.state.provisioning_window import keeps_room, nomination, room_changed, trigger, unsettle
from kerf.engine.state.record_cut import CUT_HANDLERS
from kerf.engine.state.state import State

BUDGET_CODES = ("429", "500")  # what the eviction API says when one PodDisruptionBudget, or several, forbid it (D-150)
POD_EVENT_GRAIN = 10_000  # D-57: a pod event within 10 s of the stored one changes nothing


def evolve(state: State, entry: Entry) -> None:
    """Folds one entry. Raises TransitionRefused (KERF701) for a claim event that the state table does not allow."""
    facts = state.facts
    payload = entry.payload
    handler = _HANDLERS.get(type(payload))
    if handler is not None:
        handler(state, payload, entry)
    facts.position = entry.position
    facts.at = entry.at
    facts.streams[entry.stream] = entry.version


# ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pod_seen(state: State, pod: Pod, entry: Entry) -> None:
    facts, ix = state.facts, state.ix
    uid = pod.uid
    old = facts.pods.get(uid)
    facts.pods[uid] = pod
    note_nomination(state, pod)
    daemon_pod_seen(state, pod, entry)
    if pod.node or (old is not None and old.node):
        _bound(state, old, pod, entry)
    if pod.unschedulable and waits(facts, pod):
        otherwise = old is not None and _asks_otherwise(state, old, pod)
        burst.refused(state, pod, old, entry.at, otherwise=otherwise)
        return
    if pod.untried and waits_untried(facts, pod):
        burst.arrived(state, pod, entry.at)
        if uid not in ix.pending or burst.is_planned(state, uid):
            return
    facts.arrived.pop(uid, None)
    if uid in ix.pending:
        _settled(state, uid, entry)


def _asks_otherwise(state: State, old: Pod, new: Pod) -> bool:
    """A claim may turn out not to be needed (S-195)."""
    shape = state.ix.blobs.shape
    return old.shape != new.shape and shape(old.shape).resource_claims != shape(new.shape).resource_claims


def _bound(state: State, old: Pod | None, pod: Pod, entry: Entry) -> None:
    ix = state.ix
    was = old.node if old is not None and not is_terminal(old) else ""
    now = pod.node if not is_terminal(pod) else ""
    if was != now:
        if was:
            ix.pods_by_node.get(was, {}).pop(pod.uid, None)
            _expected_no_more(state, pod.uid, entry)
        if now:
            ix.pods_by_node.setdefault(now, {})[pod.uid] = None
        if keeps_room(state.facts):  # a pod has taken room that a buffer keeps, or given some back
            trigger(state.facts, entry.at)
    if was != now or (old is not None and _hold(old) != _hold(pod)):
        unsettle(state.facts, entry.at)
    name = ix.claim_by_node.get(pod.node)
    if name is not None:
        ix.touched[name] = entry.position
        freed = was != now or (old is not None and old.do_not_disrupt != pod.do_not_disrupt)
        if freed and name in ix.going and is_reschedulable(pod):  # D-159: it may need a place that no plan had for it
            trigger(state.facts, entry.at)
        changed = was != now or (old is not None and old.deleting != pod.deleting)
        if changed:
            _pod_event(state.facts.claims[name], pod, entry.at)


def _hold(pod: Pod) -> tuple[object, ...]:
    """What decides whether a pod holds its node, and what it costs to move it."""
    return pod.deleting, pod.do_not_disrupt, pod.deletion_cost


def _pod_event(claim: NodeClaim, pod: Pod, at: int) -> None:
    """D-57: a bind, an end or a deletion of a pod on a claim's node restarts its quiet time."""
    if not owned_by(pod, DAEMONSET) and at - claim.last_pod_event >= POD_EVENT_GRAIN:
        claim.last_pod_event = at


def _settled(state: State, uid: str, entry: Entry) -> None:
    """A pod no longer waits: bound, gone, gated or taken by somebody else."""
    del state.ix.pending[uid]
    if not state.ix.pending and not state.ix.going and not keeps_room(state.facts):
        state.facts.batch_opened = state.facts.batch_last = state.facts.retry_at = 0  # S-51: nobody is left to plan for
    _expected_no_more(state, uid, entry)


def _expected_no_more(state: State, uid: str, entry: Entry) -> None:
    """The claim that a plan put this pod on need not wait for it any more."""
    target = state.facts.targets.pop(uid, "")
    if target:
        state.ix.waiting_for.get(target, {}).pop(uid, None)
        state.ix.touched[target] = entry.position


def _pod_gone(state: State, uid: str, entry: Entry) -> None:
    facts, ix = state.facts, state.ix
    pod = facts.pods.pop(uid, None)
    if pod is None:
        return
    facts.nominations.pop(uid, None)
    facts.arrived.pop(uid, None)
    if pod.node:
        unsettle(facts, entry.at)
        ix.pods_by_node.get(pod.node, {}).pop(uid, None)
        name = ix.claim_by_node.get(pod.node)
        if name is not None:
            ix.touched[name] = entry.position
            if is_active(pod):  # it ended without a grace period: nobody saw it terminate
                _pod_event(facts.claims[name], pod, entry.at)
    claim = facts.claims.get(facts.targets.get(uid, ""))
    if claim is not None:  # D-8: the pod that takes its place shows in a moment
        claim.nominated_until = max(claim.nominated_until, entry.at + nomination(facts.settings))
    if uid in ix.pending:
        _settled(state, uid, entry)
    else:
        _expected_no_more(state, uid, entry)


# ── nodes and the rest of the cluster ──────────────────────────────────────────────────────────────────────────────


def _node_seen(state: State, node: Node, entry: Entry) -> None:
    ix = state.ix
    old = state.facts.nodes.get(node.name)
    if old == node:
        return
    if old is not None and old.provider_id != node.provider_id:
        _unlink(state, old, entry)  # another instance took its name
    state.facts.nodes[node.name] = node
    if node.deleting:
        ix.deleted_nodes[node.name] = None
    else:  # another Node took its name while nobody watched
        ix.deleted_nodes.pop(node.name, None)
        state.facts.lone.pop(node.name, None)
    if node.provider_id:
        ix.nodes_by_provider.setdefault(node.provider_id, {})[node.name] = None
        claim = ix.claim_by_provider.get(node.provider_id)
        if claim is not None:
            ix.claim_by_node[node.name] = claim
            ix.touched[claim] = entry.position
    if _in_service(state, node) and (old is None or _room(old) != _room(node)):
        room_changed(state, entry.at)
    if old is None or (_room(old), old.ready, old.annotations) != (_room(node), node.ready, node.annotations):
        unsettle(state.facts, entry.at)


def _in_service(state: State, node: Node) -> bool:
    """Whether pods are placed by what the Node itself says (S-71)."""
    claim = state.facts.claims.get(state.ix.claim_by_node.get(node.name, ""))
    return claim.state == INITIALIZED if claim is not None else lbl.NODEPOOL not in node.labels


def _room(node: Node) -> tuple[object, ...]:
    return node.labels, node.taints, node.allocatable, node.deleting


def _node_gone(state: State, name: str, entry: Entry) -> None:
    node = state.facts.nodes.pop(name, None)
    state.facts.lone.pop(name, None)
    state.ix.deleted_nodes.pop(name, None)
    if node is not None:
        _unlink(state, node, entry)
        room_changed(state, entry.at)


def _unlink(state: State, node: Node, entry: Entry) -> None:
    ix = state.ix
    names = ix.nodes_by_provider.get(node.provider_id, {})
    names.pop(node.name, None)
    if not names:
        ix.nodes_by_provider.pop(node.provider_id, None)
    claim = ix.claim_by_node.pop(node.name, None)
    if claim is not None:
        ix.touched[claim] = entry.position


def _pool_seen(state: State, pool: NodePool, entry: Entry) -> None:
    if state.facts.pools.get(pool.name) == pool:
        return
    state.facts.pools[pool.name] = pool
    pool_kept(state, pool)
    health.pool_seen(state, pool, entry)
    _touch_pool(state, pool.name, entry)
    look_at_pool(state, pool.name)
    room_changed(state, entry.at)


def _touch_pool(state: State, name: str, entry: Entry) -> None:
    for claim in state.facts.claims.values():
        if claim.node_pool == name:
            state.ix.touched[claim.name] = entry.position


def _node_class_seen(state: State, seen_class: seen.NodeClassSeen, entry: Entry) -> None:
    key = f"{seen_class.group}/{seen_class.kind}/{seen_class.name}"
    if state.facts.node_classes.get(key) != seen_class:
        state.facts.node_classes[key] = seen_class
        class_kept(state, seen_class, entry)
        health.class_seen(state, seen_class, entry)
        look_at_all(state)
        room_changed(state, entry.at)


def _catalogue_seen(state: State, catalogue: seen.CatalogueSeen, entry: Entry) -> None:
    if state.facts.catalogues.get(catalogue.node_class) != catalogue.digest:
        state.facts.catalogues[catalogue.node_class] = catalogue.digest
        catalogue_kept(state, catalogue.node_class, entry)
        look_at_all(state)
        room_changed(state, entry.at)


def _pdb_seen(state: State, pdb: PodDisruptionBudget, entry: Entry) -> None:
    if state.facts.pdbs.get(pdb.uid) != pdb:
        state.facts.pdbs[pdb.uid] = pdb
        _budget_changed(state, pdb.namespace, entry)


def _budget_changed(state: State, namespace: str, entry: Entry) -> None:
    """Evictions that a PodDisruptionBudget refused are tried again as soon as one of their namespace changes; pods that
    it lets go now need another place."""
    unsettle(state.facts, entry.at)
    if state.ix.going:
        room_changed(state, entry.at)
    for name in state.ix.going:
        effects = state.facts.claims[name].effects.values()
        refused = [each for each in effects if each.ok is False and each.code in BUDGET_CODES and _of(each, namespace)]
        for effect in refused:
            effect.retry_at = entry.at
        if refused:
            state.ix.touched[name] = entry.position


def _of(effect: Effect, namespace: str) -> bool:
    """Whether it is about a pod of this namespace."""
    return effect.pod.partition("/")[0] == namespace


def _namespace_seen(state: State, namespace: Namespace, entry: Entry) -> None:
    """Affinity may ask for the labels of namespaces: a pod that waits may have a place now (S-57)."""
    if state.facts.namespaces.get(namespace.name) != namespace:
        state.facts.namespaces[namespace.name] = namespace
        if state.ix.pending:
            trigger(state.facts, entry.at)


def _object_gone(state: State, gone: seen.ObjectGone, entry: Entry) -> None:
    facts = state.facts
    if gone.kind == "pod":
        _pod_gone(state, gone.key, entry)
    elif gone.kind == "node":
        _node_gone(state, gone.key, entry)
    elif gone.kind == "nodepool":
        forget_pool(state, gone.key)
        facts.health.pop(gone.key, None)
        if facts.pools.pop(gone.key, None) is not None:
            _touch_pool(state, gone.key, entry)
            unsettle(facts, entry.at)
    elif gone.kind == "nodeclass":
        facts.node_classes.pop(gone.key, None)
        facts.catalogues.pop(gone.key, None)
        facts.reservations.pop(gone.key, None)
        look_at_all(state)
    elif gone.kind == "daemonset":
        daemonset_gone(state, gone.key, entry)
    elif gone.kind == "pdb":
        pdb = facts.pdbs.pop(gone.key, None)
        if pdb is not None:
            _budget_changed(state, pdb.namespace, entry)
    elif gone.kind == "namespace":
        facts.namespaces.pop(gone.key, None)
    elif gone.kind in EXTENSION_KINDS:
        extension_gone(state, gone.kind, gone.key, entry)
    elif gone.kind == "nodeclaim":
        claim_object_gone(state, gone.key, entry)
    elif gone.kind in VOLUME_KINDS:
        volume_gone(state, gone.kind, gone.key, entry)
    elif gone.kind in DEVICE_KINDS:
        device_gone(state, gone.kind, gone.key, entry)


# ── the record itself ──────────────────────────────────────────────────────────────────────────────────────────────


def _started(state: State, started: seen.RecordStarted, entry: Entry) -> None:
    state.facts.record = started.record


def _office(state: State, office: seen.OfficeTaken, entry: Entry) -> None:
    """A new writer looks at every claim once: what the old one had in mind is not known."""
    state.facts.epoch = office.epoch
    state.ix.touched.update(dict.fromkeys(state.facts.claims, entry.position))


def _settings(state: State, settings: seen.SettingsSeen, entry: Entry) -> None:
    """Other settings may have everything decided otherwise: plans, moves, and what leaves no choice (D-27, D-134)."""
    facts, ix = state.facts, state.ix
    known, facts.settings = facts.settings, settings.settings
    facts.settings_digest = deviation(settings.settings)
    gate_seen(state)
    if known == settings.settings:
        return
    if not keeps_room(facts):  # no pass will say so (S-177)
        facts.buffered = {}
    ix.touched.update(dict.fromkeys(facts.claims, entry.position))
    room_changed(state, entry.at)


def _deletion_seen(state: State, deletion: seen.NodeClaimDeletionSeen, entry: Entry) -> None:
    claim = state.facts.claims.get(deletion.claim)
    if claim is not None and not claim.deletion:
        claim.deletion = deletion.actor or "unknown"
        state.ix.touched[claim.name] = entry.position


def _instance_seen(state: State, instance: seen.InstanceSeen, entry: Entry) -> None:
    if instance.status == "gone" and not nodes_of_instance(state, instance.instance):
        state.facts.orphans.pop(instance.instance, None)
    name = state.ix.claim_by_instance.get(instance.instance)
    if name is not None:
        state.facts.claims[name].instance_status = instance.status
        state.ix.touched[name] = entry.position


def _unknown(state: State, unknown: UnknownEntry, entry: Entry) -> None:
    state.facts.unknown += 1


_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {
    Pod: _pod_seen,
    Node: _node_seen,
    NodePool: _pool_seen,
    DaemonSet: daemonset_seen,
    PodDisruptionBudget: _pdb_seen,
    Namespace: _namespace_seen,
    seen.ObjectGone: _object_gone,
    seen.NodeClassSeen: _node_class_seen,
    seen.CatalogueSeen: _catalogue_seen,
    seen.RecordStarted: _started,
    seen.OfficeTaken: _office,
    seen.SettingsSeen: _settings,
    seen.NodeClaimDeletionSeen: _deletion_seen,
    seen.InstanceSeen: _instance_seen,
    seen.LaunchAnswered: launch_answered,
    seen.EffectAnswered: answered,
    seen.InterruptionSeen: interrupted,
    Decision: decided,
    UnknownEntry: _unknown,
    **CUT_HANDLERS,
    **VOLUME_HANDLERS,
    **ADOPTION_HANDLERS,
    **EXTENSION_HANDLERS,
    **DEVICE_HANDLERS,
    **RESERVATION_HANDLERS,
    **dict.fromkeys(CLAIM_EVENTS, claim_event),
}
