"""One line of Karpenter's log: who wrote it, when, and the fields that versions spell in different ways (F-55…F-60)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.importers.untrusted import name_of, object_of, text_of, time_of
from kerf.adapters.importers.wrapped_lines import Line

_LOGGER = "controller"
_OLDER = {"NodeClaim": "nodeclaim", "NodePool": "nodepool", "Node": "node", "Pod": "pod"}
"""Up to 0.36 references are flat strings under lower-case keys (F-89)."""


class LogLine(Struct, frozen=True):
    """`controller` is the one that wrote it, as 1.x names it; "" for the framework's own lines."""

    number: int
    at: int
    level: str
    controller: str
    message: str
    fields: dict[str, Any]
    version: str

    def name(self, kind: str) -> str:
        """The name of the object that a field refers to; "" if it refers to none."""
        return name_of(self.fields.get(kind, self.fields.get(_OLDER[kind])))

    def text(self, key: str) -> str:
        return text_of(self.fields.get(key))


def log_line(line: Line, fields: dict[str, Any] | None = None) -> LogLine | None:
    """The line; None if it is no line of Karpenter's log, or has no time. `fields` are those of its text, if they have
    been read."""
    fields = object_of(line.text) if fields is None else fields
    if fields is None or not isinstance(fields.get("message"), str):
        return None
    at = time_of(fields.get("time"))
    at = line.at if at is None else at  # a collector may have dropped it
    if at is None:
        return None
    logger = text_of(fields.get("logger"))
    controller = text_of(fields.get("controller")) or logger.removeprefix(_LOGGER).removeprefix(".")
    version = line.version or _releases().get(text_of(fields.get("commit")).removesuffix("-dirty"), "")
    level = text_of(fields.get("level")).upper()
    return LogLine(line.number, at, level, controller, fields["message"], fields, version)


def is_karpenters(line: LogLine) -> bool:
    """Whether the line shows that Karpenter wrote it: by its logger, or by a controller and what it reconciles."""
    logger = text_of(line.fields.get("logger"))
    return logger == _LOGGER or logger.startswith(f"{_LOGGER}.") or "controller" in line.fields


def may_be_karpenters(line: LogLine) -> bool:
    """As `is_karpenters`; also of a line whose logger a collector has dropped, which names Karpenter's commit."""
    return is_karpenters(line) or "commit" in line.fields


@cache
def _releases() -> dict[str, str]:
    """Commit of a release of the AWS provider → its version (F-56)."""
    table = files("kerf.adapters.importers.karpenter").joinpath("data/karpenter-aws-commits.json").read_bytes()
    return msgspec.json.decode(table, type=dict[str, str])
