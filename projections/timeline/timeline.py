"""The timeline: turns entries into readable events, one entry at a time.

Feed it a live runtime's entries or a record. It remembers just enough to tell a change from a repetition: a pod that is
seen again without a change gives no event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer, virtual_key
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, is_provisionable, is_terminal
from kerf.engine.model.labels import ON_DEMAND
from kerf.engine.nodeclaim.effect_keys import deletion, effect_key, eviction
from kerf.engine.record import claim_events as ev
from kerf.engine.record import observations as seen
from kerf.engine.record.decisions import (
    Decision,
    DeletePod,
    DisruptResult,
    EvictPod,
    Intent,
    LifecycleResult,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    Unplaced,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state.moves import ABANDONED
from kerf.engine.state.nodeclaims.drift import DRIFT
from kerf.projections.differences.documents import Classes, Shapes, changed_fields
from kerf.projections.prose.amounts import count, first_names
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.timeline.changed_objects import ChangedObjects
from kerf.projections.timeline.claim_events import claim_event
from kerf.projections.timeline.disruption_events import move_event, verdict_event
from kerf.projections.timeline.drift_events import drift_events
from kerf.projections.timeline.entry_events import (
    EVENTS_OF_ENTRY,
    claim_object_seen,
    make_event,
    offering_events,
)
from kerf.projections.timeline.event import DEBUG, ERROR, INFO, WARNING, Event, Parameter
from kerf.projections.timeline.repetitions import Repetitions
from kerf.projections.timeline.taint_events import taint_events


def _subject(intent: Intent) -> str:
    """Return what an effect is about: a claim, or a Node without one."""
    return f"nodeclaim/{intent.claim}" if intent.claim else f"node/{getattr(intent, 'node', '')}"


class Timeline:
    """Gives the events of one entry with `apply`, in order. Most entries give one event, repetitions none. `shapes` say
    what pods ask for; without them their digests are told. `classes` say how EC2NodeClasses select images."""

    def __init__(self, shapes: Shapes | None = None, classes: Classes | None = None) -> None:
        self.started = 0
        """The time of the first entry (ms since the epoch): relative times count from here."""
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._pools: dict[str, NodePool] = {}
        self._buffers: dict[str, CapacityBuffer] = {}
        self._classes: dict[str, seen.NodeClassSeen] = {}
        self._objects = ChangedObjects(shapes)
        self._known_classes = classes
        self._intents: dict[str, Intent] = {}
        self._targets: dict[str, str] = {}  # pod uid → the claim or node it is planned onto
        self._claim_objects: dict[str, bool] = {}  # NodeClaim object → whether it is being deleted
        self._claim_nodes: dict[str, str] = {}  # claim → its node
        self._instances: dict[str, str] = {}  # instance → its claim
        self._refused = Repetitions()  # by claim and effect
        self._unplaced = Repetitions()  # by pod
        self._asked = Repetitions()  # by claim
        self._accepted: dict[tuple[str, str], int] = {}  # claim and effect on a pod → the position of the answer

    def apply(self, entry: Entry) -> list[Event]:
        """Return the events of one entry."""
        if not self.started:
            self.started = entry.at
        payload = entry.payload
        handler = _HANDLERS.get(type(payload))
        if handler is not None:
            return handler(self, payload, entry)
        if isinstance(payload, CapacityBuffer):
            self._buffers[payload.uid] = payload
        changed = self._objects.apply(entry)
        if changed is not None:
            return changed
        stateless = EVENTS_OF_ENTRY.get(type(payload))
        if stateless is not None:
            return stateless(payload, entry)
        timeline_event = claim_event(payload, entry)
        if timeline_event is None:
            return []
        self._claim(payload)
        if isinstance(payload, ev.PodEvicted | ev.PodForced):
            return [self._evicted(payload, timeline_event)]
        return [timeline_event]

    def key_of(self, uid: str) -> str:
        """Return a pod's namespace/name, also for a pod that only stands for a buffer's room; its uid if it was never
        seen."""
        pod = self._pods.get(uid)
        return pod.key if pod is not None else virtual_key(uid, self._buffers) or uid

    def _evicted(self, eviction_event: ev.PodEvicted | ev.PodForced, timeline_event: Event) -> Event:
        """Correct an eviction's cause: it is the answer about this pod, while the entry's may be the answer about
        another."""
        effect_of = eviction if isinstance(eviction_event, ev.PodEvicted) else deletion
        key = eviction_event.claim, effect_of(eviction_event.uid)
        refusals = self._refused.forget(key)
        params = {**timeline_event.params, "refusals": refusals} if refusals else timeline_event.params
        return replace(timeline_event, params=params, cause=self._accepted.pop(key, timeline_event.cause))

    # ── pods and nodes ─────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, pod: Pod, entry: Entry) -> list[Event]:
        old = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        subject, node = f"pod/{pod.key}", (f"node/{pod.node}",) if pod.node else ()
        waits, waited = _waits(pod), old is not None and _waits(old)
        if is_terminal(pod):
            already_told = old is not None and is_terminal(old)
            return [] if already_told else [make_event(entry, "pod-ended", DEBUG, subject, node, phase=pod.phase)]
        if pod.deleting:
            already_told = old is not None and bool(old.deleting)
            return [] if already_told else [make_event(entry, "pod-terminating", DEBUG, subject, node)]
        if pod.node and (old is None or old.node != pod.node):
            return [self._bound(pod, entry, subject)]
        if pod.phase == "Running" and old is not None and old.phase != "Running":
            return [make_event(entry, "pod-running", DEBUG, subject, node, node=pod.node)]
        if waits != waited:
            code = "pod-waiting" if waits else "pod-not-waiting"
            return [make_event(entry, code, INFO if waits else DEBUG, subject)]
        return [make_event(entry, "pod-seen", DEBUG, subject, node)] if old is None else []

    def _bound(self, pod: Pod, entry: Entry, subject: str) -> Event:
        """Tell that a pod got its node; as a warning if the plan meant another node."""
        planned = self._targets.pop(pod.uid, "")
        place = self._claim_nodes.get(planned, planned)
        if planned and place != pod.node and planned in self._claim_nodes:
            return make_event(
                entry, "pod-bound-elsewhere", WARNING, subject, (f"node/{pod.node}", f"nodeclaim/{planned}"),
                node=pod.node, planned=place,
            )  # fmt: skip
        return make_event(entry, "pod-bound", INFO, subject, (f"node/{pod.node}",), node=pod.node)

    def _node(self, node: Node, entry: Entry) -> list[Event]:
        self._objects.listed = True
        old = self._nodes.get(node.name)
        self._nodes[node.name] = node
        subject = f"node/{node.name}"
        if old is None:
            joined = make_event(entry, "node-joined" if node.created else "node-seen", INFO, subject)
            return [joined, make_event(entry, "node-ready", INFO, subject)] if node.ready else [joined]
        events = []
        if node.deleting and not old.deleting:
            events.append(make_event(entry, "node-deleting", INFO, subject))
        if node.ready != old.ready:
            code, level = ("node-ready", INFO) if node.ready else ("node-not-ready", WARNING)
            events.append(make_event(entry, code, level, subject))
        return events + taint_events(old, node, entry)

    def _gone(self, gone: seen.ObjectGone, entry: Entry) -> list[Event]:
        if gone.kind == "pod":
            pod = self._pods.pop(gone.key, None)
            self._targets.pop(gone.key, None)
            self._unplaced.forget(gone.key)
            if pod is None:
                return []
            related = (f"node/{pod.node}",) if pod.node else ()
            return [make_event(entry, "pod-gone", INFO, f"pod/{pod.key}", related)]
        self._claim_objects.pop(gone.key if gone.kind == "nodeclaim" else "", None)
        if gone.kind in ("node", "nodepool", "nodeclass"):
            known: dict[str, dict[str, Any]] = {
                "node": self._nodes,
                "nodepool": self._pools,
                "nodeclass": self._classes,
            }
            was_told = known[gone.kind].pop(gone.key, None)
            if was_told is None and gone.kind == "node":
                return []  # its end was told before: by another source of an import
            name = gone.key.rpartition("/")[2]  # a NodeClass has its group and kind before it
            return [make_event(entry, f"{gone.kind}-gone", INFO, f"{gone.kind}/{name}")]
        return self._objects.gone(gone, entry)

    def _claim_object(self, claim: NodeClaimObject, entry: Entry) -> list[Event]:
        """Tell that an object is there, and later that it goes. Its other changes bring claim events."""
        known = self._claim_objects.get(claim.name)
        self._claim_objects[claim.name] = bool(claim.deleting)
        if known is None:
            return claim_object_seen(claim, entry)
        if claim.deleting and not known:
            return [make_event(entry, "deletion-seen", INFO, f"nodeclaim/{claim.name}")]
        return [make_event(entry, "object-changed", DEBUG, f"nodeclaim/{claim.name}", kind="NodeClaim")]

    # ── settings, pools, classes ───────────────────────────────────────────────────────────────────────────────

    def _pool(self, pool: NodePool, entry: Entry) -> list[Event]:
        old = self._pools.get(pool.name)
        self._pools[pool.name] = pool
        subject = f"nodepool/{pool.name}"
        if old is None:
            return [make_event(entry, "nodepool-seen", INFO, subject)]
        fields = changed_fields(old, pool)
        return [make_event(entry, "nodepool-changed", INFO, subject, fields=fields)] if fields else []

    def _class(self, node_class: seen.NodeClassSeen, entry: Entry) -> list[Event]:
        key = f"{node_class.group}/{node_class.kind}/{node_class.name}"
        old = self._classes.get(key)
        self._classes[key] = node_class
        subject, turned = f"nodeclass/{node_class.name}", old is None or old.ready != node_class.ready
        events = []
        if old is not None:  # that it is ready now, or no longer, is told by an event of its own
            was = replace(old, ready=node_class.ready, reason=node_class.reason) if turned else old
            fields = changed_fields(was, node_class, classes=self._known_classes)
            events += [make_event(entry, "nodeclass-changed", INFO, subject, fields=fields)] if fields else []
        if turned:
            code, level = ("nodeclass-ready", INFO) if node_class.ready else ("nodeclass-not-ready", WARNING)
            events.append(make_event(entry, code, level, subject, reason=node_class.reason or "no reason given"))
        return events

    # ── answers ────────────────────────────────────────────────────────────────────────────────────────────────

    def _launch(self, answer: seen.LaunchAnswered, entry: Entry) -> list[Event]:
        self._intents.pop(answer.intent, None)
        subject = f"nodeclaim/{answer.claim}"
        events = offering_events(answer, entry)
        if not answer.instance:
            message = answer.message or answer.code or answer.kind
            return [*events, make_event(entry, "launch-refused", WARNING, subject, message=message)]
        self._instances[answer.instance] = answer.claim
        code = "launch-adopted" if answer.adopted else "launch-answered"
        answered = make_event(
            entry, code, DEBUG, subject, (f"instance/{answer.instance}",), instance=answer.instance,
            instance_type=answer.instance_type, zone=answer.zone, capacity_type=answer.capacity_type,
        )  # fmt: skip
        return [*events, answered]

    def _answer(self, answer: seen.EffectAnswered, entry: Entry) -> list[Event]:
        intent = self._intents.pop(answer.intent, None)
        if intent is None:
            return []
        subject, key = _subject(intent), effect_key(intent)
        params: dict[str, Parameter] = {"effect": key.partition("/")[0]}
        done, refused, related = "effect-done", "effect-refused", tuple[str, ...]()
        if isinstance(intent, EvictPod | DeletePod):
            params["pod"] = f"{intent.namespace}/{intent.name}"
            done, refused, related = "pod-effect-done", "pod-effect-refused", (f"pod/{params['pod']}",)
        if answer.ok:
            if related:
                self._accepted[intent.claim, key] = entry.position
            return [make_event(entry, done, DEBUG, subject, related, **params)]
        error = " ".join(filter(None, (answer.code, answer.message)))
        times = self._refused.times((intent.claim, key), error)
        level = WARNING if times == 1 else DEBUG
        return [make_event(entry, refused, level, subject, related, **params, error=error, times=times)]

    def _instance(self, instance: seen.InstanceSeen, entry: Entry) -> list[Event]:
        subject, related = f"instance/{instance.instance}", self._claim_of(instance.instance)
        if instance.capacity_type == ON_DEMAND:
            return [make_event(entry, "instance-demoted", INFO, subject, related)]
        return [make_event(entry, "instance-seen", DEBUG, subject, related, status=instance.status)]

    def _listed(self, listed: seen.InstancesListed, entry: Entry) -> list[Event]:
        events = [
            make_event(
                entry, "instance-unclaimed", WARNING, f"instance/{stray.instance}", claim=stray.claim or "no claim"
            )
            for stray in listed.strays
        ]
        for instance in listed.missing:
            related = self._claim_of(instance)
            events.append(make_event(entry, "instance-unlisted", INFO, f"instance/{instance}", related))
        for instance in listed.demoted:
            related = self._claim_of(instance)
            events.append(make_event(entry, "instance-demoted", INFO, f"instance/{instance}", related))
        return events

    def _interruption(self, message: seen.InterruptionSeen, entry: Entry) -> list[Event]:
        related = self._claim_of(message.instance)
        level = WARNING if related else DEBUG
        subject = f"instance/{message.instance}"
        return [make_event(entry, "interruption-announced", level, subject, related, kind=message.kind)]

    def _claim_of(self, instance: str) -> tuple[str, ...]:
        claim = self._instances.get(instance)
        return (f"nodeclaim/{claim}",) if claim is not None else ()

    # ── decisions and claims ───────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[Event]:
        self._objects.listed = True
        for index, intent in enumerate(decision.intents):
            self._intents[f"{entry.position}.{index}"] = intent
        result = decision.result
        if isinstance(result, ProvisionResult):
            return self._provisioned(result, entry)
        if isinstance(result, DisruptResult) and decision.decider == DRIFT:
            return drift_events(result, entry)
        if isinstance(result, DisruptResult):
            return [verdict_event(verdict, entry) for verdict in result.verdicts]
        if isinstance(result, ProposedMovesResult):
            return [
                *(move_event("move-proposed", DEBUG, move, entry) for move in result.proposed),
                *(verdict_event(verdict, entry) for verdict in result.verdicts),
            ]
        if isinstance(result, MoveStepResult):
            return self._stepped(result, entry)
        if isinstance(result, StaticResult):
            related = tuple(f"nodeclaim/{name}" for name in (*(c.name for c in result.claims), *result.removed))
            pool = f"nodepool/{result.node_pool}"
            return [
                make_event(
                    entry, "pool-resized", INFO, pool, related, reason=result.reason, running=result.running,
                    replicas=result.replicas,
                )
            ]  # fmt: skip
        assert isinstance(result, LifecycleResult)
        subject = f"nodeclaim/{result.claim}" if result.claim else _subject(entry.payload.intents[0])
        times = self._asked.times(result.claim or subject, result.reason.code)
        return [make_event(entry, "effect-asked", DEBUG, subject, reason=result.reason, times=times)]

    def _stepped(self, result: MoveStepResult, entry: Entry) -> list[Event]:
        verdicts = [verdict_event(verdict, entry) for verdict in result.verdicts]
        if result.begun is not None:
            level = INFO if result.begun.replacements else DEBUG
            return [move_event("move-started", level, result.begun, entry), *verdicts]
        related = tuple(f"nodeclaim/{verdict.claim}" for verdict in result.verdicts)
        code, level = ("move-abandoned", WARNING) if result.step == ABANDONED else ("move-withdrawn", DEBUG)
        who = first_names([verdict.claim for verdict in result.verdicts])
        event = make_event(entry, code, level, "decision/move", related, reason=result.reason, who=who)
        return [event, *verdicts]

    def _provisioned(self, result: ProvisionResult, entry: Entry) -> list[Event]:
        subject = "decision/provision"
        if result.repeats:
            return [make_event(entry, "plan-repeated", DEBUG, subject, repeats=result.repeats)]
        self._targets = {uid: p.claim or p.node for p in result.placements for uid in p.pods}
        self._targets |= {uid: c.name for c in result.claims for uid in c.pods}
        for uid in self._targets:
            self._unplaced.forget(uid)
        events = []
        if result.claims or result.placements:
            places = [count(len(result.claims), "new node")] if result.claims else []
            if result.placements:
                places.append(count(len(result.placements), "node") + " there or on the way")
            related = tuple(f"pod/{self.key_of(uid)}" for uid in self._targets)
            events.append(
                make_event(
                    entry, "plan-made", INFO, subject, related, pods=len(self._targets), outcome=" and ".join(places)
                )
            )
        events += [self._unplaced_event("pods-without-place", WARNING, group, entry) for group in result.unplaced]
        events += [self._unplaced_event("pods-ignored", INFO, group, entry) for group in result.ignored]
        events += [self._unplaced_event("pods-later", INFO, group, entry) for group in result.later]
        if result.truncated:
            events.append(make_event(entry, "pods-not-reached", ERROR, subject, pods=len(result.truncated)))
        return events

    def _unplaced_event(self, code: str, level: str, group: Unplaced, entry: Entry) -> Event:
        """Tell that pods have no place, with those first of which that is new. If nothing is new, at level DEBUG."""
        why = code, tuple((reason.code, reason.params.get("node_pool")) for reason in group.reasons)
        times_told = {uid: self._unplaced.times(uid, why) for uid in group.pods}
        uids = sorted(group.pods, key=lambda uid: times_told[uid] > 1)
        related = tuple(f"pod/{self.key_of(uid)}" for uid in uids)
        times = min(times_told.values(), default=1)
        shown = level if times == 1 else DEBUG
        who = self.key_of(uids[0]) + (f" and {len(uids) - 1} more" if len(uids) > 1 else "") if uids else "nobody"
        nearest = next(iter(nearest_first(group.reasons)), None)
        return make_event(
            entry, code, shown, "decision/provision", related, reason=nearest, pods=len(uids),
            who=who, times=times,
        )  # fmt: skip

    def _claim(self, payload: Struct) -> None:
        if isinstance(payload, ev.Registered) or (isinstance(payload, ev.Adopted) and payload.node):
            self._claim_nodes[payload.claim] = payload.node
        if isinstance(payload, ev.Launched | ev.Adopted):
            self._instances[payload.instance] = payload.claim
        elif isinstance(
            payload, ev.Terminated | ev.InstanceVanished | ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled
        ):
            self._claim_nodes.pop(payload.claim, None)


def _waits(pod: Pod) -> bool:
    return pod.unschedulable and is_provisionable(pod)


_HANDLERS: dict[type[Struct], Callable[[Timeline, Any, Entry], list[Event]]] = {
    Pod: Timeline._pod,
    Node: Timeline._node,
    NodeClaimObject: Timeline._claim_object,
    NodePool: Timeline._pool,
    seen.ObjectGone: Timeline._gone,
    seen.NodeClassSeen: Timeline._class,
    seen.LaunchAnswered: Timeline._launch,
    seen.EffectAnswered: Timeline._answer,
    seen.InstanceSeen: Timeline._instance,
    seen.InstancesListed: Timeline._listed,
    seen.InterruptionSeen: Timeline._interruption,
    Decision: Timeline._decision,
}
