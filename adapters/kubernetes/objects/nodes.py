"""Creates, reads and deletes Node objects, for a provider (KWOK) whose instances are Nodes."""

from __future__ import annotations

from typing import Any

from kerf.adapters.kubernetes.session import JSON, MERGE, Answer, Session
from kerf.adapters.kubernetes.thread_bridge import Bridge

NODES = "/api/v1/nodes"


class NodeObjects:
    """`kerf.adapters.kwok.cloud.Nodes`, called from threads. Returns an HTTP status, and the object or Status in the
    answer.

    Raises Unreachable (KERF602).
    """

    def __init__(self, session: Session, bridge: Bridge) -> None:
        self._session, self._bridge = session, bridge

    def create(self, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._ask("POST", NODES, document)

    def get(self, name: str) -> tuple[int, dict[str, Any]]:
        return self._ask("GET", f"{NODES}/{name}")

    def annotate(self, name: str, annotations: dict[str, str]) -> tuple[int, dict[str, Any]]:
        return self._ask("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": annotations}}, MERGE)

    def delete(self, name: str) -> tuple[int, dict[str, Any]]:
        return self._ask("DELETE", f"{NODES}/{name}")

    def labelled(self, label: str, value: str = "") -> tuple[int, list[dict[str, Any]]]:
        """Returns the Nodes that have the label, with any value if none is given."""
        query = {"labelSelector": f"{label}={value}" if value else label}
        answer: Answer = self._bridge.call(self._session.request("GET", NODES, query=query))
        return answer.status, list(answer.json().get("items", ()))

    def _ask(self, method: str, path: str, body: object = None, content_type: str = JSON) -> tuple[int, dict[str, Any]]:
        answer: Answer = self._bridge.call(self._session.request(method, path, body=body, content_type=content_type))
        return answer.status, answer.json()
