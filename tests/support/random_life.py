"""A random life of a small cluster, played on a World: whatever is drawn, the record must stay sound."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import (
    DeleteNode,
    EvictPod,
    InitializeNode,
    Intent,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    TerminateInstance,
)
from kerf.engine.record.observations import (
    EffectAnswered,
    InterruptionSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from tests.support.world import World, pool

UNREGISTERED = Taint("karpenter.sh/unregistered", "NoExecute")
DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
ACTIONS = ("pod", "answer", "wait", "refuse", "bind", "gone", "interrupt", "delete", "restart", "lost")


class Player:
    """Plays a random life on a World: whatever is drawn, the record must stay sound."""

    def __init__(self) -> None:
        self.world = World()
        self.open: list[tuple[str, Intent]] = []
        self.nodes: dict[str, str] = {}
        self.count = 0
        self.world.prepare(pool(expire_after=3_600_000, consolidate_after=30_000))

    def play(self, action: str, number: int) -> None:
        getattr(self, "_" + action)(number)
        self.open += self.world.intents
        self.world.intents = []

    def _pod(self, number: int) -> None:
        self.count += 1
        self.world.pending(f"p{self.count}", memory=(1 + number % 8) * 512 * 2**20)

    def _wait(self, number: int) -> None:
        self.world.after((1, 1_000, 11_000, 61_000, 1_000_000)[number % 5])

    def _answer(self, number: int) -> None:
        if self.open:
            ref, intent = self.open.pop(number % len(self.open))
            self._carry_out(ref, intent)

    def _refuse(self, number: int) -> None:
        if self.open:
            ref, intent = self.open.pop(number % len(self.open))
            if isinstance(intent, LaunchInstance):
                kind = ("insufficient-capacity", "error", "nodeclass-not-ready")[number % 3]
                self.world.see(Observation(LaunchAnswered(ref, intent.claim, kind=kind, code="X")))
            else:
                self.world.see(Observation(EffectAnswered(ref, False, "429")))

    def _lost(self, number: int) -> None:
        if self.open:
            self.open.pop(number % len(self.open))

    def _bind(self, number: int) -> None:
        waiting = sorted(n for n, p in self.world.pods.items() if not p.node)
        if waiting and self.nodes:
            self.world.bind(waiting[number % len(waiting)], sorted(self.nodes)[number % len(self.nodes)])

    def _gone(self, number: int) -> None:
        if self.world.pods:
            self.world.gone(sorted(self.world.pods)[number % len(self.world.pods)])

    def _claim(self, number: int) -> str:
        names = sorted(self.world.runtime.state.facts.claims)
        return names[number % len(names)] if names else ""

    def _interrupt(self, number: int) -> None:
        claim = self.world.runtime.state.facts.claims.get(self._claim(number))
        instance = claim.instance if claim is not None else "i-foreign"
        self.world.see(Observation(InterruptionSeen(f"m{number % 7}", "spot_interrupted", instance)))

    def _delete(self, number: int) -> None:
        self.world.see(Observation(NodeClaimDeletionSeen(self._claim(number), "kubectl")))

    def _restart(self, number: int) -> None:
        self.world.runtime = self.world.start()
        self.open = self.world.runtime.unanswered()

    def _carry_out(self, ref: str, intent: Intent) -> None:
        world = self.world
        if isinstance(intent, LaunchInstance):
            if intent.offers:
                world.answer_launch(ref, intent, instance=f"i-{intent.claim}")
                self.open += world.intents
                world.node(f"n-{intent.claim}", self._provider(intent), taints=(UNREGISTERED,))
                self.nodes[f"n-{intent.claim}"] = self._provider(intent)
            return
        world.see(Observation(EffectAnswered(ref, True, "200")))
        self.open += world.intents
        self._show(intent)

    def _show(self, intent: Intent) -> None:
        world = self.world
        if isinstance(intent, RegisterNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true")
        elif isinstance(intent, InitializeNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true", initialized="true")
        elif isinstance(intent, TaintNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true", initialized="true", taints=(DISRUPTED,))
        elif isinstance(intent, EvictPod):
            name = next((n for n, p in world.pods.items() if p.uid == intent.uid), None)
            if name is not None:
                world.gone(name)
        elif isinstance(intent, TerminateInstance):
            world.instance(intent.instance, "gone")
        elif isinstance(intent, DeleteNode) and self.nodes.pop(intent.node, ""):
            world.see(Observation(ObjectGone("node", intent.node)))

    def _provider(self, intent: LaunchInstance) -> str:
        return f"aws:///{intent.offers[0].zone}/i-{intent.claim}"
