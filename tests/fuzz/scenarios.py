"""Scenarios of `kerf plan` and `kerf disrupt`, and instance types."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec

from kerf.adapters.cli.input.scenarios import readable, scenarios_of
from kerf.adapters.kwok.catalogue import read_catalogue
from kerf.engine.errors import KerfError
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import plan_scenario, read_catalogues
from tests.fuzz.mutations import damaged, mutated
from tests.fuzz.target import EXAMPLES, Target, in_file, plain_json

PLANS = [json.loads(line) for path in ("plan/many.jsonl",) for line in (EXAMPLES / path).read_text().splitlines()]
PLANS.append(json.loads((EXAMPLES / "plan/workshop.json").read_text()))
CLUSTERS = [json.loads((EXAMPLES / "disrupt/scale-in.json").read_text())]
KWOK_TYPES = [
    {
        "name": "m5.large",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "8Gi", "pods": "29"},
        "offerings": [
            {
                "price": 0.096,
                "requirements": [
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                ],
            }
        ],
    }
]
TYPES = {
    "catalogues": {
        "all": [
            {
                "name": "m5.large",
                "capacity": {"cpu": "2", "memory": "8Gi"},
                "requirements": {"kubernetes.io/arch": ["amd64"]},
                "offerings": [{"zone": "a", "capacityType": "spot", "price": 0.1}],
            }
        ]
    }
}


def check_plan(scenario: Any) -> None:
    if isinstance(scenario, dict):
        plan_scenario(scenario, Catalogues({}), effort=5, max_steps=1000)


def check_disruption(scenario: Any) -> None:
    if isinstance(scenario, dict):
        disrupt_scenario(scenario, Catalogues({}))


def check_scenarios(content: bytes) -> None:
    with suppress(KerfError):
        list(readable(in_file(content), scenarios_of))


def check_catalogues(document: Any) -> None:
    with suppress(KerfError):
        read = readable(in_file(plain_json(document)), read_catalogues)
        plan_scenario({"name": "s", "pods": [], "nodePools": [], "instanceTypes": {"catalogue": "all"}}, read)
        with suppress(msgspec.ValidationError, ValueError, TypeError, AttributeError, KeyError):  # caught by a plan
            read.source({"catalogue": "all"})


def check_kwok_types(content: bytes) -> None:
    with suppress(KerfError):
        read_catalogue(content, "given")


TARGETS: dict[str, Target] = {
    "plans": Target(mutated(PLANS), check_plan, slow=True),
    "clusters": Target(mutated(CLUSTERS), check_disruption, slow=True),
    "scenarios' bytes": Target(
        damaged([(EXAMPLES / "plan/many.jsonl").read_bytes(), plain_json(PLANS)]), check_scenarios
    ),
    "instance types": Target(mutated([TYPES]), check_catalogues),
    "KWOK's instance types": Target(
        mutated([KWOK_TYPES]).map(plain_json) | damaged([plain_json(KWOK_TYPES)]), check_kwok_types
    ),
}
