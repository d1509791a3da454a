"""Serve the explorer on this machine until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from contextlib import closing

import uvicorn
from starlette.applications import Starlette

from kerf.adapters.cli.render.lines import print_text
from kerf.adapters.web.access import Access, token_check
from kerf.adapters.web.app import app
from kerf.adapters.web.reader import RecordReader
from kerf.engine.errors import InputError

HERE = "127.0.0.1"
_TOKEN_BYTES = 24


class PortTaken(InputError):
    """The port of the explorer cannot be listened on."""

    code = "KERF860"


def serve(record: str, port: int, *, open_page: bool) -> None:
    """Serve the record's page on 127.0.0.1, on any free port for 0. Raises what `open_record` raises, and PortTaken
    (KERF860)."""
    with closing(listening_on(port)) as listening, closing(RecordReader(record)) as reader:
        server(app(reader, access_by_link(listening, f"of {record}", open_page=open_page))).run(sockets=[listening])


def access_by_link(listening: socket.socket, what: str, *, open_page: bool) -> Access:
    """Return the access of whoever has a new link, which is printed. `what` says what is seen there."""
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    link = f"http://{HERE}:{port}/#token={token}"
    print_text(f"The explorer {what}: {link}")
    print_text("It reads, and writes nothing. Ctrl-C ends it.")
    if open_page:
        webbrowser.open(link)
    return Access(token_check(token), own_hosts(port))


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of Host that this machine has for a port of its own."""
    return frozenset(f"{name}:{port}" for name in (HERE, "localhost"))


def server(served: Starlette) -> uvicorn.Server:
    """Return the HTTP server, to be run."""
    config = uvicorn.Config(
        served,
        log_level="critical",  # defects are answers; pages that follow the record are cut off at the end
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def listening_on(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1, on any free port for 0. Raises PortTaken (KERF860)."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HERE, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        hint = "Give another one to --port, or 0 for any that is free"
        raise PortTaken(f"port {port} cannot be listened on", hint=hint) from error
    return listening
