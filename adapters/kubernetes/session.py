"""One connection to an API server.

The official client does configuration, authentication and TLS. Bodies are bytes in and out, because the client's typed
models cost milliseconds per object.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from kubernetes.aio import config
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from msgspec import Struct
from yaml import YAMLError

import kerf
from kerf.adapters.kubernetes.errors import ClusterError, NoCluster, Unreachable
from kerf.adapters.kubernetes.rate_limiter import TokenBucket
from kerf.engine.record.errors import UNDECODABLE

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
JSON = "application/json"
MAX_REQUESTS_UNDER_WAY = 32
"""Requests under way beside watches: each has a connection, and a hundred new ones cost both sides a second."""
QPS, BURST = 200.0, 300  # L-290's KUBE_CLIENT_QPS and KUBE_CLIENT_BURST
REQUEST_TIMEOUT = 30.0  # seconds, of a request that is no watch
CONNECT_TIMEOUT = 10.0
_DEFAULT_KUBECONFIG = "~/.kube/config"
_NETWORK = (aiohttp.ClientError, TimeoutError, OSError)
_NO_CONFIGURATION = (config.ConfigException, OSError, YAMLError, AttributeError, KeyError, TypeError, ValueError,
                     RecursionError)  # fmt: skip
"""What the client raises for a file that is not a kubeconfig, depending on its content."""


Dated = Callable[[str, float], None]
"""Called with each answer's Date header (empty if it has none), and the seconds that it took."""
Note = Callable[[str, str, int, float], None]
"""Called after each answer: method, path, HTTP status (0 if there was none), seconds."""


class Status(Struct):
    """metav1.Status, with the fields that kerf shows."""

    message: str = ""
    reason: str = ""
    code: int = 0


class Answer(Struct, frozen=True):
    """An HTTP status, the body, and the server's date. A refusal is an answer too."""

    status: int
    body: bytes
    date: str = ""

    @property
    def ok(self) -> bool:
        return self.status < 300

    def message(self) -> str:
        """Returns what the API server says about a refusal."""
        try:
            return msgspec.json.decode(self.body, type=Status).message
        except UNDECODABLE:
            return self.body[:300].decode(errors="replace")

    def json(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body, type=dict[str, Any])

    def checked(self, where: str) -> Answer:
        """Returns itself, or raises ClusterError (KERF601) if it is a refusal."""
        if not self.ok:
            raise ClusterError(f"{self.status}: {self.message()}", status=self.status, where=where)
        return self


