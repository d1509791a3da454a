"""What a reader should look at first: the verdict at the record's end, what goes round in circles, and what went wrong
over the whole record, the worst first. Each finding has the command that prints it."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from msgspec import Struct

from kerf.adapters.cli.render.figures.loops import loop_costs, loop_words
from kerf.adapters.cli.render.text import dollars, some
from kerf.adapters.web.reader import RecordReader
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.projections.cluster_status.nodes import fullness
from kerf.projections.cluster_status.structs import BUSY, FAILING, ClusterStatus, NodeStatus, UnderWay
from kerf.projections.cluster_status.words import UNDER_WAY, ground_words, late_words
from kerf.projections.explorer.drawn import Drawn
from kerf.projections.explorer.troubles import Trouble
from kerf.projections.figures.loops import UNUSED, Loop
from kerf.projections.prose.amounts import count, duration
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.projections.prose.reasons import sentence
from kerf.projections.timeline.event import ERROR, INFO, WARNING
from kerf.replay.partial_records import imported_from

MOST = 40
IDLE = 0.3
"""A node that is less full than this costs more than it serves."""
_KINDS_OF_GROUNDS = {
    "pool-not-ready": "nodepool", "node-not-ready": "node", "orphans": "instance",
    "clocks-differ": "nodepool", "under-way": "nodeclaim",
}  # fmt: skip
"""Code of a ground → the kind of what it is about. All others are about pods."""
_BY_POOLS_BUDGETS = (
    DisruptionCode.BUDGET, DisruptionCode.BAD_BUDGET, ExplanationCode.WAITS_FOR_BUDGET,
    ExplanationCode.BUDGET_ALLOWS_NONE,
)  # fmt: skip
_GRAVE = frozenset(
    [
        "pods-not-reached", "pods-without-place", "nodeclass-not-ready", "claim-launch-timed-out",
        "claim-launch-failed", "clocks-differ",
    ]
)  # fmt: skip
_USUAL = frozenset(
    ["interruption-announced", "claim-instance-vanished", "pod-bound-elsewhere", "input-refused", "watch-gap"]
)
"""Codes of troubles that keep pods waiting; and of those that come and go on most days. All others lie between."""


class Finding(Struct, frozen=True, kw_only=True):
    """Something to look at. `level` is error, warning or info; `text` says what, `more` how often, how long, how much.
    `subject` is what to look at, at the time `at`; `since` and `until` (ms since the epoch) are when it was."""

    kind: str
    level: str
    text: str
    more: str
    subject: str
    at: int
    since: int
    until: int
    command: str


class FindingsAnswer(Struct, frozen=True, kw_only=True):
    """`verdict` is that at the record's end. `hidden` counts findings that are left out. `read` is the share of the
    record's entries that are read; below 1, loops and troubles are not known yet."""

    verdict: str
    findings: list[Finding]
    hidden: int
    read: float = 1.0


def findings(reader: RecordReader) -> FindingsAnswer:
    """What to look at first: the verdict's grounds at the end, loops, and troubles of the whole record."""
    drawn, read, status = reader.picture.now(), reader.picture.read, reader.status_at_end()
    imported = imported_from(reader.store)
    unserved = imported is not None and Missing.BINDINGS in imported.lacks
    known = drawn if read >= 1 else Drawn()
    loops = [loop for loop in known.loops if not (unserved and loop.kind == UNUSED)]
    troubles = sorted(known.troubles, key=_rank)
    found = [
        *_of_verdict(status, reader.quoted),
        *(_of_loop(loop, reader.quoted) for loop in loops),
        *(_of_trouble(trouble, reader.quoted) for trouble in troubles if trouble.code not in _USUAL),
        *_of_idle(status, reader.quoted),
        *(_of_trouble(trouble, reader.quoted) for trouble in troubles if trouble.code in _USUAL),
    ]
    hidden = max(0, len(found) - MOST)
    return FindingsAnswer(verdict=status.verdict.level, findings=found[:MOST], hidden=hidden, read=round(read, 2))


def _of_verdict(status: ClusterStatus, record: str) -> Iterator[Finding]:
    for ground in status.verdict.grounds:
        if ground.level == BUSY:
            continue
        if ground.code in _APART:
            yield from _APART[ground.code](status, record)
            continue
        kind = _KINDS_OF_GROUNDS.get(ground.code, "pod")
        yield Finding(
            kind="verdict",
            level=ERROR if ground.level == FAILING else WARNING,
            text=ground_words(ground),
            more="at the end of the record",
            subject=f"{kind}/{ground.subjects[0]}",
            at=status.at,
            since=status.at,
            until=status.at,
            command=f"kerf status {record}",
        )


def _of_kept(status: ClusterStatus, record: str) -> Iterator[Finding]:
    """Nodes that have drifted and are kept, by the PodDisruptionBudgets that keep them: the longest kept first."""
    groups: dict[tuple[str, ...], list[NodeStatus]] = {}
    for node in sorted(status.nodes, key=lambda node: (node.drifted_since, node.name)):
        if node.kept_by:
            groups.setdefault(node.kept_by, []).append(node)
    for budgets, nodes in groups.items():
        noun, have = ("node", "has drifted and is") if len(nodes) == 1 else ("nodes", "have drifted and are")
        names = some([node.name for node in nodes], 2)
        yield Finding(
            kind="verdict",
            level=WARNING,
            text=f"{noun} {names} {have} kept by PodDisruptionBudget {some(budgets)}",
            more="at the end of the record",
            subject=f"poddisruptionbudget/{budgets[0]}",
            at=status.at,
            since=nodes[0].drifted_since,
            until=status.at,
            command=f"kerf status {record}",
        )


