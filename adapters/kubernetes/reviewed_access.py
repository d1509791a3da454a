"""Who may read what kerf serves: the API server says whose token it is, and whether they may get a URL (L-299)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from kerf.adapters.kubernetes.session import Session
from kerf.engine.errors import KerfError

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
KEPT = {HTTPStatus.OK: 60.0}  # seconds for which an answer counts
KEPT_REFUSAL = 10.0
KNOWN = 256  # tokens whose answers are kept
MAX_TOKEN = 4096  # characters
MAX_WAITING = 16  # requests whose tokens are being reviewed: more are sent away
REFUSED_PAUSE = 0.1  # seconds after a refusal: guessing must not use up the requests that kerf may make


class ReviewedAccess:
    """`check` a request's header. `url` is a URL of no object, such as /metrics: who may `get` it by RBAC, may read.
    Reviews are made one at a time. Tokens are kept as digests."""

    def __init__(self, session: Session, url: str) -> None:
        self._session, self._url = session, url
        self._answers: dict[bytes, tuple[HTTPStatus, float]] = {}  # and until when they count, on the monotonic clock
        self._one = asyncio.Lock()
        self._waiting = 0

    async def check(self, authorization: str) -> HTTPStatus:
        """OK, 401 for no token or a wrong one, 403 for one that may not, 503 where nobody knows."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
            return HTTPStatus.UNAUTHORIZED
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if known := self._known(key):
            return known
        if self._waiting >= MAX_WAITING:
            return HTTPStatus.SERVICE_UNAVAILABLE
        self._waiting += 1
        try:
            async with self._one:
                return self._known(key) or await self._reviewed(token, key)
        finally:
            self._waiting -= 1

    def _known(self, key: bytes) -> HTTPStatus | None:
        status, until = self._answers.get(key, (None, 0.0))
        return status if time.monotonic() < until else None

    async def _reviewed(self, token: str, key: bytes) -> HTTPStatus:
        try:
            status = await self._review(token)
        except (KerfError, ValueError):  # no answer, a refusal, or one that cannot be read
            return HTTPStatus.SERVICE_UNAVAILABLE
        if len(self._answers) >= KNOWN:
            self._answers.clear()
        self._answers[key] = status, time.monotonic() + KEPT.get(status, KEPT_REFUSAL)
        if status != HTTPStatus.OK:
            await asyncio.sleep(REFUSED_PAUSE)
        return status

    async def _review(self, token: str) -> HTTPStatus:
        about = await self._ask(TOKEN_REVIEWS, "TokenReview", "authentication.k8s.io/v1", {"token": token})
        if about.get("authenticated") is not True:
            return HTTPStatus.UNAUTHORIZED
        user = about.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": self._url, "verb": "get"},
        }
        answer = await self._ask(ACCESS_REVIEWS, "SubjectAccessReview", "authorization.k8s.io/v1", spec)
        return HTTPStatus.OK if answer.get("allowed") is True else HTTPStatus.FORBIDDEN

    async def _ask(self, path: str, kind: str, api: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": api, "kind": kind, "spec": spec}
        answer = (await self._session.request("POST", path, body=body)).checked(f"review of who asks ({kind})")
        return dict(answer.json().get("status") or {})
