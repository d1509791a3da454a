"""Serve the explorer inside a cluster, to whom its API server lets read: by TokenReview and SubjectAccessReview.

It listens on 127.0.0.1 of its pod, which a port is forwarded to: tokens do not travel on the pods' network.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.kubernetes.read_only_session import ReadingSession
from kerf.adapters.kubernetes.reviewed_access import ReviewedAccess
from kerf.adapters.kubernetes.session import connect
from kerf.adapters.web.access import Access
from kerf.adapters.web.app import app
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.serve import listening_on, own_hosts, server
from kerf.engine.record.errors import StoreError

URL = "/kerf/explorer"
"""Who may `get` this URL by RBAC may see the record. It is no object's."""
TRIED_EVERY = 2.0  # seconds


def serve_in_cluster(record: str, port: int, kubeconfig: Path | None, context: str | None) -> None:
    """Serve until the process is told to stop. Raises PortTaken (KERF860) and NoCluster (KERF603)."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), closing(listening_on(port)) as listening, closing(opened(record)) as reader:
        asyncio.run(_serve(reader, listening, kubeconfig, context))


def opened(record: str) -> RecordReader:
    """Return the record's reader as soon as there is a record: the controller makes it when it first leads."""
    told = ""
    while True:
        try:
            return RecordReader(record)
        except StoreError as error:
            if str(error) != told:
                told = str(error)
                print_error(told)
            time.sleep(TRIED_EVERY)


async def _serve(reader: RecordReader, listening: socket.socket, kubeconfig: Path | None, context: str | None) -> None:
    session = await connect(kubeconfig, context, kind=ReadingSession)
    try:
        access = Access(ReviewedAccess(session, URL).check, own_hosts(listening.getsockname()[1]))
        await server(app(reader, access)).serve(sockets=[listening])
    finally:
        await session.close()
