"""Karpenter's logs, audit logs and tables of instances, as `kerf import` reads them."""

from __future__ import annotations

import json
from typing import Any

from kerf.adapters.store.open import open_record
from tests.fuzz.mutations import damaged, mutated
from tests.fuzz.target import Target, command, folder, in_file, plain_json
from tests.support.repository import ROOT

MOST = 20_000
"""Bytes of a sample that are tried."""
SAMPLES = [path.read_bytes()[:MOST] for path in sorted((ROOT / "tests/importers/samples").rglob("*")) if path.is_file()]


def _objects() -> list[Any]:
    """A line of each sample that is a JSON object."""
    found = []
    for sample in SAMPLES:
        for line in sample.splitlines()[:20]:
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if isinstance(document, dict):
                found.append(document)
    return found


def check_import(content: bytes) -> None:
    """What was imported can be read; what cannot be imported leaves no record."""
    record = folder() / "imported.kerf"
    record.unlink(missing_ok=True)
    command("import", str(in_file(content, "given.log")), "--record", str(record))
    if record.exists():
        store = open_record(record)
        try:
            store.check()
        finally:
            store.close()
        command("log", str(record), "--all")


TARGETS: dict[str, Target] = {
    "logs' bytes": Target(damaged(SAMPLES), check_import, slow=True),
    "lines of logs": Target(
        mutated([_objects()], most=6).map(
            lambda lines: b"\n".join(map(plain_json, lines)) if isinstance(lines, list) else plain_json(lines)
        ),
        check_import,
        slow=True,
    ),
}
