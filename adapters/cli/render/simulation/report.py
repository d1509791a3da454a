"""How a simulation ended: nodes, costs, the pods that still wait and why, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.render.explain.not_asked import not_asked_words
from kerf.adapters.cli.render.notes import note_sentence
from kerf.adapters.cli.render.simulation.live_story import elapsed_text, kerf_command
from kerf.adapters.cli.render.text import counted, dollars, some, table_lines
from kerf.engine.model.durations import format_time
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import TERMINATED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InputRefused
from kerf.engine.scheduling.explain.crowding_daemonsets import crowding_behind
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.provisioning_window import in_service
from kerf.engine.state.state import State
from kerf.projections.cost import CostFold
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.pools_not_asked import pools_not_asked
from kerf.replay.subject_names import similar_names

HOUR = 3_600_000


class WaitReason(Struct, frozen=True):
    code: str
    text: str
    params: dict[str, Any] = {}


class PodsWithoutNode(Struct, frozen=True):
    """Pods (namespace/name) that have no place for the same reasons."""

    pods: tuple[str, ...]
    reasons: tuple[WaitReason, ...]


class NodeCounts(Struct, frozen=True):
    """`failed`: launches that came to nothing. `removed` counts by what the nodes were removed for."""

    launched: int
    failed: int
    removed: dict[str, int]
    running: int


class Costs(Struct, frozen=True):
    """USD at list prices: what the nodes cost in all, and what those that run cost an hour. `hours` are node hours."""

    total: float
    rate: float
    hours: float


class Note(Struct, frozen=True):
    """What the author of an accepted document should know."""

    object: str
    code: str
    text: str


class Refusal(Struct, frozen=True):
    """A document or an action that was refused: where in which object, and why."""

    code: str
    source: str
    object: str
    field: str
    message: str


class SimulationReport(Struct, frozen=True, kw_only=True):
    """How a simulation ended. `start` is RFC 3339, `duration` virtual time in seconds, `prices` names their source,
    `pods` counts by phase the pods that are there at the end. `interrupted`: by Ctrl-C, before its end."""

    record: str | None
    start: str
    duration: float
    prices: str
    nodes: NodeCounts
    types: dict[str, int]
    spent: Costs
    pods: dict[str, int]
    waiting: tuple[PodsWithoutNode, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[Note, ...]
    interrupted: bool = False


class ReportFold:
    """Folds a simulation's entries; `report` says how it ended."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._cost = CostFold()
        self._plans: list[ProvisionResult] = []  # the latest, and those that it goes on with
        self._types: Counter[str] = Counter()
        self._failed = 0
        self._removed: Counter[str] = Counter()
        self._refused: list[Refusal] = []
        self._notes: list[Note] = []

    def note(self, item: str, reason: Reason) -> None:
        self._notes.append(Note(item, reason.code, note_sentence(reason)))

    def apply(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._cost.apply(entry)
            payload = entry.payload
            if isinstance(payload, InputRefused):
                refused = Refusal(payload.code, payload.source, payload.object, payload.field, payload.message)
                self._refused.append(refused)
            elif isinstance(payload, Decision):
                if isinstance(payload.result, ProvisionResult) and not payload.result.repeats:
                    goes_on = bool(self._plans) and bool(self._plans[-1].truncated)
                    self._plans = [*(self._plans if goes_on else ()), payload.result]
            elif isinstance(payload, ev.Launched):
                self._types[f"{payload.capacity_type} {payload.instance_type}"] += 1
            elif isinstance(payload, ev.LaunchFailed | ev.LaunchTimedOut):
                self._failed += 1
            elif isinstance(payload, ev.Terminated):
                self._removed[payload.why] += 1
            elif isinstance(payload, ev.InstanceVanished):
                self._removed["vanished"] += 1

    def report(
        self, state: State, now: int, *, record: Path | None, prices: str, gated: Mapping[str, Sequence[str]]
    ) -> SimulationReport:
        """The report at `now` (ms since the epoch). `gated`: pods by uid with their scheduling gates."""
        running = [claim for claim in state.facts.claims.values() if claim.launched and claim.state != TERMINATED]
        return SimulationReport(
            record=str(record) if record is not None else None,
            start=format_time(self.start),
            duration=(now - self.start) / 1000,
            prices=prices,
            nodes=NodeCounts(self._types.total(), self._failed, dict(sorted(self._removed.items())), len(running)),
            types=dict(sorted(self._types.items(), key=lambda each: (-each[1], each[0]))),
            spent=Costs(
                round(self._cost.total(now), 6),
                round(self._cost.rate(), 6),
                round(fsum((paid.until or now) - paid.since for paid in self._cost.paid.values()) / HOUR, 6),
            ),
            pods=dict(sorted(Counter(pod.phase for pod in state.facts.pods.values()).items())),
            waiting=(*self._waiting(state), *_gated(state, gated)),
            refused=tuple(self._refused),
            notes=(*self._notes, *_pools_without_ready_class(state)),
        )

    def _waiting(self, state: State) -> Iterable[PodsWithoutNode]:
        """Pods that wait for provisioning, grouped by reasons, in the order of their names."""
        reasons_by_pod = {
            uid: group.reasons
            for plan in self._plans
            for group in (*plan.unplaced, *plan.ignored)
            for uid in group.pods
        }
        said: dict[tuple[int, str], str] = {}  # pods of a group share their reasons

        def in_words(reason: Reason, shape: str) -> str:
            key = id(reason), shape
            if key not in said:
                left_out = _left_out(state) if reason.code == SchedulingCode.NO_NODE_POOL else ""
                crowding = daemonsets_in_words(crowding_behind(state, reason, shape))
                said[key] = f"{sentence(reason)}{left_out}{crowding}"
            return said[key]

        alike: dict[tuple[str, ...], list[str]] = {}
        reasons: dict[tuple[str, ...], tuple[WaitReason, ...]] = {}
        for uid in sorted(state.indexes.pending, key=lambda uid: (state.facts.pods[uid].key, uid)):
            nearest = nearest_first(reasons_by_pod.get(uid, ()))
            shape = state.facts.pods[uid].shape
            why = tuple(WaitReason(reason.code, in_words(reason, shape), reason.params) for reason in nearest)
            why = why or (_planned(state, state.facts.targets.get(uid, "")),)
            key = tuple(wait_reason.text for wait_reason in why)
            alike.setdefault(key, []).append(state.facts.pods[uid].key)
            reasons[key] = why
        return [PodsWithoutNode(tuple(pods), reasons[key]) for key, pods in alike.items()]


def _pools_without_ready_class(state: State) -> Iterable[Note]:
    """A note for each NodePool whose NodeClass is missing or not ready."""
    for name, pool in sorted(state.facts.pools.items()):
        ref = pool.node_class
        known = state.facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
        if known is None or not known.ready:
            what = "is not there" if known is None else f"is not ready ({known.reason or 'no reason given'})"
            named = (key.rpartition("/")[2] for key in state.facts.node_classes)
            likely = similar_names(ref.name, named) if known is None else ()
            meant = f". Is it {' or '.join(likely)}?" if likely and ref.name not in likely else ""
            words = f"its {ref.kind} {ref.name} {what}: nothing can be launched for it{meant}"
            yield Note(f"NodePool {name}", "nodeclass-missing" if known is None else "nodeclass-not-ready", words)


def _left_out(state: State) -> str:
    """Why each NodePool launches nothing for pods that wait, where none does."""
    why = [
        f"{pool.node_pool}: {not_asked_words(pool)}"
        for pool in pools_not_asked(state, (Reason(SchedulingCode.NO_NODE_POOL),))
    ]
    return f" ({'; '.join(why)})" if why else ": there is none" if not state.facts.pools else ""


def _gated(state: State, gated: Mapping[str, Sequence[str]]) -> Iterable[PodsWithoutNode]:
    """Pods with closed scheduling gates, grouped by gates: they are not provisioned for (S-40)."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for uid, gates in gated.items():
        if uid in state.facts.pods:
            alike.setdefault(tuple(gates), []).append(state.facts.pods[uid].key)
    for gates, pods in sorted(alike.items()):
        text = f"kube-scheduler does not look at it before its scheduling gates are removed: {', '.join(gates)}"
        yield PodsWithoutNode(tuple(sorted(pods)), (WaitReason("scheduling-gated", text, {"gates": list(gates)}),))


def _planned(state: State, target: str) -> WaitReason:
    """What a pod waits for that no plan had a reason against. `target`: the claim or node planned for it, if any."""
    if target and in_service(state.facts, target):
        text = f"{target} is planned for it and in service, and kube-scheduler has not bound it there"
        return WaitReason("not-bound", text, {"target": target})
    if target:
        return WaitReason("planned", f"waits for {target}, which is on its way", {"target": target})
    return WaitReason("undecided", "its batching window is still open: nothing was decided yet")


# ── for people ──────────────────────────────────────────────────────────────────────────────────────────────


def describe(report: SimulationReport) -> list[str]:
    """The report as lines for people."""
    nodes, spent = report.nodes, report.spent
    removed = ", ".join(f"{count} {why}" for why, count in nodes.removed.items())
    launched = ", ".join(f"{count} {kind}" for kind, count in report.types.items())
    pods = ", ".join(f"{count} {phase.lower()}" for phase, count in report.pods.items())
    rows = [
        ("virtual time", _virtual_time(report)),
        ("nodes launched", _with_detail(nodes.launched, launched)),
        ("nodes removed", _with_detail(sum(nodes.removed.values()), removed)),
        ("nodes running", f"{nodes.running}, {dollars(spent.rate)} an hour"),
        ("cost", f"{dollars(spent.total)} for {spent.hours:.2f} node hours"),
        ("prices", report.prices),
        ("pods", pods or "none"),
    ]
    if nodes.failed:
        rows.insert(2, ("launches failed", str(nodes.failed)))
    return [
        "",
        *table_lines(rows),
        *_waiting_lines(report.waiting),
        *(f"  note on {note.object}: {note.text} ({note.code})" for note in report.notes),
        *_refused_lines(report.refused),
        *_next_commands(report),
    ]


def _virtual_time(report: SimulationReport) -> str:
    lasted = elapsed_text(round(report.duration * 1000)).removeprefix("+")
    weekday = datetime.fromisoformat(report.start).strftime("%A")
    stopped = ", interrupted" if report.interrupted else ""
    return f"{lasted} from {report.start}, a {weekday}{stopped}"


def _with_detail(number: int, detail: str) -> str:
    return f"{number} ({detail})" if detail else str(number)


def _waiting_lines(waiting: Sequence[PodsWithoutNode]) -> list[str]:
    lines = []
    for group in waiting:
        lines.append(f"  {counted(len(group.pods), 'pod')} without a node: {some(group.pods)}")
        lines += [f"    {why.code}: {why.text}" for why in group.reasons]
    return lines


def _refused_lines(refused: Sequence[Refusal]) -> list[str]:
    lines = [f"  {len(refused)} refused, the rest went on:"] if refused else []
    for refusal in refused:
        field = f" {refusal.field}:" if refusal.field else ""
        lines.append(f"    {refusal.code} {refusal.object}:{field} {refusal.message}")
    return lines


def _next_commands(report: SimulationReport) -> list[str]:
    if report.record is None:
        return ["", "  To look closer, keep the record: --record FILE"]
    record, kerf = quote(report.record), kerf_command()
    lines = ["", "  Look closer:", f"    {kerf} log {record}", f"    {kerf} verify {record}"]
    if report.waiting:
        lines.append(f"    {kerf} explain {record} pod {report.waiting[0].pods[0]}")
    return lines
