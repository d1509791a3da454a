"""Parts of planning problems, and what is read off a plan."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import HostPort
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import NodeInput
from tests.support.scenarios.problems import (
    GI,
)


def codes(planned: Plan) -> dict[str, list[str]]:
    """The reason codes of each unplaced pod."""
    return {uid: [reason.code for reason in group.reasons] for group in planned.unplaced for uid in group.pods}


def sizes(planned: Plan) -> list[int]:
    return sorted(len(claim.pods) for claim in planned.claims)


def node(name: str, cpu: int = 4000, **fields: object) -> NodeInput:
    base = NodeInput(name, f"claim-{name}", {lbl.ZONE: "z1"}, (), {"cpu": cpu, "memory": 8 * GI, "pods": 10})
    return replace(base, **fields)


def port(number: int = 80, protocol: str = "TCP") -> tuple[HostPort, ...]:
    return (HostPort(number, protocol),)
