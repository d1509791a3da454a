"""Find the conditions of a NodeClass as the record has it (A-54, L-64)."""

from __future__ import annotations

import msgspec

from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.indexes import Blobs
from kerf.projections.status.nodeclaim import FALSE, TRUE

EC2_NODE_CLASS = "EC2NodeClass"
_READY = "Ready"


def class_conditions(seen: NodeClassSeen, blobs: Blobs) -> tuple[Condition, ...]:
    """Return the conditions of a NodeClass's object. Of one that the record has no object of, such as KWOK's, only
    whether it is ready is known."""
    known = resolved_class(seen, blobs)
    if known is None or not known.status.conditions:
        return (Condition(_READY, TRUE if seen.ready else FALSE, _READY if seen.ready else seen.reason),)
    return known.status.conditions


def resolved_class(seen: NodeClassSeen, blobs: Blobs) -> EC2NodeClass | None:
    """Return an EC2NodeClass as it was resolved; None for another kind, and where a copy of a record leaves it out."""
    if seen.kind != EC2_NODE_CLASS or not seen.digest:
        return None
    try:
        return msgspec.msgpack.decode(blobs.source(seen.digest), type=EC2NodeClass)
    except BlobMissing:
        return None
