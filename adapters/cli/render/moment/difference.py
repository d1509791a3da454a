"""The difference of two moments as text: "+" came, "-" is gone, "~" changed. First what is asked for otherwise, then
nodes, pods and the price, and last what statuses alone say."""

from __future__ import annotations

from kerf.adapters.cli.render.output import Printer
from kerf.projections.differences.structs import (
    CAME,
    CHANGED,
    GONE,
    NodeChange,
    ObjectChange,
    OfferChange,
    PriceChange,
    StateDifference,
    WorkloadChange,
)
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.few_words import few_words

_SIGNS = {CAME: "+", GONE: "-", CHANGED: "~"}
_FIRST = ("settings", "nodepool", "nodeclass", "nodeoverlay", "daemonset", "pdb")
_STYLES = {CAME: "good", GONE: "warning", CHANGED: "info"}


def difference_text(printer: Printer, found: StateDifference) -> None:
    """Print the moments, and what is different."""
    printer.line(
        f"from {moment(found.since)} (position {found.first}) to {moment(found.until)} (position {found.last}), "
        f"{duration(found.until - found.since)}",
        "title",
    )
    asked = [changed for changed in found.objects if changed.asked]
    asked_workloads = [workload for workload in found.workloads if workload.fields]
    others = [workload for workload in found.workloads if not workload.fields]
    for changed in sorted(asked, key=_rank):
        _object(printer, changed)
    for workload in asked_workloads:
        _workload(printer, workload)
    for offers in found.offers:
        _offers(printer, offers)
    for node in found.nodes:
        _node(printer, node)
    for workload in others:
        _workload(printer, workload)
    _prices(printer, found.prices)
    for changed in found.objects:
        if not changed.asked:
            _object(printer, changed)
    if not (found.objects or found.nodes or found.workloads or found.offers):
        printer.line("nothing is different")


def _rank(changed: ObjectChange) -> int:
    """What decides most about nodes first."""
    return _FIRST.index(changed.kind) if changed.kind in _FIRST else len(_FIRST)


def _object(printer: Printer, changed: ObjectChange) -> None:
    name = f"{changed.kind}/{changed.name}".rstrip("/")
    printer.line(f"{_SIGNS[changed.change]} {name}", _STYLES[changed.change] if changed.asked else "debug")
    for field in changed.fields:
        printer.line(f"    {field.words}", "info" if changed.asked else "debug")


def _offers(printer: Printer, change: OfferChange) -> None:
    """What the cloud asks otherwise: it is nobody's change, and may be why the price of nodes is another."""
    ends = dict.fromkeys(f"×{factor:.3g}" for factor in (change.least, change.most))
    which = f"{change.changed:,} of {change.offers:,} {change.capacity_type} offers"
    printer.line(f"~ the cloud's prices for NodeClass {change.node_class}: {which} {' to '.join(ends)}")
    printer.line(f"    {change.instance_type} {change.zone}: {dollars(change.was)}/h → {dollars(change.now)}/h")


def _prices(printer: Printer, prices: tuple[PriceChange, ...]) -> None:
    everything, pools = prices[:1], prices[1:]
    for price in everything:
        printer.line(f"price: {_price(price.was, price.now)}")
    if len(pools) > 1:
        for pool in pools:
            printer.line(f"  NodePool {pool.node_pool}: {_price(pool.was, pool.now)}")


def _price(was: float, now: float) -> str:
    if was == now:
        return f"{dollars(now)}/h, as before"
    return f"{dollars(was)}/h → {dollars(now)}/h ({'+' if now > was else '-'}{dollars(abs(now - was))}/h)"


def _node(printer: Printer, node: NodeChange) -> None:
    name = f"{node.node} ({node.claim})" if node.node else node.claim
    kind = " ".join(filter(None, [node.instance_type, node.capacity_type, node.zone])) or "not launched"
    price = f", {dollars(node.price)}/h" if node.price else ""
    why = f", {few_words(node.why)}" if node.why else ""
    printer.line(f"{_SIGNS[node.change]} node {name}: {kind}{price}{why}", _STYLES[node.change])
    for field in node.fields:
        printer.line(f"    {field.words}")


def _workload(printer: Printer, workload: WorkloadChange) -> None:
    pods = count(workload.now, "pod")
    pods = f"{workload.was} → {pods}" if workload.was != workload.now else pods
    sign = _SIGNS[CAME if not workload.was else GONE if not workload.now else CHANGED]
    printer.line(f"{sign} {workload.kind} {workload.workload}: {pods}")
    for field in workload.fields:
        printer.line(f"    pods ask for {field.words}")
    for place in workload.places:
        printer.line(f"    {place.node or 'without a node'}: {place.was} → {place.now}")
