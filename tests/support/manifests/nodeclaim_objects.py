"""NodeClaim objects as an API server shows them."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from tests.support.lives import PROVIDER
from tests.support.world import NODE_CLASS, START

STEPS = ("Launched", "Registered", "Initialized")


def conditions(steps: int) -> tuple[Condition, ...]:
    return tuple(Condition(kind, "True", kind, since=START - 1_000 * (9 - n)) for n, kind in enumerate(STEPS[:steps]))


def claim(steps: int = 3, **changes: object) -> NodeClaimObject:
    """Two minutes old, of the NodePool `default`; `steps`: how many of the three conditions are true."""
    given = NodeClaimObject(
        name="default-abcde",
        node_class=NODE_CLASS,
        labels={
            lbl.NODEPOOL: "default", lbl.INSTANCE_TYPE: "m5.large", lbl.ZONE: "us-west-2a",
            lbl.CAPACITY_TYPE: "on-demand", "karpenter.k8s.aws/ec2nodeclass": "default",
        },
        requirements=(
            RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand",)),
            RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.large", "r5.large")),
        ),
        requests={"memory": 2**30, "pods": 1},
        provider_id=PROVIDER if steps else "",
        node="n1" if steps > 1 else "",
        capacity={"cpu": 2000},
        allocatable={"cpu": 1930},
        conditions=conditions(steps),
        created=START - 120_000,
    )  # fmt: skip
    return replace(given, **changes)
