"""The explorer's server: the page, and the API below it. It reads; no route writes."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from kerf.adapters.web import decisions, findings, questions, searching
from kerf.adapters.web.access import API, Access, refusal
from kerf.adapters.web.commands import Commands
from kerf.adapters.web.modelled import ModelledRuns
from kerf.adapters.web.openapi import openapi
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.static.files import media_type, page_files
from kerf.adapters.web.timeline import questions as timeline
from kerf.adapters.web.timeline.live import news
from kerf.adapters.web.whatif import WhatIf
from kerf.engine.errors import AdapterFault, InputError, KerfError, fault_of
from kerf.engine.record.errors import StoreError
from kerf.projections.json_times import with_times

QUESTIONS: dict[str, Callable[..., Any]] = {
    question.__name__: question
    for question in (
        questions.record, questions.status, questions.log, questions.explain, questions.story, questions.diff,
        searching.search, timeline.timeline, timeline.tile, timeline.fill, timeline.curves, timeline.step,
        decisions.decision, decisions.again, findings.findings,
    )
}  # fmt: skip
"""Name of the route below /api/v1/ → what answers it. Its parameters after the reader are those of the query."""
_LONGEST = 300  # characters of a parameter
_LONGEST_CHANGE = 8_000  # a manifest; a request's head may have 64 KiB, and each character takes up to three there
_ETAG_BYTES = 12
_QUICKLY = 4  # how hard answers are compressed: harder takes longer than to send them


def app(reader: RecordReader, access: Access) -> Starlette:
    """Return the server of one record."""
    routes = [Route(f"{API}v1/{name}", _route(reader, question)) for name, question in QUESTIONS.items()]
    commands = Commands()
    routes.append(Route(f"{API}v1/whatif", _route(reader, WhatIf(reader.opened, commands).__call__)))
    routes.append(Route(f"{API}v1/modelled", _route(reader, ModelledRuns(reader.opened, commands).__call__)))
    routes.append(Route(f"{API}v1/live", _live(reader)))
    routes.append(Route(f"{API}openapi.json", _described))
    routes += [Route("/", _file), Route("/{path:path}", _file)]
    served = Starlette(routes=routes, exception_handlers={404: _nothing_there})
    served.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=_QUICKLY)
    served.add_middleware(BaseHTTPMiddleware, dispatch=access)
    return served


def _route(reader: RecordReader, question: Callable[..., Any]) -> Callable[[Request], Any]:
    of_record, plain = question in QUESTIONS.values(), question in timeline.PLAIN
    parameters = list(inspect.signature(question, eval_str=True).parameters.values())[of_record:]

    def encoded(found: Any) -> bytes:
        return msgspec.json.encode(found if plain else with_times(found))

    async def answer(request: Request) -> Response:
        try:
            asked = _arguments(request, parameters)
            etag = await reader.ask(_seen)
            if _is_known(request, etag):
                return _unchanged(etag)
            if questions.looks_for_a_name(question, asked):
                await reader.indexed()
            if of_record:  # encoded where it was made: the loop goes on meanwhile, and that core has it at hand
                body = await reader.ask(lambda read: encoded(question(read, **asked)))
            else:
                body = encoded(await question(**asked))
        except Exception as error:  # a defect, or a record that is not what it seems, ends no server
            return _failed(error)
        if plain:
            etag = f'"{blake2b(body, digest_size=_ETAG_BYTES).hexdigest()}"'
        response = _answered(request, body, etag)
        response.background = BackgroundTask(reader.tidy)
        return response

    return answer


def _is_known(request: Request, etag: str) -> bool:
    """Return whether the browser has the answer with this ETag."""
    return request.headers.get("if-none-match") == etag


def _unchanged(etag: str) -> Response:
    return Response(status_code=304, headers={"ETag": etag})


def _answered(request: Request, body: bytes, etag: str) -> Response:
    """Return an answer as JSON, without its body if the browser has it."""
    if _is_known(request, etag):
        return _unchanged(etag)
    return Response(body, media_type="application/json", headers={"ETag": etag, "Cache-Control": "no-cache"})


def _seen(reader: RecordReader) -> str:
    """Return what answers depend on: the record's end, and how much of it is read for what concerns all of it."""
    return f'"{reader.store.last_position()}-{round(100 * reader.picture.read)}"'


def _arguments(request: Request, parameters: list[inspect.Parameter]) -> dict[str, Any]:
    """Return the question's arguments out of the query. Raises InputError (KERF200) for what it does not take."""
    known = {parameter.name: parameter for parameter in parameters}
    arguments: dict[str, Any] = {}
    for name, text in request.query_params.items():
        if name not in known:
            raise InputError(f"there is no parameter {name[:40]!r}", hint=f"Known: {', '.join(known)}", code="KERF200")
        most = _LONGEST_CHANGE if name == "change" else _LONGEST
        if len(text) > most:
            raise InputError(f"{name} is too long", hint=f"Give at most {most} characters", code="KERF200")
        whole = known[name].annotation is int
        if whole and not (text.isascii() and text.isdigit() and len(text) <= len("9999999999999")):
            raise InputError(f"{name} is no whole number", hint="Times are ms since the epoch", code="KERF200")
        arguments[name] = int(text) if whole else text
    missing = [p.name for p in parameters if p.default is inspect.Parameter.empty and p.name not in arguments]
    if missing:
        raise InputError(f"{missing[0]} is missing", hint=f"Add ?{missing[0]}=…", code="KERF200")
    return arguments


def _failed(error: Exception) -> Response:
    fault = fault_of(error, "the explorer")
    return refusal(_status(fault), fault.message, fault.hint, fault.code)


def _status(error: KerfError) -> int:
    return 500 if isinstance(error, StoreError | AdapterFault) else 400


def _live(reader: RecordReader) -> Callable[[Request], Any]:
    async def told() -> AsyncIterator[str]:
        try:
            async for event in news(reader):
                yield event
        except Exception as error:
            yield f"event: failed\ndata: {fault_of(error, 'the explorer').code}\n\n"

    async def stream(request: Request) -> Response:
        return StreamingResponse(told(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    return stream


async def _described(request: Request) -> Response:
    return JSONResponse(openapi(QUESTIONS | {"whatif": WhatIf.__call__, "modelled": ModelledRuns.__call__}))


async def _file(request: Request) -> Response:
    path = request.path_params.get("path", "index.html")
    found = page_files().get(path)
    if found is None:
        return await _nothing_there(request, None)
    return Response(found.read_bytes(), media_type=media_type(path), headers={"Cache-Control": "no-cache"})


async def _nothing_there(request: Request, error: Exception | None) -> Response:
    return refusal(404, f"there is no {request.url.path[:100]!r} here", "See /api/openapi.json")
