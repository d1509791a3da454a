"""What can go wrong between kerf and an API server."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class ClusterError(KerfError):
    """The API server refused a request; `status` is its HTTP status."""

    code = "KERF601"

    def __init__(self, message: str, *, status: int, where: str = "", hint: str = "", code: str = "") -> None:
        super().__init__(message, where=where, hint=hint, code=code)
        self.status = status

    @property
    def forbidden(self) -> bool:
        """A right is missing: all of the kind will fail until somebody gives it."""
        return self.status in (401, 403)


class Unreachable(KerfError):
    """No answer: what was asked for may have happened or not."""

    code = "KERF602"


class NoCluster(KerfError):
    """There is no usable kubeconfig, and this is no pod."""

    code = "KERF603"


class LeaseLost(KerfError):
    """Another process holds the Lease, or ours could not be renewed in time: this one must not act any more."""

    code = "KERF604"
