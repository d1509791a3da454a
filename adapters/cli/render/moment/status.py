"""The status of a cluster as text: as wide as the terminal, with 80 columns at most. A line for each thing, and bars
as eks-node-viewer has them."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from kerf.adapters.cli.render.figures.tables import common_words
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import some
from kerf.adapters.cli.render.width import text_width
from kerf.engine.model.missing_knowledge import Missing, words_of
from kerf.projections.cluster_status.nodes import ALWAYS_SHOWN, fullness
from kerf.projections.cluster_status.structs import (
    BUSY,
    DEGRADED,
    FAILING,
    FINE,
    ClusterStatus,
    NodeStatus,
    Recent,
    UnderWay,
    Usage,
    WaitingWorkload,
)
from kerf.projections.cluster_status.words import OUTLOOKS, UNDER_WAY, ground_words, late_words
from kerf.projections.figures.capacity import OFFERING_PARTS
from kerf.projections.figures.measures import in_common
from kerf.projections.prose.amounts import count, duration, moment, rounded
from kerf.projections.prose.few_words import few_words
from kerf.projections.prose.overlaid_prices import overlaid_words

MAX_NODES, MAX_WORKLOADS, MAX_UNDER_WAY = 20, 12, 12
"""How many lines of each kind are shown without --all."""
_STYLES = {FINE: "good", BUSY: "good", DEGRADED: "warning", FAILING: "error"}
_BAR, _SHORT_BAR, _LEAST_NAME, _MOST_NAME = 10, 5, 12, 26
_BESIDE_BARS, _NARROW = 34, 68
"""The columns of a node's line besides its name and bars; a terminal that is narrower has short bars."""
_BARRED = (("cpu", "cpu"), ("mem", "memory"))
"""What has a bar: its label and the resource."""


def status_text(printer: Printer, status: ClusterStatus, *, all_nodes: bool = False) -> None:
    """Print the status: verdict, totals, what waits, what is under way, NodePools, nodes."""
    _header(printer, status)
    _section(printer, "WAITING", _waiting(status.waiting), len(status.waiting), MAX_WORKLOADS, all_nodes)
    _section(printer, "UNDER WAY", _under_way(status), len(status.under_way), MAX_UNDER_WAY, all_nodes)
    _section(printer, "NODEPOOLS", _pools(status), len(status.pools), len(status.pools), all_nodes)
    nodes = sorted(status.nodes, key=lambda node: (fullness(node), node.name))
    title = "NODES" if len(nodes) <= MAX_NODES or all_nodes else f"NODES (the emptiest {MAX_NODES} of {len(nodes)})"
    _section(printer, title, _nodes(nodes, status.at), len(nodes), MAX_NODES, all_nodes)


def _header(printer: Printer, status: ClusterStatus) -> None:
    grounds = [ground_words(ground) for ground in status.verdict.grounds if ground.level == status.verdict.level]
    nothing = "nothing waits for a node" if status.waiting else "nothing waits"
    text = f"{status.verdict.level}: {'; '.join(grounds) or nothing}"
    if _lacks(status, Missing.PODS, Missing.BINDINGS) and not grounds:
        text = "nothing is under way; whether pods wait is not known"
    for line in _wrapped(text, ""):
        printer.line(line, _STYLES[status.verdict.level])
    totals = status.totals
    pods = ", ".join(f"{number} {what}" for what, number in totals.pods.items()) or "none"
    pods = "not known" if _lacks(status, Missing.PODS, Missing.BINDINGS) else pods
    printer.line(f"{moment(status.at)}, position {status.position}")
    coming = sum(map(_is_coming, status.nodes))
    nodes = count(totals.nodes, "node") + (f" and {coming} coming" if coming else "")
    nodes = "nodes: not known" if _lacks(status, Missing.NODES) else nodes
    price = "" if _lacks(status, Missing.PRICES) else f", {_price(totals.price)}/h"
    for text in (f"{nodes}{price}; pods: {pods}", _recently(status.recent)):
        for line in _wrapped(text, ""):
            printer.line(line)
    if status.window_closes:
        printer.line(f"a plan for what waits is made at {moment(status.window_closes)}")
    avoided = _offerings("without capacity lately, not asked for", status.unavailable)
    doubted = _offerings("refused when last asked for, replacing no node", status.in_doubt)
    for text in (avoided, doubted, _lacking(status)):
        for line in _wrapped(text, ""):
            printer.line(line)


