"""Writes the status of objects that kerf only comments on: by server-side apply, if it differs from the last one
applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.objects.cluster_writes import FIELD_MANAGER, NOT_FOUND
from kerf.adapters.kubernetes.session import APPLY, Session
from kerf.engine.errors import KerfError

_QUERY = {"fieldManager": FIELD_MANAGER, "force": "true"}


class Commented(Struct, frozen=True):
    """An object: `plural` is as in its path, `namespace` is empty for a cluster-scoped one."""

    api_version: str
    kind: str
    plural: str
    name: str
    namespace: str = ""

    @property
    def path(self) -> str:
        place = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"/apis/{self.api_version}{place}/{self.plural}/{self.name}"


class StatusWriter:
    """Brings an object's status to what is wanted. A refusal is kept in `error`, and tried again next time."""

    def __init__(self, session: Session) -> None:
        self.error: KerfError | None = None
        self._session = session
        self._written: dict[Commented, dict[str, Any]] = {}

    async def write(
        self,
        about: Commented,
        status: dict[str, Any],
        conditions: Sequence[tuple[str, bool, str, str]],
        generation: int,
    ) -> None:
        """Writes one status. `conditions` are type, whether it is True, reason, message. Their times are those of their
        last change. `generation` is that of the object that was looked at (L-67).
        """
        wanted = {**status, "conditions": [_condition(*condition, generation) for condition in conditions]}
        if self._written.get(about) == wanted:
            return
        try:
            await self._apply(about, wanted)
            self.error = None
        except (ClusterError, Unreachable) as error:
            self.error = error

    async def _apply(self, about: Commented, wanted: dict[str, Any]) -> None:
        answer = await self._session.request("GET", about.path)
        if answer.status == NOT_FOUND:
            self._written.pop(about, None)
            return
        there = answer.checked(f"read {about.kind} {about.name}").json().get("status", {}).get("conditions", [])
        since = {(condition["type"], condition["status"]): condition.get("lastTransitionTime") for condition in there}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        timed = [
            {**condition, "lastTransitionTime": since.get((condition["type"], condition["status"])) or now}
            for condition in wanted["conditions"]
        ]
        body = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "metadata": {"name": about.name, **({"namespace": about.namespace} if about.namespace else {})},
            "status": {**wanted, "conditions": timed},
        }
        path = f"{about.path}/status"
        answer = await self._session.request("PATCH", path, body=body, content_type=APPLY, query=_QUERY)
        if answer.status != NOT_FOUND:
            answer.checked(f"apply status of {about.kind} {about.name}")
        self._written[about] = wanted


def _condition(kind: str, true: bool, reason: str, message: str, generation: int) -> dict[str, Any]:
    return {
        "type": kind,
        "status": str(true),
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }
