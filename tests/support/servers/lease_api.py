"""An API server that holds one Lease."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.support.servers.fake_kubernetes import FakeApi


class LeaseApi(FakeApi):
    """Holds one Lease; between `fail` and `recover` it answers nothing but 503."""

    def __init__(self) -> None:
        super().__init__()
        self.spec: dict[str, Any] = {}
        self.version = 0
        self.paths: set[str] = set()
        self._down = False

    def fail(self) -> None:
        self._down = True

    def recover(self) -> None:
        self._down = False

    def write(self, **spec: Any) -> None:
        """Somebody else writes it."""
        self.spec = {**self.spec, **spec}
        self.version += 1

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.paths.add(request.path)
        if self._down:
            return web.json_response({"message": "down"}, status=503)
        if request.method == "GET":
            return self._found() if self.spec else web.json_response({}, status=404)
        document = await request.json()
        if request.method == "PUT" and document["metadata"]["resourceVersion"] != str(self.version):
            return web.json_response({"message": "conflict"}, status=409)
        if request.method == "POST" and self.spec:
            return web.json_response({"message": "exists"}, status=409)
        self.write(**document["spec"])
        return self._found()

    def _found(self) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "spec": self.spec})
