"""The errors of sweeps."""

from __future__ import annotations

from kerf.replay.errors import ReplayError


class PlanRefused(ReplayError):
    """The plan of a sweep cannot be read, or a part of it."""

    code = "KERF242"


class ClusterUnavailable(ReplayError):
    """Dask is not installed, or no scheduler or worker answers."""

    code = "KERF243"


class NothingToCompare(ReplayError):
    """No record is modelled well enough for a comparison, or every cell failed."""

    code = "KERF244"
