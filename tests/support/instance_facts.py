"""Facts of instance types as EC2 tells them, and the types made of them."""

from __future__ import annotations

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts, tables
from kerf.adapters.aws.catalogue.instance_types import (
    NodeSettings,
    instance_type,
)
from kerf.engine.model.instance_types import InstanceType


def facts(name: str) -> InstanceTypeFacts:
    return tables().types[name]


def made(name: str, settings: NodeSettings | None = None) -> InstanceType:
    branch = tables().branch_interfaces.get(name, 0)
    bandwidth = tables().network_bandwidth.get(name, 0)
    return instance_type(
        facts(name),
        settings or NodeSettings(),
        (),
        region="us-west-2",
        branch_interfaces=branch,
        network_bandwidth=bandwidth,
    )
