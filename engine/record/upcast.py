"""Converts payloads of an older schema to today's, one step at a time, on plain builtins."""

from __future__ import annotations

from typing import Any

from kerf.engine.record.entries import EntryType
from kerf.engine.record.errors import UpcastFailed


def upcast(known: EntryType, schema: int, plain: dict[str, Any], *, position: int = 0) -> dict[str, Any]:
    """Returns the payload `plain`, written with `schema`, in the form of `known.schema`.

    An upcaster may change the dict that it is given. Raises `UpcastFailed` if a step is missing or fails.
    """
    for step in range(schema, known.schema):
        upcaster = known.upcasters.get(step)
        if upcaster is None:
            raise UpcastFailed(
                f"no upcaster from schema {step} to {step + 1} of {known.name!r}",
                position=position,
                hint="Read this record with the version of kerf that wrote it, and report the missing step",
            )
        try:
            plain = upcaster(plain)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UpcastFailed(
                f"the upcaster from schema {step} to {step + 1} of {known.name!r} failed: {error!r}",
                position=position,
                hint="The payload does not have the shape of the schema it is marked with",
            ) from error
    return plain
