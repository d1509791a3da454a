"""The errors between kerf and an API server."""

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
        """Returns whether a right is missing: then all requests of this kind fail until somebody grants it."""
        return self.status in (401, 403)


class Unreachable(KerfError):
    """The API server did not answer. The request may have been carried out or not."""

    code = "KERF602"


class NoCluster(KerfError):
    """There is no usable kubeconfig, and kerf does not run in a pod."""

    code = "KERF603"


class LeaseLost(KerfError):
    """Another process holds the Lease, or kerf could not renew its own in time. This process must not act any more."""

    code = "KERF604"
