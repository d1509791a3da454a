"""The explanation of a NodeClass, as text: whether it is ready, what it selects, and who uses it."""

from __future__ import annotations

from kerf.adapters.cli.render.explain.not_asked import condition_words
from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.amounts import count, moment
from kerf.projections.prose.drift import drifted_words
from kerf.replay.explain.user_objects.nodeclass import (
    GONE,
    NOT_READY,
    Found,
    NodeClassExplanation,
    PoolOfClass,
    Selected,
)


def node_class_text(printer: Printer, explained: NodeClassExplanation) -> None:
    kind = f"{explained.kind} " if explained.kind else "NodeClass "
    as_of = f"as of position {explained.position} ({moment(explained.at)})"
    printer.line(f"{kind}{explained.node_class}: {explained.status}, {as_of}", "title")
    if explained.status == GONE:
        return
    not_ready = explained.status == NOT_READY
    if not_ready:
        why = Reason(explained.reason or "no reason given", {"message": explained.message})
        printer.line(f"it is not ready: {condition_words(why)}", "warning")
    for condition in explained.conditions:
        if condition.type != "Ready":
            printer.line(*_condition(condition))
    for selected in explained.selected:
        _selected(printer, selected)
    if explained.role or explained.instance_profile:
        role = f"role {explained.role}" if explained.role else ""
        profile = f"instance profile {explained.instance_profile}" if explained.instance_profile else ""
        printer.line(", ".join(filter(None, (role, profile))))
    for pool in explained.node_pools:
        _pool(printer, pool, not_ready=not_ready)
    if not any(pool.node_pool for pool in explained.node_pools):
        printer.line("no NodePool uses it")


def _condition(condition: Condition) -> tuple[str, str]:
    """A condition, and how it is printed."""
    if condition.status == "True":
        return f"condition {condition.type} is met", "info"
    why = condition_words(Reason(condition.reason or condition.status, {"message": condition.message}))
    return f"condition {condition.type} is {condition.status}: {why}", "warning"


def _selected(printer: Printer, selected: Selected) -> None:
    by = f" by {' or '.join(selected.by)}" if selected.by else ""
    if not selected.found:
        printer.line(f"{selected.what}{by}: none", "warning")
        return
    printer.line(f"{selected.what}{by}:")
    for found in selected.found:
        printer.line(f"  {_words(found)}")


def _words(found: Found) -> str:
    name = f"{found.name} ({found.id})" if found.name else found.id
    return f"{name}: {found.told}" if found.told else name


def _pool(printer: Printer, pool: PoolOfClass, *, not_ready: bool) -> None:
    drifted = f", {drifted_words(pool.drifted_by)}" if pool.drifted else ""
    if not pool.node_pool:
        printer.line(f"{count(pool.nodes, 'node')} without a NodePool{drifted}")
        return
    launches = "; it launches nothing while this NodeClass is not ready" if not_ready else ""
    printer.line(f"NodePool {pool.node_pool} uses it for {count(pool.nodes, 'node')}{drifted}{launches}")
