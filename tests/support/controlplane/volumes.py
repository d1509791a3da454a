"""Volumes of pods on a control plane."""

from __future__ import annotations

from typing import Any


def mounts(*names: str) -> dict[str, Any]:
    return {"volumes": [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]}
