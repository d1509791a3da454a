"""The explorer's server in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kerf.adapters.web.access import Access, token_check
from kerf.adapters.web.app import app
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.serve import listening_on, own_hosts, server

TOKEN = "of-the-tests"


@contextmanager
def explorer(record: Path) -> Iterator[str]:
    """The link to a record's page."""
    with closing(listening_on(0)) as listening, closing(RecordReader(str(record))) as reader:
        port = listening.getsockname()[1]
        serving = server(app(reader, Access(token_check(TOKEN), own_hosts(port))))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/#token={TOKEN}"
        finally:
            serving.should_exit = True
            thread.join()
