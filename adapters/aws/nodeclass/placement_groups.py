"""The placement group that a class names (A-28, A-127, A-128)."""

from __future__ import annotations

from msgspec import Struct

from kerf.adapters.aws.nodeclass.resolved import ready
from kerf.adapters.aws.session import AwsError, Clients, call, filters
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclaim_objects import Condition

READY, FAILED = "PlacementGroupReady", "PlacementGroupResolutionFailed"


class PlacementGroup(Struct, frozen=True):
    """A placement group; all fields are empty without one. `strategy` is cluster, partition or spread. `partitions`:
    how many it has, which only the strategy partition has."""

    id: str = ""
    name: str = ""
    strategy: str = ""
    partitions: int = 0


NONE = PlacementGroup()


def resolve(clients: Clients, node_class: EC2NodeClass) -> tuple[PlacementGroup, Condition]:
    """What EC2 refuses makes the class not ready (A-61): unlike other parts, an old answer is not kept."""
    selector = node_class.spec.placement_group_selector
    if selector is None:
        return NONE, ready(READY)
    query = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name]}
    try:
        answer = call(clients.ec2.describe_placement_groups, Filters=filters(state=["available"]), **query)
    except AwsError as error:
        return NONE, Condition(READY, "False", FAILED, str(error))
    groups = answer.get("PlacementGroups", ())
    if not groups:
        missing = f"there is no available placement group {selector.id or selector.name}"
        return NONE, Condition(READY, "False", "PlacementGroupNotFound", missing)
    group = groups[0]
    found = PlacementGroup(
        group["GroupId"], group.get("GroupName", ""), group["Strategy"], group.get("PartitionCount") or 0
    )
    return found, ready(READY)
