"""What the demonstration does, in chapters: each changes something, lets time pass, and checks what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from kerf.adapters.cli.demo.errors import DemoFailed
from kerf.adapters.cli.demo.world import SPOT_WARNING, DemoWorld
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import report_text
from kerf.adapters.cli.render.simulation.live_story import LiveStory, kerf_command
from kerf.adapters.cli.simulate.runtime import DEMO_HOLDER, runtime_factory
from kerf.adapters.simulation.documents.apply import apply_document
from kerf.adapters.simulation.driver import Driver
from kerf.engine.errors import REPORT, KerfError
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import CAPACITY_TYPE, SPOT
from kerf.engine.model.quantities import format_quantity
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InterruptionSeen, Observation
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.indexes import Blobs
from kerf.projections.cost import CostFold
from kerf.projections.karpenter_logs import KarpenterLog, line_json
from kerf.projections.prose.amounts import dollars, duration
from kerf.replay.explain.pod import explain_pod
from kerf.replay.verify.verify import verify

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
SECOND, MINUTE = 1_000, 60_000
REPLICAS = 5
WORKSHOP = {
    "cpu": "1930m", "ephemeral-storage": "17Gi", "memory": "6903Mi", "pods": "29", "vpc.amazonaws.com/pod-eni": "9",
}  # fmt: skip
"""The m5.large's allocatable in the workshop's log line."""


def manifests() -> list[dict[str, Any]]:
    """The workshop's objects (docs/examples/workshop), and the namespace of its Deployment."""
    folder = files("kerf").joinpath("examples/workshop")
    names = ("ec2nodeclass.yaml", "nodepool.yaml", "inflate.yaml")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    return [namespace, *(yaml.safe_load(folder.joinpath(name).read_text(encoding="utf-8")) for name in names)]


