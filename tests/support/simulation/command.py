"""Simulations by the command line, and what came of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs/examples"
WORKSHOP = str(EXAMPLES / "workshop")
NODE_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec:
  amiSelectorTerms: [{{alias: al2023@latest}}]
  role: r
  subnetSelectorTerms: [{{tags: {{a: b}}}}]
  securityGroupSelectorTerms: [{{tags: {{a: b}}}}]
{more}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
---
"""
"""An EC2NodeClass with `more` in its spec, and its NodePool."""
CROWD = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: crowd}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: crowd}}}}
  template:
    metadata: {{labels: {{app: crowd}}}}
    spec:
      containers: [{{name: a, image: x, resources: {{requests: {{cpu: 50m, ephemeral-storage: 1G}}}}}}]
---
"""
"""A Deployment of small pods."""


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["simulate", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def example(name: str) -> str:
    return str(EXAMPLES / "simulations" / name)


def written(folder: Path, text: str, name: str = "given.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def codes(outcome: dict[str, Any]) -> list[str]:
    return [refused["code"] for refused in outcome["refused"]]


def entries(record: Path, kind: str) -> list[Any]:
    store = SQLiteStore(record, "read")
    try:
        return [entry for entry in store.scan() if entry.type == kind]
    finally:
        store.close()
