"""The schemas of NodePool and NodeClaim (karpenter.sh/v1): L-9 to L-46."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kerf.engine.model import labels
from kerf.engine.model.crds.schema import Fault, Rule, Schema, integer, list_of, map_of, object_of, text
from kerf.engine.model.crds.shared_fields import (
    AWS,
    KARPENTER,
    KWOK,
    LABEL_VALUE,
    conditions,
    duration,
    key_rules,
    nillable_duration,
    node_class_ref,
    quantities,
    requirements,
    taints,
)
from kerf.engine.model.disruption_reasons import BUDGET_REASONS

POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
REASONS = tuple(reason.karpenter for reason in BUDGET_REASONS)
THIRTY_DAYS = "720h"


def _claim_spec(of_pool: bool) -> dict[str, Schema]:
    """Returns the fields that a NodePool's template and a NodeClaim share (L-42)."""
    forbidden = (labels.NODEPOOL, labels.HOSTNAME) if of_pool else (labels.HOSTNAME,)
    return {
        "requirements": requirements(*key_rules(KARPENTER, AWS, KWOK, forbidden=forbidden)),
        "taints": taints("Taints that the nodes keep"),
        "startupTaints": taints("Taints that something removes when the node is set up"),
        "nodeClassRef": node_class_ref(immutable=of_pool),
        "expireAfter": nillable_duration("Nodes older than this are replaced", default=THIRTY_DAYS),
        "terminationGracePeriod": duration("How long a node may drain before its pods are deleted"),
    }


def _one_of_two(budgets: list[Any]) -> Iterator[Fault]:
    for at, budget in enumerate(budgets):
        if ("schedule" in budget) != ("duration" in budget):
            missing, given = ("duration", "schedule") if "schedule" in budget else ("schedule", "duration")
            message = f"A budget with a {given} needs a {missing} too"
            yield Fault(f"[{at}].{missing}", "KERF314", message, "Give both for a window, neither for always")


BUDGETS = list_of(
    object_of(
        {
            "nodes": text(
                'How many nodes may go at once: "5" or "10%"', default="10%", pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$",
                what="a share of nodes", code="KERF314",
                hint='Write a number of nodes as text, or a percentage: "5" or "10%"',
            ),
            # As loose as the reference's (L-22): whether it is a schedule shows when the controller reads it.
            "schedule": text(
                "When the budget begins to count, in UTC", code="KERF314", what="a cron schedule of five fields",
                pattern=r"^@(annually|yearly|monthly|weekly|daily|midnight|hourly)|(.+\s){4}.+$",
            ),
            "duration": text(
                "How long it counts from there", pattern=r"^([0-9]+[hm]|[0-9]+h[0-9]+m)(0s)?$", code="KERF307",
                what="a duration for a budget", hint='Write hours and minutes, such as "8h" or "1h30m"',
            ),
            "reasons": list_of(
                text(enum=REASONS), "What it limits; everything without any", max_items=50, list_type="set"
            ),
        },
        required=("nodes",),
    ),
    "How many nodes may be disrupted at once; the strictest counts",
    max_items=50,
    default=[{"nodes": "10%"}],
    list_type="atomic",
    rules=(
        Rule("self.all(b, has(b.schedule) == has(b.duration))", "schedule and duration go together", _one_of_two),
    ),
)  # fmt: skip
"""Disruption budgets (L-20 to L-24)."""

DISRUPTION = object_of(
    {
        "consolidateAfter": nillable_duration("How long a node must be quiet before it is consolidated", default="0s"),
        "consolidationPolicy": text(
            "Which nodes are consolidated", enum=POLICIES, default="WhenEmptyOrUnderutilized",
            hint="WhenUnderutilized is v1beta1's name of WhenEmptyOrUnderutilized",
        ),
        "budgets": BUDGETS,
    },
    "How nodes are removed and replaced",
    default={"consolidateAfter": "0s"},
)  # fmt: skip
"""Disruption settings (L-17 to L-19)."""