def _of_late(status: ClusterStatus, record: str) -> Iterator[Finding]:
    """What takes too long, with what it waits for, the oldest first; of several that wait for the same, the first."""
    groups: dict[str, list[UnderWay]] = {}
    for part in status.under_way:
        if part.late:
            groups.setdefault(f"{UNDER_WAY[part.kind]} {late_words(part)}", []).append(part)
    for first, *others in groups.values():
        waits = late_words(first)
        are = f" and {len(others)} more are" if others else " is"
        yield Finding(
            kind="verdict",
            level=WARNING,
            text=f"{UNDER_WAY[first.kind]} {first.subjects[0]}{are} late{': ' if waits else ''}{waits}",
            more="at the end of the record",
            subject=f"poddisruptionbudget/{first.budgets[0]}" if first.budgets else f"nodeclaim/{first.subjects[0]}",
            at=status.at,
            since=first.since,
            until=status.at,
            command=f"kerf status {record}",
        )


_APART = {"drifted-kept": _of_kept, "late": _of_late}
"""Code of a ground → what has a card for each thing that it is about."""


def _of_idle(status: ClusterStatus, record: str) -> Iterator[Finding]:
    """Nodes that little is asked of and that stay, by the reason: the dearest reason first."""
    groups: dict[tuple[str, str], list[NodeStatus]] = {}
    for node in status.nodes:
        if node.state == INITIALIZED and node.reason is not None and not node.going and fullness(node) < IDLE:
            groups.setdefault((node.few_words, _pool_that_holds(node)), []).append(node)
    for _, nodes in sorted(groups.items(), key=lambda item: (-fsum(node.price for node in item[1]), item[0])):
        price = fsum(node.price for node in nodes)
        stay = "stays" if len(nodes) == 1 else "stay"
        shown = some([node.name for node in nodes], 2)
        words, subject = _cause(nodes)
        yield Finding(
            kind="idle",
            level=INFO,
            text=f"{count(len(nodes), 'node')} under {IDLE:.0%} full, and {stay}: {words} ({shown})",
            more=f"{dollars(price)}/h, at the end of the record",
            subject=subject,
            at=status.at,
            since=status.at,
            until=status.at,
            command=f"kerf status {record} --all",
        )


def _pool_that_holds(node: NodeStatus) -> str:
    """Return the NodePool whose disruption budgets keep a node, "" for another reason."""
    return node.node_pool if node.reason is not None and node.reason.code in _BY_POOLS_BUDGETS else ""


def _cause(nodes: list[NodeStatus]) -> tuple[str, str]:
    """Return why nodes stay that stay for the same reason, and what is to be looked at: what holds all of them, or else
    the first."""
    first = nodes[0]
    reasons = [node.reason.params for node in nodes if node.reason is not None]
    pool, held = _pool_that_holds(first), reasons[0].get("budgets")
    if pool:
        return f"{first.few_words}, of NodePool {pool}", f"nodepool/{pool}"
    if isinstance(held, list) and all(params.get("budgets") == held for params in reasons):
        return f"PodDisruptionBudget {some(held)} allows no eviction", f"poddisruptionbudget/{held[0]}"
    words = sentence(first.reason) if len(nodes) == 1 and first.reason is not None and reasons[0] else first.few_words
    return words, f"node/{first.name}"


def _of_loop(loop: Loop, record: str) -> Finding:
    return Finding(
        kind="loop",
        level=WARNING,
        text=loop_words(loop),
        more=loop_costs(loop),
        subject=f"nodeclaim/{loop.claims[-1]}",
        at=loop.until,
        since=loop.since,
        until=loop.until,
        command=f"kerf churn {record}",
    )


def _of_trouble(trouble: Trouble, record: str) -> Finding:
    lasted = f" within {duration(trouble.until - trouble.since)}" if trouble.until > trouble.since else ""
    subject = trouble.subjects[0]
    decided = subject.startswith("decision/") or subject == "record"
    over = "over " if trouble.others else ""
    about = f", of {over}{len(trouble.subjects)} subjects" if len(trouble.subjects) > 1 else ""
    return Finding(
        kind="usual" if trouble.code in _USUAL else "trouble",
        level=trouble.level,
        text=trouble.text,
        more=f"{count(trouble.count, 'time')}{lasted}{about}" if trouble.count > 1 else "once",
        subject=f"decision/{trouble.positions[0]}" if decided else subject,
        at=trouble.since,
        since=trouble.since,
        until=trouble.until,
        command=f"kerf log {record} --reason {trouble.code}",
    )


def _rank(trouble: Trouble) -> tuple[int, int, int]:
    """The worst first: by what it means, then by how often it was."""
    group = 0 if trouble.code in _GRAVE else 2 if trouble.code in _USUAL else 1
    return group, -trouble.count, trouble.positions[0]
