"""Who may ask the explorer's server: whoever brings a token that it takes, under its own name, from its own page.

The page sends the token with each request. A page from elsewhere that leads a name of its own to 127.0.0.1 (DNS
rebinding) has another Host; one that asks from there, another Origin.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

API = "/api/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_BEARER = "Bearer "
_REFUSALS = {
    HTTPStatus.UNAUTHORIZED: ("the token is missing or another one", "Open the link that kerf ui printed last"),
    HTTPStatus.FORBIDDEN: ("you may not see this record", "Let your cluster's administrator bind the explorer's role"),
    HTTPStatus.SERVICE_UNAVAILABLE: ("the API server does not say who you are", "Try again in a moment"),
}
Next = Callable[[Request], Awaitable[Response]]
Check = Callable[[str], Awaitable[HTTPStatus]]
"""What the header Authorization is worth: OK, or one of the statuses 401, 403 and 503."""


class Access:
    """Refuses what may not be asked, and puts the headers on each answer. `check` looks at the token of each request
    to the API; `hosts` are the values of Host that are this server's own."""

    def __init__(self, check: Check, hosts: frozenset[str]) -> None:
        self._check, self._hosts = check, hosts

    async def __call__(self, request: Request, answer: Next) -> Response:
        refused = await self._refusal(request)
        response = refused if refused is not None else await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def _refusal(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return refusal(421, f"this server is not {host!r}", "Open the link that kerf ui printed")
        if origin is not None and origin.partition("://")[2] not in self._hosts:
            return refusal(403, "another page may not ask", "Open the link that kerf ui printed")
        if request.method not in ("GET", "HEAD"):
            return refusal(405, "the explorer only reads", "Ask with GET")
        if not request.url.path.startswith(API):
            return None
        status = await self._check(request.headers.get("authorization", ""))
        return None if status == HTTPStatus.OK else refusal(status, *_REFUSALS[status])


def token_check(token: str) -> Check:
    """Return the check that takes one token alone."""

    async def check(authorization: str) -> HTTPStatus:
        told = authorization.removeprefix(_BEARER) if authorization.startswith(_BEARER) else ""
        return HTTPStatus.OK if hmac.compare_digest(told.encode(), token.encode()) else HTTPStatus.UNAUTHORIZED

    return check


def refusal(status: int, message: str, hint: str, code: str = "") -> JSONResponse:
    """Return an error as the API writes all of them."""
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)