def _weighted(spec: Any) -> Iterator[Fault]:
    if "replicas" in spec and "weight" in spec:
        yield Fault(".weight", "KERF315", "A static NodePool (with replicas) has no weight")


def _limited(spec: Any) -> Iterator[Fault]:
    for resource in sorted(set(spec.get("limits", ())) - {"nodes"}) if "replicas" in spec else ():
        message = "A static NodePool (with replicas) limits only nodes"
        yield Fault(f".limits[{resource}]", "KERF315", message)


NODE_POOL = object_of(
    {
        "spec": object_of(
            {
                "template": object_of(
                    {
                        "metadata": object_of(
                            {
                                "labels": map_of(
                                    text(max_length=63, pattern=LABEL_VALUE, what="a label value"),
                                    "Labels of the nodes",
                                    max_properties=100,
                                    map_type="atomic",
                                    rules=key_rules(
                                        KARPENTER, AWS, forbidden=(labels.NODEPOOL, labels.HOSTNAME), each=True
                                    ),
                                ),
                                "annotations": map_of(text(), "Annotations of the nodes"),
                            },
                            "What the nodes are given",
                        ),
                        "spec": object_of(
                            _claim_spec(of_pool=True),
                            "How nodes are launched, and how long they live",
                            required=("nodeClassRef", "requirements"),
                            missing="A NodePool needs a template",
                        ),
                    },
                    "The NodeClaims that this NodePool makes",
                    required=("spec",),
                ),
                "disruption": DISRUPTION,
                "limits": quantities("So much may all nodes together have"),
                "weight": integer("NodePools of higher weight come first", format="int32", minimum=1, maximum=100),
                "replicas": integer("Keep so many nodes, whatever the pods want", format="int64", minimum=0),
            },
            "What nodes may be launched, and when they go",
            required=("template",),
            rules=(
                Rule("has(self.replicas) == has(oldSelf.replicas)", "static and dynamic NodePools stay what they are"),
                Rule(
                    "!has(self.replicas) || !has(self.limits) || self.limits.all(r, r == 'nodes')",
                    "a static NodePool limits only nodes",
                    _limited,
                ),
                Rule("!has(self.replicas) || !has(self.weight)", "a static NodePool has no weight", _weighted),
            ),
        ),
        "status": object_of(
            {
                "resources": quantities("What the nodes have together"),
                "nodes": integer("How many nodes there are", format="int64", default=0),
                "nodeClassObservedGeneration": integer("The NodeClass as it was looked at", format="int64"),
                "conditions": conditions(keyed=True),
            },
            "What the controllers have found",
        ),
    },
    "A kind of nodes that may be launched for pods",
    required=("spec",),
)
"""The schema of NodePool (L-9 to L-40)."""

NODE_CLAIM = object_of(
    {
        "spec": object_of(
            {
                **_claim_spec(of_pool=False),
                "resources": object_of(
                    {"requests": quantities("What must fit on the node")}, "What the node is launched for"
                ),
            },
            "What the node must be",
            required=("nodeClassRef", "requirements"),
            rules=(Rule("self == oldSelf", "the spec of a NodeClaim may not change"),),
        ),
        "status": object_of(
            {
                "nodeName": text("The Node"),
                "providerID": text("The instance"),
                "imageID": text("The image that it runs"),
                "capacity": quantities("What the instance has"),
                "allocatable": quantities("What pods may take of it"),
                "lastPodEventTime": text("When a pod was bound or went last", format="date-time"),
                "conditions": conditions(loose=True),
            },
            "How far the node has come",
        ),
    },
    "One node, from the wish for it to its end",
    required=("spec",),
)
"""The schema of NodeClaim (L-41 to L-46)."""

SEEN_CLAIM = object_of(
    {
        "spec": object_of(
            {"requirements": requirements(), "nodeClassRef": node_class_ref(immutable=False)},
            required=("nodeClassRef", "requirements"),
        )
    },
    required=("spec",),
)
"""The part of a NodeClaim that is checked on an existing object. Its keys are free, because a running node must be
adopted.
"""
