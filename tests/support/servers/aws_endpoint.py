"""The shim's AWS on 127.0.0.1: another process reaches it as AWS_ENDPOINT_URL says, with an ordinary boto3.

A request is read by its service's own model, made through the shim's client (so that its faults and choices apply, and
nothing leaves this process), and its answer written by the model again. The services' own protocols are moto's to read
and write.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import SERIALIZERS
from moto.core.utils import get_service_model
from werkzeug import Request, Response
from werkzeug.serving import BaseWSGIServer, make_server

from kerf.adapters.aws.mock.moto_shim import MotoShim
from tests.support.aws.limits import documented_problems
from tests.support.aws.service_model import request_problems

_SCOPE = re.compile(r"Credential=[^/]+/[0-9]+/[^/]+/([^/]+)/aws4_request")
_POLL = 0.1  # seconds between looks at a queue that is polled for long
_XML = (
    "<Response><Errors><Error><Code>{0}</Code><Message>{1}</Message></Error></Errors></Response>",
    "<ErrorResponse><Error><Code>{0}</Code><Message>{1}</Message></Error></ErrorResponse>",
)


logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it writes a line for each request


class AwsEndpoint:
    """`start`, then give `environment` to a process. `calls` are the operations asked for, in order."""

    def __init__(self, shim: MotoShim) -> None:
        self._shim = shim
        self._lock = threading.Lock()  # moto is for one thread
        self._server: BaseWSGIServer | None = None
        self.calls: list[str] = []
        self.problems: list[str] = []
        """What AWS would find wrong with the calls, by its service models."""
        self.refuse: set[str] = set()
        """Operations that are answered with UnauthorizedOperation."""
        self.held: dict[str, threading.Event] = {}
        """Operations that are done, but answered only when the event is set."""

    def start(self) -> None:
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        threading.Thread(target=self._server.serve_forever, name="aws", daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        assert self._server is not None
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_REGION": self._shim.region,
            "AWS_DEFAULT_REGION": self._shim.region,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def locked(self) -> threading.Lock:
        """For a test that looks into moto while a process uses it."""
        return self._lock

    def _answer(self, environ: Mapping[str, Any], start_response: Any) -> Any:
        request = Request(environ)  # type: ignore[arg-type]
        return self._respond(request)(environ, start_response)  # type: ignore[arg-type]

    def _respond(self, request: Request) -> Response:
        scope = _SCOPE.search(request.headers.get("Authorization", ""))
        service = scope.group(1) if scope else "ec2"
        model = get_service_model(service)
        protocol = model.metadata["protocol"]
        body = request.get_data()
        name, path = _operation(model, request, protocol)
        operation = model.operation_model(name)
        parsed = PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.form,
                "headers": request.headers,
                "body": body,
                "url_path": request.path,
                "url_params": path,
            }
        )
        method = xform_name(name)
        found = [*request_problems(method, parsed), *documented_problems(method, parsed)]
        self.problems += [f"{name} {problem}" for problem in found]
        dry = bool(parsed.get("DryRun"))
        if not dry:
            self.calls.append(name)
        try:
            if name in self.refuse:
                raise ClientError(
                    {"Error": {"Code": "UnauthorizedOperation", "Message": "You are not authorized."},
                     "ResponseMetadata": {"HTTPStatusCode": 403}}, name,
                )  # fmt: skip
            answer = self._make(service, name, parsed)
        except ClientError as error:
            return _error(error, protocol)
        except (ConnectTimeoutError, ReadTimeoutError):
            return Response(status=504)
        if name in self.held and not dry:
            self.held[name].wait(30)
        answer.pop("ResponseMetadata", None)
        reply = SERIALIZERS[protocol](operation).serialize(answer)
        return Response(reply["body"], reply["status_code"], dict(reply["headers"]))

    def _make(self, service: str, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
        client = getattr(self._shim, service)
        method = next(m for m, operation in client.meta.method_to_api_mapping.items() if operation == name)
        until = time.monotonic() + min(2, parameters.pop("WaitTimeSeconds", 0) or 0)
        while True:
            with self._lock:
                answer: dict[str, Any] = getattr(client, method)(**parameters)
            if name != "ReceiveMessage" or answer.get("Messages") or time.monotonic() >= until:
                return answer
            time.sleep(_POLL)


def _operation(model: Any, request: Request, protocol: str) -> tuple[str, dict[str, str]]:
    """Its name, and what its path has for parameters."""
    if protocol in ("ec2", "query"):
        return str(request.form["Action"]), {}
    if target := request.headers.get("X-Amz-Target"):
        return target.rpartition(".")[2], {}
    for name in model.operation_names:
        http = model.operation_model(name).http
        pattern = re.sub(r"\{([A-Za-z]+)\}", r"(?P<\1>[^/]+)", http["requestUri"].partition("?")[0])
        found = re.fullmatch(pattern, request.path)
        if found and http["method"] == request.method:
            return str(name), found.groupdict()
    raise LookupError(f"{request.method} {request.path} is no operation of {model.service_name}")


def _error(error: ClientError, protocol: str) -> Response:
    told = error.response["Error"]
    code, message = told.get("Code", ""), told.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    if protocol in ("ec2", "query"):
        return Response(_XML[protocol == "query"].format(code, message), status, content_type="text/xml")
    text = '{{"__type": "{}", "message": "{}"}}'.format(code, message.replace('"', "'"))
    return Response(text, status, {"x-amzn-errortype": code}, content_type="application/x-amz-json-1.1")