def _recently(recent: Recent | None) -> str:
    """Say what happened in the hour before; "" if nothing did."""
    if recent is None:
        return ""
    gone = ", ".join(f"{number} {few_words(why)}" for why, number in recent.gone.items())
    told = [
        f"{count(recent.launched, 'node')} launched" if recent.launched else "",
        f"{count(recent.failed, 'launch')} failed" if recent.failed else "",
        f"{count(sum(recent.gone.values()), 'node')} gone ({gone})" if recent.gone else "",
        f"{count(recent.evicted, 'pod')} evicted" if recent.evicted else "",
        f"{count(recent.forced, 'pod')} deleted by force" if recent.forced else "",
    ]
    return f"in the hour before: {', '.join(filter(None, told))}" if any(told) else ""


def _offerings(what: str, until: dict[str, int]) -> str:
    """Name offerings, and until when the first of them is what it is."""
    if not until:
        return ""
    offerings = [" ".join(filter(None, key.split("|"))) for key in until]
    parts = [dict(zip(("capacity", "type", "zone"), key.split("|"), strict=False)) for key in until]
    shared = common_words(in_common(parts, OFFERING_PARTS))
    told = f" (all with {shared})" if shared else ""
    ends = "" if len({*until.values()}) == 1 else " (the first)"
    return f"{what}{told} until {moment(min(until.values()))}{ends}: {some(offerings, 5)}"


def _is_coming(node: NodeStatus) -> bool:
    return bool(node.claim) and node.name == node.claim


def _lacks(status: ClusterStatus, *missing: Missing) -> bool:
    return not set(missing).isdisjoint(status.lacks)


def _lacking(status: ClusterStatus) -> str:
    return f"partial; not known: {', '.join(map(words_of, status.lacks))}" if status.lacks else ""


def _section(printer: Printer, title: str, items: Iterator[list[str]], of: int, most: int, everything: bool) -> None:
    """Print a title and its items, each of which is a few lines; nothing without items. What is not shown of them is
    not written either."""
    if not of:
        return
    printer.line()
    printer.line(title, "title")
    shown = of if everything else min(of, most)
    for first, *rest in islice(items, shown):
        printer.line(first)
        for line in rest:
            printer.line(line, "debug")
    if shown < of:
        printer.line(f"  … and {of - shown} more: --all", "debug")


# ── what waits, what is under way ──────────────────────────────────────────────────────────────────────────────────


def _waiting(groups: Iterable[WaitingWorkload]) -> Iterator[list[str]]:
    for group in groups:
        asked = ", ".join(f"{rounded(amount, name)} {name}" for name, amount in group.requests.items())
        where = f" {some(group.places)}" if group.places else ""
        why = group.why.removeprefix("NodePool ") if group.why else OUTLOOKS[group.outlook] + where
        each = f", {asked}{' each' if len(group.pods) > 1 else ''}" if asked else ""
        yield [
            f"  {group.workload}: {count(len(group.pods), 'pod')} for {_time(group.waited)}{each}",
            *_wrapped(why, "    "),
        ]


def _under_way(status: ClusterStatus) -> Iterator[list[str]]:
    nodes = {node.claim: node for node in status.nodes if node.claim}
    for part in status.under_way:
        waits = late_words(part)
        late = f"  late{': ' if waits else ''}{waits}" if part.late else ""
        yield [*_wrapped(f"{_time(part.age):>8}  {UNDER_WAY[part.kind]} {_what(part, nodes)}{late}", " " * 10)]


def _budgets(names: tuple[str, ...]) -> str:
    return f"PodDisruptionBudget {some(names)}"


def _what(part: UnderWay, nodes: dict[str, NodeStatus]) -> str:
    """Name what something under way is about: claims with their nodes and types, pods, the reason."""
    names = [_with_node(name, nodes.get(name)) for name in part.subjects]
    onto = f" → {some(part.onto)}" if part.onto else ""
    saves = f", saves {_price(part.savings)}/h" if part.savings else ""
    why = f", {part.why}" if part.why else ""
    pods = f", {count(part.pods, 'pod')} {'left' if part.why else 'for it'}" if part.pods else ""
    return f"{some(names)}{onto}{why}{pods}{saves}"


def _with_node(claim: str, node: NodeStatus | None) -> str:
    if node is None:
        return claim
    facts = [node.name if node.name != claim else "", node.instance_type]
    told = ", ".join(filter(None, facts))
    return f"{claim} ({told})" if told else claim


# ── NodePools and nodes ────────────────────────────────────────────────────────────────────────────────────────────


def _pools(status: ClusterStatus) -> Iterator[list[str]]:
    width = _name_width(pool.name for pool in status.pools)
    coming = Counter(node.node_pool for node in status.nodes if _is_coming(node))
    for pool in status.pools:
        limits = [
            f"{rounded(limit.requested, name)} of {rounded(limit.allocatable, name)} {name}"
            for name, limit in pool.limits.items()
        ]
        still = coming[pool.name]
        told = [count(pool.nodes - still, "node") + (f" and {still} coming" if still else "")]
        told += [] if _lacks(status, Missing.PRICES) else [f"{_price(pool.price)}/h"]
        told += [f"limits: {', '.join(limits)}"] if limits else []
        told += [f"{pool.drifted} drifted"] if pool.drifted else []
        wrong = [line for text in pool.wrong for line in _wrapped(f"not ready: {text}", "    ")]
        yield [*_named(pool.name, width, _bars(pool.usage)), *_wrapped(", ".join(told), "    "), *wrong]


