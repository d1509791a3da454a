"""Stands between the driver and the ports, and looks at the cluster at the moment of each act: that the record has one
cause of it, that no pod is lost by it and none forced too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.decisions import DeleteNode, DeletePod, EvictPod, LaunchInstance, TerminateInstance
from kerf.engine.record.entries import Entry
from tests.support.invariants.grounds import Picture
from tests.support.invariants.ledger import Broken, Ledger, Life

DISRUPTED = "karpenter.sh/disrupted"
STUCK = 60_000
"""A pod that is terminating for longer than this after its time is nobody's to wait for (L-202)."""
CLOCKS_OFF = 4_000
"""How wrong clocks may be that agree: the tolerance, and what a Date header and a drift add (ms)."""


class Witness:
    """Sees each act on the cluster and the cloud. `entries` gives what the record holds after a position, `known` the
    node that the controller knows a pod to be on (uid → name), `life` which process acts, and for which record, and
    `shape` what a digest stands for."""

    def __init__(
        self,
        simulation: Simulation,
        entries: Callable[[int], Iterable[Entry]],
        known: Callable[[str], str],
        life: Callable[[], tuple[int, int]],
        shape: Callable[[str], PodShape],
    ) -> None:
        self.simulation, self._entries, self._known, self._life = simulation, entries, known, life
        self._shape = shape
        self.broken: list[Broken] = []
        self.ledger = self._new_ledger()
        self.acts: Counter[str] = Counter()
        self.ledgers = [self.ledger]
        self._done: dict[tuple[int, str], int] = {}  # (record, "position.index") → the process that has done it
        self._record = 0
        for name in ("register", "initialize", "taint", "untaint", "evict", "delete_pod", "delete_node"):
            self._watch(simulation.writes, name)
        for name in ("launch", "terminate"):
            self._watch(simulation.cloud, name)

    def _watch(self, port: object, name: str) -> None:
        inner = getattr(port, name)

        def act(order: Any, *, intent: str, **more: Any) -> Any:
            self._before(name, order, intent)
            return inner(order, intent=intent, **more)

        setattr(port, name, act)

    def _new_ledger(self) -> Ledger:
        return Ledger(picture=Picture(self._shape), true=self._true)

    def _true(self, at: int) -> int:
        """The true time of an entry that is read in its turn. It is late if the store could not be written."""
        return self.simulation.clock.now - max(0, self.simulation.host.now - at)

    @property
    def _off(self) -> int:
        """By how much the process's time may be wrong (ms)."""
        return CLOCKS_OFF if self.simulation.host.steps else 0

    def catch_up(self) -> None:
        """Reads what the record has got since the last look. To be called after each turn."""
        _, record = self._life()
        if record != self._record:
            self._record, self.ledger = record, self._new_ledger()
            self.ledgers.append(self.ledger)
        self.broken += self.ledger.read(self._entries(self.ledger.last))

    def _before(self, name: str, order: Any, intent: str) -> None:
        self.catch_up()
        self.acts[name] += 1
        cause = self.ledger.intents.get(intent)
        given = cause.instance if name == "terminate" and isinstance(cause, TerminateInstance) else cause
        if cause is None or (given != order and not isinstance(order, LaunchInstance)):
            self._break("one cause an act", f"{name} {order} has no intent {intent} in the record")
            return
        process, record = self._life()
        if self._done.get((record, intent)) == process:
            self._break("one cause an act", f"{name} is done twice for {intent}")
        self._done[record, intent] = process
        if isinstance(cause, TerminateInstance):
            self._terminates(cause)
        elif isinstance(order, DeletePod):
            self._forces(order)
        elif isinstance(order, EvictPod):
            self._evicts(order)
        elif isinstance(order, DeleteNode):
            self._deletes(order)

    def _break(self, invariant: str, what: str) -> None:
        self.broken.append(Broken(invariant, what, self.ledger.last, self.simulation.clock.now))

    def _terminates(self, order: TerminateInstance) -> None:
        """No instance ends under a pod that was neither evicted nor has run out of time. One that is over may be ended
        again, since it is not listed any more (L-237)."""
        life, now = self.ledger.lives.get(order.claim), self.simulation.clock.now
        instance = self.simulation.cloud.instances.get(order.instance)
        is_over = instance is None or instance.ended
        if life is not None and not life.over and not life.going and not is_over:
            self._break("one cause an act", f"{order.instance} ends, and {life.name} does not have to go")
        if life is None or is_over or not life.node:
            return
        for pod in self.simulation.cluster.api.pods_on(life.node):
            if self._holds(pod, life, now):
                what = f"{order.instance} ({life.name}, {life.going}) ends under {pod.namespace}/{pod.name}"
                self._break("no pod lost", what)

    def _holds(self, pod: Pod, life: Life, now: int) -> bool:
        shape = self.simulation.cluster.api.shape(pod)
        at_home = any(t.operator == "Exists" and t.key in ("", DISRUPTED) for t in shape.tolerations)
        own = pod.owner is not None and pod.owner.kind == "Node"
        if at_home or own or pod.phase in ("Succeeded", "Failed") or self._known(pod.uid) != life.node:
            return False
        return not (pod.deleting and now > pod.deleting + STUCK - self._off)

    def _forces(self, order: DeletePod) -> None:
        """No force earlier than a pod's own grace before the deadline, and that a grace period after the taint: by the
        true time, whatever the clocks say, unless most of them are ahead."""
        life, off = self.ledger.lives[order.claim], self._off + self.ledger.clocks.ahead
        now = self.simulation.clock.now + off
        pod = self.simulation.cluster.api.pods.get(order.uid)
        if life.deadline is None:
            self._break("no force before the deadline", f"{order.namespace}/{order.name} of {life.name}: there is none")
            return
        own = self.simulation.cluster.api.shape(pod).grace if pod is not None else None
        if pod is not None and not pod.deleting and now < life.deadline - (30 if own is None else own) * 1000:
            self._break(
                "no force before the deadline", f"{order.namespace}/{order.name}: {life.deadline - now} ms early"
            )
        least = life.tainted + (life.grace or 0) - 1000 - self._off
        if not life.repaired and life.grace is not None and life.deadline < least:
            self._break("no force before the deadline", f"{life.name}: the deadline is before its grace period")

    def _deletes(self, order: DeleteNode) -> None:
        """A Node outlives its instance, and the pods that run there."""
        life = self.ledger.lives.get(order.claim)
        instance = self.simulation.cloud.instances.get(life.instance) if life is not None else None
        if instance is not None and not instance.ended:
            self._break("no pod lost", f"{order.node} is deleted, and its instance {instance.machine.instance} runs")

    def _evicts(self, order: EvictPod) -> None:
        life = self.ledger.lives.get(order.claim)
        pod = self.simulation.cluster.api.pods.get(order.uid)
        node = self.simulation.cluster.api.nodes.get(order.node)
        if life is None and node is not None and not node.deleting:
            self._break("one cause an act", f"{order.namespace}/{order.name} is evicted from {order.node}, which stays")
        if life is not None and not life.draining and life.going:
            self._break("one cause an act", f"{order.namespace}/{order.name} is evicted; {life.name} does not drain")
        if pod is not None and pod.do_not_disrupt == "true":
            self._break("do-not-disrupt", f"{order.namespace}/{order.name} is evicted")
