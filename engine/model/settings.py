"""The settings that decisions depend on. They are recorded, so that a decision can be made again with the same ones."""

from __future__ import annotations

from msgspec import Struct


class Settings(Struct, frozen=True):
    """Durations in milliseconds. Names and defaults follow Karpenter's (L-290, L-303, L-306)."""

    cluster_name: str = "kerf"
    batch_idle: int = 1_000
    batch_max: int = 10_000
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    launch_timeout: int = 300_000  # L-178
    registration_timeout: int = 900_000  # L-179
    unavailable_for: int = 180_000  # how long an offering without capacity is remembered
    drain_settle: int = 5_000  # L-198: a drain is not done before this long after it began
    max_instance_types: int = 600  # S-162
    max_launch_types: int = 60
    effort: int = (
        100  # search steps for improving and rating a plan (kerf.engine.scheduling.improvement.effort); 0: neither
    )
