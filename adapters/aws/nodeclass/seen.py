"""What the record says of an EC2NodeClass."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws.nodeclass.resolved import condition
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import class_hashes, ec2_terms, recorded
from kerf.engine.record.observations import NodeClassSeen

GROUP, KIND = "karpenter.k8s.aws", "EC2NodeClass"


def class_seen(
    resolved: EC2NodeClass, ready: Condition, placement_group: str = "", ca_bundle: str = ""
) -> tuple[NodeClassSeen, Struct]:
    """Returns the observation of a class as it was resolved, and the content that its digest names."""
    kept = recorded(resolved)
    digest, _ = content(kept)
    terms = ec2_terms(resolved, ca_bundle)
    return NodeClassSeen(
        group=GROUP,
        kind=KIND,
        name=resolved.name,
        uid=resolved.uid,
        generation=resolved.generation,
        ready=ready.status == "True" and not resolved.deleting,
        reason="Deleting" if resolved.deleting else ready.reason,
        digest=digest,
        terms=terms if not placement_group else replace(terms, placement_group=placement_group),
        annotations=class_hashes(resolved.annotations),
    ), kept


def judged_ready(resolved: EC2NodeClass) -> Condition:
    """Returns the condition Ready as Karpenter wrote it; without one, Karpenter has not judged the class yet."""
    return condition(resolved.status, "Ready") or Condition("Ready", "Unknown", "AwaitingReconciliation")