class Session:
    """Requests to one API server. Close it when done."""

    def __init__(self, configuration: Configuration, *, qps: float = QPS, burst: int = BURST) -> None:
        self.requests = 0
        self.note: Note | None = None
        self.dated: Dated | None = None
        self._configuration = configuration
        self._rest = RESTClientObject(configuration)
        self._sockets: aiohttp.ClientSession | None = None
        self._bucket = TokenBucket(qps, burst, time.monotonic)
        self._gate = asyncio.Semaphore(MAX_REQUESTS_UNDER_WAY)

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    def certificate(self) -> bytes:
        """Returns the certificate authority of the API server as PEM; empty if none is given."""
        file = self._configuration.ssl_ca_cert
        return Path(str(file)).read_bytes() if file else b""

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
        """Sends one request and returns its whole answer. Raises Unreachable (KERF602).

        `limited=False` bypasses the token bucket and the limit of requests under way: the Lease must not wait behind
        evictions.
        """
        if limited:
            await self._bucket.wait()
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        try:
            async with self._gate if limited else nullcontext():
                response = await self._send(method, path, query, body, content_type, limits)
                return Answer(response.status, await response.read(), response.headers.get("Date", ""))
        except _NETWORK as error:
            raise _unreachable(error, f"{method} {path}") from error

    async def stream(self, path: str, *, query: Mapping[str, str | int], timeout: float) -> AsyncIterator[bytes]:
        """Yields the answer of a watch as it arrives, in pieces that may end anywhere.

        The first piece is empty and says that the watch is open, even if nothing happens. A whole answer is read within
        `timeout` seconds. Raises ClusterError (KERF601) if the watch is refused, Unreachable (KERF602) if it breaks.
        """
        await self._bucket.wait()
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        try:
            response = await self._send("GET", path, query, None, JSON, limits)
            try:
                if response.status != 200:
                    Answer(response.status, await response.read()).checked(f"watch {path}")
                yield b""
                async for piece in response.content.iter_any():
                    yield piece
            finally:
                response.close()
        except _NETWORK as error:
            raise _unreachable(error, f"watch {path}") from error

    async def websocket(
        self, path: str, *, query: Mapping[str, str | int], protocol: str
    ) -> aiohttp.ClientWebSocketResponse:
        """Opens a WebSocket, such as that of a pod's forwarded port. Raises ClusterError (KERF601) if it is refused,
        Unreachable (KERF602) if nobody answers.
        """
        if self._sockets is None:
            connector = aiohttp.TCPConnector(ssl=self._rest.ssl_context)
            self._sockets = aiohttp.ClientSession(connector=connector, trust_env=True)
        try:
            return await self._sockets.ws_connect(
                self.host + path,
                params=query,
                protocols=(protocol,),
                headers=await self.authorization(),
                proxy=self._configuration.proxy,
                proxy_headers=self._configuration.proxy_headers,
                server_hostname=self._configuration.tls_server_name,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise ClusterError(f"{error.status}: {error.message}", status=error.status, where=f"GET {path}") from error
        except _NETWORK as error:
            raise _unreachable(error, f"GET {path}") from error

    async def close(self) -> None:
        await self._rest.close()
        if self._sockets is not None:
            await self._sockets.close()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: object,
        content_type: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        url = self.host + path + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        headers = {
            "Accept": JSON,
            "Content-Type": content_type,
            "User-Agent": f"kerf/{kerf.__version__}",
            **await self.authorization(),
        }
        self.requests += 1
        begun, status = time.monotonic(), 0
        try:
            sent: Any = await self._rest.request(  # type: ignore[no-untyped-call]
                method, url, headers=headers, body=body, _request_timeout=limits
            )
            response: aiohttp.ClientResponse = sent.response
            status = response.status
            if self.dated is not None:
                self.dated(response.headers.get("Date", ""), time.monotonic() - begun)
            return response
        finally:
            if self.note is not None:
                self.note(method, path, status, time.monotonic() - begun)

    async def authorization(self) -> dict[str, str]:
        """Returns the authorization header, empty where the client shows a certificate. Asked for each request, because
        tokens of pods and cloud plug-ins are renewed.
        """
        settings: dict[str, Any] = {**await self._configuration.auth_settings()}
        return {
            setting["key"]: setting["value"]
            for setting in settings.values()
            if setting["in"] == "header" and setting["value"]
        }


async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    qps: float = QPS,
    burst: int = BURST,
    kind: type[Session] = Session,
) -> Session:
    """Connects to the cluster that a kubeconfig names, else to the one this pod runs in, else to the default
    kubeconfig's.

    Raises NoCluster (KERF603).
    """
    configuration = Configuration()
    configuration.connection_pool_maxsize = 0  # each watch keeps one; the token bucket is the limit
    files = str(kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT_KUBECONFIG)
    try:
        if kubeconfig is None and _in_a_pod():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            # Path.expanduser fails where there is no home
            if not any(Path(os.path.expanduser(file)).is_file() for file in files.split(os.pathsep)):  # noqa: PTH111
                raise FileNotFoundError("there is no such file")
            await config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=files, context=context, client_configuration=configuration
            )
    except _NO_CONFIGURATION as error:
        wrong = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        wrong = wrong if isinstance(error, FileNotFoundError) else _without_context(files, context) or wrong
        if not isinstance(error, config.ConfigException | OSError):
            wrong = f"this is no kubeconfig ({wrong})"
        raise NoCluster(
            f"no API server to talk to: {wrong}",
            where=files if kubeconfig is not None or not _in_a_pod() else "this pod's service account",
            hint="Name a kubeconfig with --kubeconfig or KUBECONFIG, or run in a pod with a service account",
        ) from error
    return kind(configuration, qps=qps, burst=burst)


def _without_context(files: str, context: str | None) -> str:
    """Says which contexts kubeconfigs have, if none of them is this one; "" if one is, or they cannot be read."""
    if context is None:
        return ""
    try:
        contexts, _ = config.list_kube_config_contexts(files)  # type: ignore[no-untyped-call]
        known = sorted(str(found["name"]) for found in contexts)
    except _NO_CONFIGURATION:
        return ""
    return "" if context in known else f"there is no context {context}. There is {', '.join(known)}"


def _in_a_pod() -> bool:
    return Path("/var/run/secrets/kubernetes.io/serviceaccount/token").is_file()


def _unreachable(error: BaseException, where: str) -> Unreachable:
    return Unreachable(
        f"the API server did not answer: {str(error) or type(error).__name__}",
        where=where,
        hint="Look at the API server and the network between. A controller tries again by itself",
    )
