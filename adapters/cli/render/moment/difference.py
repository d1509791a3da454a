"""The difference of two moments as text: "+" came, "-" is gone, "~" changed."""

from __future__ import annotations

from kerf.adapters.cli.render.output import Printer
from kerf.projections.differences.structs import CAME, CHANGED, GONE, NodeChange, StateDifference, WorkloadChange
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.few_words import few_words

_SIGNS = {CAME: "+", GONE: "-", CHANGED: "~"}
_STYLES = {CAME: "good", GONE: "warning", CHANGED: "info"}


def difference_text(printer: Printer, found: StateDifference) -> None:
    """Print the moments, the price, and what is different."""
    printer.line(
        f"from {moment(found.since)} (position {found.first}) to {moment(found.until)} (position {found.last}), "
        f"{duration(found.until - found.since)}",
        "title",
    )
    everything, pools = found.prices[:1], found.prices[1:]
    for price in everything:
        printer.line(f"price: {_price(price.was, price.now)}")
    if len(pools) > 1:
        for pool in pools:
            printer.line(f"  NodePool {pool.node_pool}: {_price(pool.was, pool.now)}")
    for changed in found.objects:
        name = f"{changed.kind}/{changed.name}".rstrip("/")
        printer.line(f"{_SIGNS[changed.change]} {name}", _STYLES[changed.change])
        for field in changed.fields:
            printer.line(f"    {field.words}")
    for node in found.nodes:
        _node(printer, node)
    for workload in found.workloads:
        _workload(printer, workload)
    if not (found.objects or found.nodes or found.workloads):
        printer.line("nothing is different")


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
