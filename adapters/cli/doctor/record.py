"""Whether `kerf doctor` finds the record writable."""

from __future__ import annotations

import os
from pathlib import Path

from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.store.open import open_record, require_url
from kerf.engine.errors import KerfError
from kerf.engine.record.errors import RecordNotFound, StoreLocked


def check_record(url: str) -> list[Finding]:
    """Opens the record for writing and closes it again; nothing is written."""
    try:
        require_url(url)
        open_record(url, "write").close()
    except RecordNotFound:
        return [_new_record(url)]
    except StoreLocked as error:
        return [Finding("record", NOTE, str(error))]
    except KerfError as error:
        return [Finding("record", BAD, str(error))]
    return [Finding("record", OK, "it is there and can be written")]


def _new_record(url: str) -> Finding:
    """Whether a new record could be made at `url`: for a file, whether its folder can be written."""
    if not url.startswith("sqlite://"):
        return Finding("record", OK, "there is none yet; the server can be reached, and kerf makes it")
    folder = Path(url.removeprefix("sqlite://")).parent
    if not os.access(folder, os.W_OK):
        return Finding("record", BAD, f"there is none, and {folder} is no folder that can be written")
    return Finding("record", OK, f"there is none yet; kerf makes it in {folder}")
