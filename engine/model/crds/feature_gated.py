"""The kinds behind feature gates: NodeOverlay (L-49 to L-56) and CapacityBuffer (L-57, L-58)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kerf.engine.model import labels
from kerf.engine.model.crds.schema import Fault, Rule, integer, object_of, text
from kerf.engine.model.crds.shared_fields import (
    AWS_OVERLAY,
    KARPENTER,
    KWOK,
    conditions,
    key_rules,
    quantities,
    requirements,
)
from kerf.engine.model.karpenter.capacity_buffers import ACTIVE
from kerf.engine.model.karpenter.nodeoverlays import FIXED_RESOURCES

PRICE = r"^[0-9]+(\.[0-9]+)?$"
PRICE_ADJUSTMENT = r"^([+-][0-9]*\.?[0-9]+|\+[0-9]*\.?[0-9]+%|-[0-9]{1,2}(\.[0-9]+)?%|-100%)$"
"""The pattern of price adjustments (L-50)."""


def _both_prices(spec: Any) -> Iterator[Fault]:
    if "price" in spec and "priceAdjustment" in spec:
        yield Fault(".price", "KERF317", "price and priceAdjustment exclude each other")


def _ordinary(capacity: Any) -> Iterator[Fault]:
    for resource in capacity:
        if resource in FIXED_RESOURCES:
            yield Fault(f"[{resource}]", "KERF306", f"An overlay may not change {resource}")


NODE_OVERLAY = object_of(
    {
        "spec": object_of(
            {
                "requirements": requirements(
                    *key_rules(KARPENTER, AWS_OVERLAY, KWOK, forbidden=(labels.HOSTNAME,)), overlay=True
                ),
                "price": text(
                    "The price an hour, instead", pattern=PRICE, what="a price", code="KERF306",
                    hint='Write a number as text: "0.25"',
                ),
                "priceAdjustment": text(
                    "What is added to the price an hour, or a share of it",
                    pattern=PRICE_ADJUSTMENT,
                    what="a change of price", code="KERF306",
                    hint='Write a sign and a number, or a percentage: "+0.5", "-10%"',
                ),
                "capacity": quantities(
                    "Resources that the nodes have besides",
                    (
                        Rule(
                            f"self.all(r, !(r in [{', '.join(map(repr, FIXED_RESOURCES))}]))",
                            "an overlay may not change cpu, memory, ephemeral-storage or pods",
                            _ordinary,
                        ),
                    ),
                ),
                "weight": integer("Overlays of higher weight win", format="int32", minimum=1, maximum=10_000),
            },
            "Which instance types are changed, and how",
            required=("requirements",),
            rules=(
                Rule(
                    "!has(self.price) || !has(self.priceAdjustment)",
                    "price and priceAdjustment exclude each other",
                    _both_prices,
                ),
            ),
        ),
        "status": object_of({"conditions": conditions()}, "What the controllers have found"),
    },
    "Another price, or more capacity, for some instance types",
    required=("spec",),
)  # fmt: skip


def _nothing_to_count(spec: Any) -> Iterator[Fault]:
    if "podTemplateRef" in spec and "replicas" not in spec and "limits" not in spec:
        yield Fault(".replicas", "KERF304", "A buffer of a pod template needs replicas or limits")


def _both_refs(spec: Any) -> Iterator[Fault]:
    if "podTemplateRef" in spec and "scalableRef" in spec:
        yield Fault(".podTemplateRef", "KERF317", "podTemplateRef and scalableRef exclude each other")


_TEMPLATE_REF = {"name": text("The PodTemplate's name", min_length=1)}

CAPACITY_BUFFER = object_of(
    {
        "spec": object_of(
            {
                "provisioningStrategy": text("What kind of capacity is kept", default=ACTIVE),
                "podTemplateRef": object_of(_TEMPLATE_REF, "The pod that room is kept for", required=("name",)),
                "scalableRef": object_of(
                    {
                        "apiGroup": text("Its group"),
                        "kind": text("Its kind", min_length=1),
                        "name": text("Its name", min_length=1),
                    },
                    "The workload whose pods room is kept for",
                    required=("kind", "name"),
                ),
                "replicas": integer("Room for so many pods", format="int32", minimum=0),
                "percentage": integer("Room for this share of the workload's pods", format="int32", minimum=0),
                "limits": quantities("So much may the room be together"),
            },
            "What room is kept",
            rules=(
                Rule(
                    "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
                    "podTemplateRef needs replicas or limits",
                    _nothing_to_count,
                ),
                Rule(
                    "!has(self.podTemplateRef) || !has(self.scalableRef)",
                    "podTemplateRef and scalableRef exclude each other",
                    _both_refs,
                ),
            ),
        ),
        "status": object_of(
            {
                "podTemplateRef": object_of(_TEMPLATE_REF, "The pod template that was used", required=("name",)),
                "podTemplateGeneration": integer("Its generation", format="int64"),
                "replicas": integer("Room for so many pods was asked for", format="int32"),
                "provisioningStrategy": text("What kind of capacity is kept"),
                "conditions": conditions(keyed=True),
            },
            "What the controllers have found",
        ),
    },
    "Room that is kept free for pods to come",
    required=("spec",),
)
