"""Volumes of pods on a control plane."""

from __future__ import annotations

from typing import Any


def mounts(*names: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}
