"""Pods bound by the model of kube-scheduler."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.scenarios.problems import GI, Workloads, ladder, problem


def node(name: str, cpu: int, **labels: str) -> NodeInput:
    known = {key.replace("zone", lbl.ZONE): value for key, value in labels.items()}
    return NodeInput(name, "", known, (), {"cpu": cpu, "memory": 8 * GI, "pods": 10})


def counts_on(work: Workloads, zones: str = "aab") -> tuple[InterpodCounts, Problem]:
    """No pods yet, on one node in each of these zones."""
    asked = problem(work, ladder(2))
    nodes = [NodeInfo(f"n{n}", {lbl.ZONE: zone, lbl.HOSTNAME: f"n{n}"}, (), {}, {}) for n, zone in enumerate(zones)]
    return InterpodCounts(asked, InterpodRules(asked), nodes), asked


def bind(counts: InterpodCounts, asked: Problem, number: int, node: int) -> None:
    counts.add_pod((asked.pods[number].namespace, asked.pods[number].shape), node)
