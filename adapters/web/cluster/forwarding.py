"""Show the explorer that runs in a cluster on a page of this machine, until Ctrl-C.

The page and its API come from the cluster, through a forwarded port. This process takes the token of the link that it
printed, and sends the kubeconfig's in its place.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from yarl import URL

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.port_forward import PodPort, PortForward
from kerf.adapters.kubernetes.session import Session, connect
from kerf.adapters.web.access import Access, refusal
from kerf.adapters.web.serve import HERE, access_by_link, listening_on, server
from kerf.engine.errors import InputError, KerfError

PORT_NAME = "explorer"
"""The name that the chart gives the explorer's port."""
_ASKED = ("accept", "accept-encoding", "if-none-match")
_ANSWERED = ("cache-control", "content-encoding", "content-type", "etag")
_TIMES = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=90)  # a what-if may take a minute


class NoExplorer(InputError):
    """No explorer runs in the cluster, where it was looked for."""

    code = "KERF863"


class NotLetIn(InputError):
    """The kubeconfig has no token to send, or the explorer does not take it."""

    code = "KERF864"


class Cluster(Struct, frozen=True):
    """Where the explorer is. None and "" are the kubeconfig's own."""

    kubeconfig: Path | None
    context: str | None
    namespace: str


def serve_forwarded(cluster: Cluster, port: int, *, open_page: bool) -> None:
    """Serve the page on 127.0.0.1, on any free port for 0. Raises NoExplorer (KERF863), NotLetIn (KERF864), PortTaken
    (KERF860), and what `connect` and a refusing API server raise."""
    with closing(listening_on(port)) as listening:
        asyncio.run(_serve(cluster, listening, open_page=open_page))


async def _serve(cluster: Cluster, listening: socket.socket, *, open_page: bool) -> None:
    session = await connect(cluster.kubeconfig, cluster.context)
    forward = PortForward(session, lambda: explorer_pod(session, cluster.namespace))
    try:
        host = f"{HERE}:{(await explorer_pod(session, cluster.namespace)).port}"
        with tempfile.TemporaryDirectory(prefix="kerf-ui-") as folder:
            place = Path(folder) / "explorer"
            connector = aiohttp.UnixConnector(str(place))
            async with (
                forward.listening(place),
                aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=_TIMES) as client,
            ):
                explorer = ForwardedExplorer(session, forward, client, host)
                await explorer.first_look()
                what = f"of namespace {cluster.namespace} at {session.host}"
                access = access_by_link(listening, what, open_page=open_page)
                await server(forwarding_app(explorer, access)).serve(sockets=[listening])
    finally:
        await session.close()


async def explorer_pod(session: Session, namespace: str) -> PodPort:
    """Return the pod whose port has the explorer's name; a ready one where there are several. Raises NoExplorer
    (KERF863)."""
    answer = await session.request("GET", f"/api/v1/namespaces/{namespace}/pods")
    pods = answer.checked(f"list the pods of namespace {namespace}").json()["items"]
    found = sorted(
        (not _is_ready(pod), pod["metadata"]["name"], port["containerPort"])
        for pod in pods
        if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
        if port.get("name") == PORT_NAME
    )
    if not found:
        hint = "Install the chart with explorer.enabled=true, or name another --namespace"
        raise NoExplorer("no explorer runs here", where=f"namespace {namespace} at {session.host}", hint=hint)
    _, name, port = found[0]
    return PodPort(namespace, name, port)


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


class ForwardedExplorer:
    """The explorer at the other end, which `client` reaches as `host`. `ask` sends it a request with the kubeconfig's
    token."""

    def __init__(self, session: Session, forward: PortForward, client: aiohttp.ClientSession, host: str) -> None:
        self._session, self._forward, self._client, self._host = session, forward, client, host

    async def first_look(self) -> None:
        """Raise what keeps the page from being shown."""
        async with await self.ask("/api/v1/record", {}) as answer:
            if answer.status != HTTPStatus.OK:
                message, hint = await _refused(answer)
                raise NotLetIn(f"the explorer answers {answer.status}: {message}", hint=hint)

    async def ask(self, path: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Return the answer, whose body is still to be read. Raises NotLetIn (KERF864) where there is no token, and
        why the port cannot be forwarded (KERF6xx)."""
        token = (await self._session.authorization()).get("authorization", "")
        if not token.startswith("Bearer "):
            hint = "Use a context whose user has one; kubectl create token makes one of a ServiceAccount"
            raise NotLetIn("the kubeconfig's user has no token to send", hint=hint)
        url = URL(f"http://{self._host}{path}", encoded=True)
        try:
            return await self._client.get(url, headers={**headers, "Authorization": token}, allow_redirects=False)
        except (aiohttp.ClientError, TimeoutError) as error:
            hint = "Look at the log of the pod that has the explorer"
            raise self._forward.fault or Unreachable("the explorer does not answer", hint=hint) from error


async def _refused(answer: aiohttp.ClientResponse) -> tuple[str, str]:
    """Message and hint of a refusal."""
    try:
        error = msgspec.json.decode(await answer.read())["error"]
        return str(error["message"]), str(error["hint"])
    except (msgspec.MsgspecError, LookupError, TypeError):
        return str(answer.reason), "Is this port the explorer's?"


def forwarding_app(explorer: ForwardedExplorer, access: Access) -> Starlette:
    """Return the server that hands on what it is asked, to whom `access` lets."""

    async def hand_on(request: Request) -> Response:
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        asked = {name: request.headers[name] for name in _ASKED if name in request.headers}
        try:
            answer = await explorer.ask(path, asked)
        except KerfError as error:
            return refusal(HTTPStatus.BAD_GATEWAY, error.message, error.hint, error.code)
        if answer.status == HTTPStatus.UNAUTHORIZED:  # the page would ask for this link's token
            async with answer:
                return refusal(HTTPStatus.FORBIDDEN, *await _refused(answer))
        headers = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
        return StreamingResponse(_body(answer), answer.status, headers)

    served = Starlette(routes=[Route("/{path:path}", hand_on)])
    served.add_middleware(BaseHTTPMiddleware, dispatch=access)
    return served


async def _body(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.content.iter_any():
            yield piece
    finally:
        answer.close()
