"""Karpenter's gauges of offerings (L-425, L-426), from the catalogues that plans are made with."""

from __future__ import annotations

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.labels import DEFAULT_TENANCY
from kerf.engine.scheduling.launchable.launch_offers import is_unavailable, offerings_of
from kerf.engine.state.nodeclaims.unavailable import unavailable, unavailable_to
from kerf.engine.state.state import State
from kerf.projections.metrics.families import GAUGE, Family

_OFFERING = ("instance_type", "capacity_type", "zone")
_PREFIX = "karpenter_cloudprovider_instance_type_"
MEMORY_MIB = "karpenter.k8s.aws/instance-memory"


def offering_families(state: State, now: int) -> list[Family]:
    """Return price and availability of each offering, and the size of each type; `now` is in ms since the epoch.

    What was refused for lack of capacity is unavailable for a while (A-290). An offering is available if one NodeClass
    can launch it.
    """
    available = Family(
        f"{_PREFIX}offering_available", GAUGE, "Whether it can be launched, as far as is known.", _OFFERING
    )
    price = Family(f"{_PREFIX}offering_price_estimate", GAUGE, "USD an hour.", _OFFERING)
    cores = Family(f"{_PREFIX}cpu_cores", GAUGE, "CPU cores of instance types.", ("instance_type",))
    memory = Family(f"{_PREFIX}memory_bytes", GAUGE, "Memory of instance types.", ("instance_type",))
    facts, everywhere = state.facts, unavailable(state.facts, now)
    sold = {(digest, everywhere | unavailable_to(facts, key, now)) for key, digest in facts.catalogues.items()}
    for digest, lacking in sorted(sold, key=lambda each: (each[0], sorted(each[1]))):
        for instance_type in state.indexes.blobs.catalogue(digest).types:
            cores.set(instance_type.capacity.get("cpu", 0) / 1000, instance_type.name)
            memory.set(_nominal_memory(instance_type), instance_type.name)
            for offering in offerings_of(instance_type, DEFAULT_TENANCY):
                labels = (instance_type.name, offering.capacity_type, offering.zone)
                there = offering.available and not is_unavailable(
                    lacking, offering.capacity_type, instance_type.name, offering.zone
                )
                available.set(max(float(there), available.samples.get(labels, 0.0)), *labels)
                price.set(offering.price, *labels)
    return [available, price, cores, memory]


def _nominal_memory(instance_type: InstanceType) -> int:
    """The bytes that the cloud names for a type, of which its nodes see less (A-382); what its nodes have, where the
    cloud names none."""
    named = instance_type.requirements.get(MEMORY_MIB, ())
    return int(named[0]) << 20 if len(named) == 1 and named[0].isdecimal() else instance_type.capacity.get("memory", 0)
