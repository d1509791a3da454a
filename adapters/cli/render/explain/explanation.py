"""Any explanation, as text; those of workloads and NodePools in full."""

from __future__ import annotations

from kerf.adapters.cli.render.explain.budget import budget_text
from kerf.adapters.cli.render.explain.claim import claim_text
from kerf.adapters.cli.render.explain.decision import decision_text
from kerf.adapters.cli.render.explain.node_class import node_class_text
from kerf.adapters.cli.render.explain.not_asked import condition_words
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.prose.amounts import count, dollars, duration, moment, rounded
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.drift import drifted_words
from kerf.projections.prose.few_words import few_words
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.claim import ClaimExplanation
from kerf.replay.explain.decision import DecisionExplanation
from kerf.replay.explain.pod import PodExplanation
from kerf.replay.explain.subject import Explanation
from kerf.replay.explain.user_objects.budget import BudgetExplanation
from kerf.replay.explain.user_objects.nodeclass import NodeClassExplanation
from kerf.replay.explain.user_objects.nodepool import GONE, PoolBudget, PoolExplanation
from kerf.replay.explain.workload import PodGroup, WorkloadExplanation
from kerf.replay.verify.decision_lines import decision_lines


def explanation_text(printer: Printer, explained: Explanation) -> None:
    """Print an explanation of any kind."""
    if isinstance(explained, PodExplanation):
        pod_text(printer, explained)
    elif isinstance(explained, ClaimExplanation):
        claim_text(printer, explained)
    elif isinstance(explained, DecisionExplanation):
        decision_text(printer, explained, decision_lines(explained.result))
    elif isinstance(explained, WorkloadExplanation):
        workload_text(printer, explained)
    elif isinstance(explained, BudgetExplanation):
        budget_text(printer, explained)
    elif isinstance(explained, NodeClassExplanation):
        node_class_text(printer, explained)
    else:
        pool_text(printer, explained)


def workload_text(printer: Printer, explained: WorkloadExplanation) -> None:
    states = ", ".join(f"{number} {status}" for status, number in explained.statuses.items()) or "no pods"
    gone = f"; {count(explained.gone, 'earlier one')} gone" if explained.gone else ""
    printer.line(
        f"{explained.kind} {explained.workload}: {states}{gone}, as of position {explained.position} "
        f"({moment(explained.at)})",
        "title",
    )
    for group in explained.groups:
        _group(printer, group)


def _group(printer: Printer, group: PodGroup) -> None:
    where = f" on {some(group.nodes, MAX_NAMES_SHOWN)}" if group.nodes else ""
    longest = f", the first for {duration(group.longest)}" if group.longest else ""
    printer.line(f"{count(len(group.pods), 'pod')} {group.status}{where}{longest}: {some(group.pods)}")
    if group.example is not None:
        pod_text(printer.indented(), group.example)


def _reserved(explained: PoolExplanation, resource: str) -> str:
    """What nodes on their way take of a limit: nobody knows yet of which type they will be."""
    if not explained.in_flight or not explained.reserved.get(resource):
        return ""
    nodes = (
        "1 node on its way counts" if explained.in_flight == 1 else f"{explained.in_flight} nodes on their way count"
    )
    return f"; {nodes} as up to {rounded(explained.reserved[resource], resource)} more"


def pool_text(printer: Printer, explained: PoolExplanation) -> None:
    states = ", ".join(f"{number} {state}" for state, number in explained.nodes.items()) or "no nodes"
    printer.line(
        f"NodePool {explained.node_pool}: {explained.status}, {states}, {dollars(explained.price)}/h, as of position "
        f"{explained.position} ({moment(explained.at)})",
        "title",
    )
    for wrong in explained.wrong:
        printer.line(condition_words(wrong), "warning")
    for resource, (used, limit) in explained.limits.items():
        amounts = f"{rounded(used, resource)} of {rounded(limit, resource)} {resource}"
        on_their_way = _reserved(explained, resource)
        printer.line(f"limit: {amounts}{on_their_way}", "warning" if used >= limit else "info")
    for refused in explained.refused:
        who = f"{count(len(refused.pods), 'pod')} not taken ({some(refused.pods)})"
        counted = (
            "; a node on its way counts as its largest type" if refused.reason.code == SchedulingCode.LIMITS else ""
        )
        printer.line(f"{who}: {sentence(refused.reason)}{counted}{daemonsets_in_words(refused.crowding)}", "warning")
    if explained.status != GONE:
        closed = any(budget.nodes == 0 for budget in explained.budgets)
        printer.line(
            "its disruption budgets leave " + _budget_words(explained.budgets), "warning" if closed else "info"
        )
    for code, number in explained.reasons.items():
        printer.line(f"{count(number, 'node')}: {few_words(code) if code else 'not judged yet'}")
    if explained.drifted:
        printer.line(f"of its nodes {drifted_words(explained.drifted)}")
    failed = f", {explained.failed} of which failed" if explained.failed else ""
    printer.line(f"{count(explained.launches, 'launch')} so far{failed}")


def _budget_words(budgets: tuple[PoolBudget, ...]) -> str:
    """What may still go, by reason; reasons with the same number together."""
    faults = [sentence(fault) for budget in budgets for fault in budget.faults]
    if faults:
        return f"nothing: {faults[0]}"
    numbers: dict[int | None, list[str]] = {}
    for budget in budgets:
        numbers.setdefault(budget.nodes, []).append(budget.reason)
    parts = [
        f"{'any number of nodes' if number is None else count(number, 'node')} to go"
        + (f" as {' or '.join(reasons)}" if len(numbers) > 1 else "")
        for number, reasons in numbers.items()
    ]
    closed = {budget.least: (budget, budget.terms) for budget in budgets if budget.nodes == 0 and budget.terms}
    return ", ".join(parts) + "".join(f"; budgets[{least}]: {_terms(*budget)}" for least, budget in closed.items())


def _terms(budget: PoolBudget, terms: Budget) -> str:
    """What a budget that leaves nothing asks for, and what uses it up."""
    window = f", schedule {terms.schedule} (UTC) for {duration(terms.duration or 0)}" if terms.schedule else ""
    until = f", until {moment(budget.ends)}" if budget.ends else ""
    used = f", with {count(budget.consuming, 'node')} going or not ready" if budget.consuming else ""
    return f"nodes {terms.nodes}{window}{until}{used}"
