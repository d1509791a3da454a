"""What the cloud keeps of one EC2NodeClass, and what becomes of it when its resolving fails."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from kerf.adapters.aws.nodeclass.resolved import condition, readiness, with_condition
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.told_once import ToldOnce
from kerf.engine.errors import KerfError
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassStatus, ResolvedAMI
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.record.observations import InputRefused, NodeClassSeen, Observation, ReservationsSeen


class Known(Struct):
    """What is known of one class: how it was last resolved, and what was last observed of it."""

    resolved: EC2NodeClass
    types: dict[str, InstanceType]
    seen: NodeClassSeen | None = None
    catalogue: str = ""
    made_from: tuple[object, ...] = ()
    left: ReservationsSeen | None = None
    learned: tuple[ResolvedAMI, ...] = ()  # the images by which it learned from Nodes that had registered
    fault: str = ""
    told: ToldOnce = field(default_factory=ToldOnce)

    def fail(self, node_class: EC2NodeClass, fault: KerfError, now: int, *, judged: bool) -> list[Observation]:
        """Takes in that the class could not be resolved. One that Karpenter has `judged`, or whose spec was resolved
        before, stays as it was (A-136). Any other is of unknown validity, and its condition says why. Returns what is
        new of it.
        """
        ready = condition(self.resolved.status, "Ready")
        was_ready = self.resolved.spec == node_class.spec and ready is not None and ready.status == "True"
        status = self.resolved.status if was_ready else _unknown(self.resolved.status, fault, now)
        self.resolved = node_class if judged else replace(node_class, status=status)
        if self.fault == str(fault):
            return []
        self.fault = str(fault)
        refused = InputRefused(fault.code, "aws", f"EC2NodeClass/{node_class.name}", message=self.fault)
        return [Observation(refused)]

    def tell(self, refused: Iterable[AwsError]) -> list[Observation]:
        """What AWS refuses since the last call."""
        name = f"EC2NodeClass/{self.resolved.name}"
        return [
            Observation(InputRefused(error.code, "aws", name, message=str(error))) for error in self.told.news(refused)
        ]


def _unknown(status: EC2NodeClassStatus, fault: KerfError, now: int) -> EC2NodeClassStatus:
    verdict = Condition("ValidationSucceeded", "Unknown", "AwaitingReconciliation", str(fault))
    status = with_condition(status, verdict, now)
    return with_condition(status, readiness(status), now)
