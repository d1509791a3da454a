"""A connection for observe mode. It refuses every write, whatever the credentials allow."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.adapters.kubernetes.session import JSON, REQUEST_TIMEOUT, Answer, Session
from kerf.engine.errors import REPORT, KerfError

QUESTIONS = ("/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
"""Asked by POST. They store nothing."""


class WriteRefused(KerfError):
    """Something tried to write in observe mode. No request was made."""

    code = "KERF606"


class ReadingSession(Session):
    """A session that raises WriteRefused (KERF606) for everything but GET and QUESTIONS."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        content_type: str = JSON,
        timeout: float = REQUEST_TIMEOUT,
        limited: bool = True,
    ) -> Answer:
        asks = method == "POST" and path in QUESTIONS
        if not asks and (method != "GET" or body is not None):
            raise WriteRefused("observe mode writes nothing", where=f"{method} {path}", hint=REPORT)
        return await super().request(method, path, query=query, body=body, timeout=timeout, limited=limited)