def _nodes(nodes: list[NodeStatus], now: int) -> Iterator[list[str]]:
    short = _short_names(node.name for node in nodes)
    width = _name_width(short.values())
    asked = frozenset(name for node in nodes for name, part in node.usage.items() if part.requested)
    for node in nodes:
        cordoned = "cordoned" if node.cordoned else ""
        kind = " ".join(filter(None, [node.instance_type, node.capacity_type, node.zone]))
        age = f"{_time(node.age)} old" if node.age else ""
        pods = _pods(node)
        told = ", ".join(filter(None, [kind, pods, age, *_others(node.usage, asked), overlaid_words(node.overlaid)]))
        price = _price(node.price) if node.price else "-"
        yield [
            *_named(short[node.name], width, f"{_bars(node.usage)}  {price:>8}"),
            *_wrapped("; ".join(filter(None, [cordoned, _why_there(node, now), told])), "    "),
        ]


def _why_there(node: NodeStatus, now: int) -> str:
    """Say why a node stays or goes, and that it has drifted, whatever keeps it."""
    drifted = f"drifted for {_time(now - node.drifted_since)}" if node.drifted_since and not node.going else ""
    if node.kept_by:
        return f"{drifted}, kept by {_budgets(node.kept_by)}"
    words = f"stays: {node.few_words}" if node.reason is not None and node.ready else node.few_words
    if node.again:
        words += f", refused ones count again at {moment(node.again)}"
    return ", ".join(filter(None, [drifted, words]))


def _named(name: str, width: int, rest: str) -> list[str]:
    """Put a name before the rest of its line; one that is too long for its column has a line of its own."""
    return [f"  {name:<{width}}  {rest}"] if len(name) <= width else [f"  {name}", f"  {'':<{width}}  {rest}"]


def _bars(usage: dict[str, Usage]) -> str:
    return "  ".join(f"{label} {_bar(usage.get(name, Usage(0, 0)))}" for label, name in _BARRED)


def _bar(usage: Usage) -> str:
    """Return a bar of what pods ask for, and its share; a node whose resources are not known yet has dots."""
    full, empty = ("█", "░") if _has_unicode() else ("#", ".")
    if not usage.allocatable:
        return empty * _bar_width() + "    -"
    share, width = usage.requested / usage.allocatable, _bar_width()
    filled = min(width, round(share * width))
    return full * filled + empty * (width - filled) + f"{min(share, 9.99):5.0%}"


def _bar_width() -> int:
    return _BAR if text_width() >= _NARROW else _SHORT_BAR


def _pods(node: NodeStatus) -> str:
    """Count the pods of a node; of one that takes no more, with how many it takes: nothing else may show why."""
    room = node.usage.get("pods", Usage(0, 0))
    if room.allocatable and room.requested >= room.allocatable:
        return f"{node.pods} of {count(room.allocatable, 'pod')}"
    return count(node.pods, "pod") if node.usage else ""


def _others(usage: dict[str, Usage], asked: frozenset[str]) -> list[str]:
    """Name what there is besides CPU, memory and pods, if any pod asks for it: GPUs, say."""
    return [
        f"{part.requested}/{part.allocatable} {name}"
        for name, part in usage.items()
        if name in asked and part.allocatable and name not in ALWAYS_SHOWN
    ]


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Return each name without its domain, if no two nodes are then called the same."""
    listed = sorted(set(names))
    short = {name: name.partition(".")[0] for name in listed}
    return short if len(set(short.values())) == len(listed) else dict(zip(listed, listed, strict=True))


def _name_width(names: Iterable[str]) -> int:
    most = min(_MOST_NAME, text_width() - _BESIDE_BARS - 2 * _bar_width())
    return max(_LEAST_NAME, min(most, max(map(len, names), default=0)))


def _price(amount: float) -> str:
    return f"${amount:,.4f}"


def _time(milliseconds: int) -> str:
    """Write a duration without parts of a second."""
    return duration(milliseconds // 1000 * 1000)


def _wrapped(text: str, indent: str) -> list[str]:
    """Return a text in lines of `text_width` at most, broken between words; a longer word stays whole."""
    first = "" if text.startswith(" ") else indent
    return textwrap.wrap(
        text,
        text_width(),
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _has_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
