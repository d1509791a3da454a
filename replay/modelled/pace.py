"""Measure how long things took in the record, so that the model is as fast."""

from __future__ import annotations

from statistics import median_low

from msgspec import Struct

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.nodeclaim.claim import ENDED
from kerf.engine.record.decisions import Decision, LaunchInstance, TerminateInstance
from kerf.engine.record.observations import EffectAnswered, InstanceSeen, LaunchAnswered, ObjectGone
from kerf.engine.state.state import State
from kerf.replay.modelled.workload import USUAL, Pace

_LONGEST = 1_800_000
"""What took longer (ms) is no measure of what is usual."""
NEVER_JOINED_AFTER = 600_000
"""An instance that has not joined so long (ms) after its launch never does."""
_DESCRIBED_EVERY = 5_000
"""The cloud is asked so often (ms) whether an instance has ended (D-157). It ended half of that before it was seen."""


class PaceFold:
    """Collects durations. Give it each entry before the state has it."""

    def __init__(self) -> None:
        self._took: dict[str, list[int]] = {name: [] for name in USUAL}
        self._bound: dict[str, int] = {}
        self._deleted: dict[str, int] = {}
        self._terminated: dict[str, str] = {}  # intent → instance
        self._ending: dict[str, int] = {}  # instance → when EC2 agreed to end it
        self._asked: dict[str, tuple[int, int]] = {}  # intent → its number, and when
        self._answers: dict[int, tuple[int, str]] = {}
        self._launched: dict[str, tuple[int, int]] = {}  # provider id → the intent's number, when it was launched
        self._joined: dict[int, int] = {}
        self._at = 0

    def apply(self, payload: Struct, at: int, position: int, before: State) -> None:
        self._at = at
        if isinstance(payload, Pod):
            self._pod(payload, at, before)
        elif isinstance(payload, Node):
            self._node(payload, before)
        elif isinstance(payload, Decision):
            for index, intent in enumerate(payload.intents):
                if isinstance(intent, LaunchInstance):
                    self._asked[f"{position}.{index}"] = len(self._asked), at
                elif isinstance(intent, TerminateInstance):
                    self._terminated[f"{position}.{index}"] = intent.instance
        elif isinstance(payload, EffectAnswered):
            instance = self._terminated.pop(payload.intent, "")
            if instance and payload.ok:
                self._ending[instance] = at
        elif isinstance(payload, InstanceSeen):
            if payload.status in ENDED and payload.instance in self._ending:
                took = at - self._ending.pop(payload.instance)
                self._note("shutdown", max(0, took - _DESCRIBED_EVERY // 2))
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self._bound.pop(payload.key, None)
            if payload.key in self._deleted:
                self._note("pod_stop", at - self._deleted.pop(payload.key))
        elif isinstance(payload, LaunchAnswered):
            self._answered(payload, at, before)

    def pace(self) -> Pace:
        return Pace(
            joins=tuple(self._joins()),
            answers=tuple(took for _, (took, _) in sorted(self._answers.items())),
            failures=tuple(code for _, (_, code) in sorted(self._answers.items())),
            **{name: median_low(took) for name, took in self._took.items() if took},
        )

    def _joins(self) -> list[int | None]:
        """Of one that was ended before it joined, the usual time."""
        usual = median_low(self._joined.values()) if self._joined else None
        return [
            self._joined.get(number, usual if self._at - launched < NEVER_JOINED_AFTER else None)
            for number, launched in sorted(self._launched.values())
        ]

    def _answered(self, answer: LaunchAnswered, at: int, before: State) -> None:
        asked = self._asked.get(answer.intent)
        if asked is None or answer.adopted:
            return
        number, when = asked
        failed = answer.kind == "error" and not answer.errors
        self._answers[number] = min(max(0, at - when), _LONGEST), (answer.code or "error") if failed else ""
        if answer.instance:
            self._launched[answer.provider_id] = number, answer.launched or at
            for name in before.indexes.nodes_by_provider.get(answer.provider_id, ()):  # it was seen before the answer
                self._has_joined(before.facts.nodes[name])

    def _pod(self, pod: Pod, at: int, before: State) -> None:
        old = before.facts.pods.get(pod.uid)
        if old is None:
            return
        if pod.node and not old.node:
            node = before.facts.nodes.get(pod.node)
            if node is not None and node.ready:
                self._bound[pod.uid] = at
        if pod.phase == "Running" and old.phase != "Running" and pod.uid in self._bound:
            self._note("pod_start", at - self._bound.pop(pod.uid))
        if pod.deleting and not old.deleting and pod.node:
            self._deleted[pod.uid] = at

    def _node(self, node: Node, before: State) -> None:
        old = before.facts.nodes.get(node.name)
        if old is None:
            self._has_joined(node)
        if old is not None and node.ready and not old.ready and not old.ready_since and node.ready_since:
            self._note("ready", node.ready_since - node.created)

    def _has_joined(self, node: Node) -> None:
        launched = self._launched.get(node.provider_id)
        if launched is not None and node.created:
            self._joined[launched[0]] = max(0, node.created - launched[1])

    def _note(self, name: str, took: int) -> None:
        if 0 <= took <= _LONGEST:
            self._took[name].append(took)