class DemoScript:
    """`play` runs all chapters. Raises DemoFailed (KERF851)."""

    def __init__(self, out: Printer, world: DemoWorld, store: Store, record: Path, *, identity: str) -> None:
        self.out, self.world, self.store, self.record = out, world, store, record
        self.story = LiveStory(out, START, Blobs(store.blob).shape)
        self.log = KarpenterLog()
        self.cost = CostFold()
        self.entries: list[Entry] = []
        self.lines: list[dict[str, Any]] = []
        self.pods: dict[str, str] = {}  # uid → namespace/name, also of pods that are gone
        self.objects = {document["kind"]: document for document in manifests()}
        self._part = ""
        make_runtime = runtime_factory(store, holder=DEMO_HOLDER, record=identity, report=self._tell)
        self.driver = Driver(world, make_runtime, listener=self._turn)

    def play(self) -> None:
        try:
            self._right_node()
            self._empty_node()
            self._spot()
            self._interruption()
            self._closer()
            self._verified()
        except DemoFailed:
            raise
        except KerfError as error:
            raise DemoFailed(str(error), where=self._part) from error

    # ── chapters ────────────────────────────────────────────────────────────────────────────────────────────

    def _right_node(self) -> None:
        self._chapter("1. Five pods need a node")
        self.out.line(
            "   The EKS workshop's NodePool: on-demand c5.large, m5.large, r5.large or m5.xlarge, three zones."
        )
        self._type("kubectl apply -f docs/examples/workshop")
        for document in self.objects.values():
            self._apply(document)
        self._until(10 * SECOND)
        self._scale(REPLICAS)
        self._until(90 * SECOND)
        launched = self._the(ev.Launched)
        self._why(self._pods_of(launched.claim)[0])
        self.out.line()
        self.out.line("   The log line, as Karpenter writes it:")
        log_line = next(line for line in self.lines if line["message"] == "launched nodeclaim")
        self.out.line(line_json(log_line))
        self.out.line()
        allocatable = {name: format_quantity(amount, name) for name, amount in launched.allocatable.items()}
        self._check("kerf chose m5.large", launched.instance_type == "m5.large", launched.instance_type)
        self._check(
            "its allocatable is that of the workshop",
            allocatable == WORKSHOP == log_line["allocatable"],
            str(allocatable),
        )
        self._check_running(launched.claim, launched.capacity_type, "on-demand")

    def _empty_node(self) -> None:
        self._chapter("2. The pods go, and so does the node")
        self._until(2 * MINUTE)
        self._scale(0)
        self._until(4 * MINUTE)
        ended = self._the(ev.Terminated)
        self._check("the node was found empty", ended.why == "empty", ended.why)
        happened = [type(e.payload).__name__ for e in self.entries if getattr(e.payload, "claim", "") == ended.claim]
        order = [name for name in happened if name in ("Tainted", "DrainStarted", "Drained", "Terminated")]
        self._check(
            "it was tainted, drained, and ended, in that order",
            order == ["Tainted", "DrainStarted", "Drained", "Terminated"],
            ", ".join(order),
        )
        launched = self._the(ev.Launched)
        left = sorted(self._state().facts.claims) + sorted(self.world.cluster.api.nodes)
        left += [
            f"{i.instance} {i.status}" for i in self.world.cloud.describe([launched.instance]) if i.status != "gone"
        ]
        self._check("nothing is left of it, in the cluster and in EC2", not left, ", ".join(left))

    def _spot(self) -> None:
        self._chapter("3. The same on spot")
        pool = self.objects["NodePool"]
        for requirement in pool["spec"]["template"]["spec"]["requirements"]:
            if requirement["key"] == CAPACITY_TYPE:
                requirement["values"] = [SPOT]
        self._type("kubectl apply -f nodepool.yaml   # karpenter.sh/capacity-type is now spot")
        self._apply(pool)
        self._scale(REPLICAS)
        self._until(6 * MINUTE)
        launched = self._the(ev.Launched)
        self._check_running(launched.claim, launched.capacity_type, SPOT)
        on_demand = self._of(ev.Launched)[0].price
        self._check(
            f"it costs {dollars(launched.price)} an hour, and not {dollars(on_demand)}",
            launched.price < on_demand,
            dollars(launched.price),
        )

    def _interruption(self) -> None:
        self._chapter("4. The spot instance is taken back in two minutes")
        old = self._the(ev.Launched)
        self._type(f"(EC2 sends a spot interruption warning for {old.instance} through SQS)")
        warned = self.world.clock.now
        self.world.interrupt(old.instance)
        self._until(9 * MINUTE)
        self._check("the warning came through the queue", bool(self._of(InterruptionSeen)), "no message")
        new = self._the(ev.Launched)
        self._check("a replacement was launched", new.claim != old.claim, old.claim)
        up = next((e.at for e in self.entries if _is(e, ev.Initialized, new.claim)), 0)
        end = warned + SPOT_WARNING
        self._check(
            f"it was up {duration(up - warned)} after the warning, {duration(end - up)} before the end",
            0 < up <= end,
            f"initialized {duration(up - warned)} after the warning" if up else "never initialized",
        )
        self._check_running(new.claim, new.capacity_type, SPOT)
        why = next((e.payload.why for e in self.entries if _is(e, ev.Terminated, old.claim)), "not ended")
        self._check("the old node was drained and ended by kerf", why == "interrupted", why)
        self.out.line(f"   all nodes together cost {dollars(self.cost.total(self.entries[-1].at))}")

    def _closer(self) -> None:
        old, new = self._of(ev.Launched)[-2:]
        pod = self._pods_of(self._of(ev.Launched)[0].claim)[0]
        kerf, record, bundle = kerf_command(), quote(str(self.record)), quote(str(self.record.with_suffix(".kerfb")))
        self.out.line()
        self.out.line("Look closer:", "title")
        for what, why in (
            (f"explain {record} pod {pod}", "why did this pod get that node?"),
            (f"explain {record} nodeclaim {old.claim}", "why did this node come, and why did it go?"),
            (f"story {record} {new.claim}", "what happened to this one, and what brought it about?"),
            (f"log {record} --karpenter", "the log lines that Karpenter would write"),
            (f"at {record} +6m30s", "what did kerf know half a minute after the warning?"),
            (f"bundle export {record} {bundle}", "one file to hand on"),
            (f"verify {record}", "decide everything again"),
        ):
            self.out.line(f"  {kerf} {what}")
            self.out.line(f"      {why}", "debug")

    def _verified(self) -> None:
        self._chapter("Every decision of it, made again and compared")
        report = verify(self.store)
        report_text(self.out, report)
        same = report.exit_code == 0 and report.decisions > 0
        if not same:
            raise DemoFailed("the record does not verify", where=self._part, hint=REPORT)

    # ── what a person does ──────────────────────────────────────────────────────────────────────────────────

    def _chapter(self, title: str) -> None:
        self._part = title
        self.out.line()
        self.out.line(title, "title")

    def _type(self, what: str) -> None:
        self.story.line(self.world.clock.now, f"$ {what}" if not what.startswith("(") else what, "title")

    def _apply(self, document: dict[str, Any]) -> None:
        for _, error in apply_document(self.world, document):
            raise DemoFailed(str(error), where=self._part)

    def _scale(self, replicas: int) -> None:
        self._type(f"kubectl scale deployment inflate -n other --replicas {replicas}")
        deployment = self.objects["Deployment"]
        self._apply({**deployment, "spec": {**deployment["spec"], "replicas": replicas}})

    def _until(self, elapsed: int) -> None:
        self.driver.run(START + elapsed)

    # ── what came of it ─────────────────────────────────────────────────────────────────────────────────────

    def _turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        if isinstance(self.driver.runtime, Runtime):
            self._tell(self.driver.runtime.new_entries)

    def _tell(self, entries: Sequence[Entry]) -> None:
        self.story.tell(entries)
        self.entries += entries
        for entry in entries:
            self.cost.apply(entry)
            self.lines += self.log.apply(entry)
            if isinstance(entry.payload, Pod):
                self.pods[entry.payload.uid] = entry.payload.key

    def _state(self) -> Any:
        runtime = self.driver.runtime
        assert isinstance(runtime, Runtime)
        return runtime.state

    def _of(self, kind: type[Any]) -> list[Any]:
        return [entry.payload for entry in self.entries if isinstance(entry.payload, kind)]

    def _the(self, kind: type[Any]) -> Any:
        """The latest of its kind."""
        payloads = self._of(kind)
        if not payloads:
            raise DemoFailed(f"nothing was {kind.__name__.lower()}", where=self._part)
        return payloads[-1]

    def _pods_of(self, claim: str) -> list[str]:
        """Keys of the pods that a claim was requested for."""
        for requested in self._of(ev.Requested):
            if requested.claim == claim:
                return [self.pods[uid] for uid in requested.pods]
        raise DemoFailed(f"{claim} was never requested", where=self._part)

    def _why(self, pod: str) -> None:
        self.out.line()
        self.out.line(f"   Why that one? ({kerf_command()} explain {self.record} pod {pod})")
        pod_text(self.out.indented(), explain_pod(self.store, pod))

    def _check(self, what: str, ok: bool, found: str) -> None:
        if not ok:
            raise DemoFailed(
                f"not so: {what}; found {found}", where=self._part, hint="Please report it with the record"
            )
        self.out.line(f"   ok: {what}", "good")

    def _check_running(self, claim: str, capacity_type: str, expected: str) -> None:
        self._check(f"the node is {expected}", capacity_type == expected, capacity_type)
        node = self._state().facts.claims[claim].node
        running = [pod.key for pod in self._running() if pod.node == node]
        self._check(f"all {REPLICAS} pods run on {node}", len(running) == REPLICAS, f"{len(running)} of them")

    def _running(self) -> Iterator[Any]:
        return (p for p in self._state().facts.pods.values() if p.phase == "Running" and p.ready and not p.deleting)


def _is(entry: Entry, kind: type[Any], claim: str) -> bool:
    return isinstance(entry.payload, kind) and entry.payload.claim == claim
