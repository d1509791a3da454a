"""From pseudonyms back to names, with the record and the key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kerf.adapters.cli.records import has_pseudonyms, opened
from kerf.adapters.store.pseudonyms.key_file import read_key
from kerf.adapters.store.pseudonyms.record import Pseudonymised
from kerf.engine.errors import InputError

_RANK = re.compile(r"[-_][0-9]+[-_](?=[0-9a-f]{16})")
"""Where a name stands among those of its kind, which differs between two bundles of a record."""


def mapped_back(record: str, key: Path, asked: Iterable[str]) -> dict[str, str | None]:
    """Each pseudonym that is asked for, or every one, with its name; None if this record and key give none such.

    Raises StoreError, and InputError (KERF207) for a file that is no key, (KERF201) for a record of pseudonyms.
    """
    with opened(record) as store:
        if has_pseudonyms(store):
            hint = "Give the record that the bundle was made of, and the key that was written beside the bundle"
            raise InputError("the names in this bundle are pseudonyms", where=record, hint=hint, code="KERF201")
        given = Pseudonymised(store, key=read_key(key), base=store.base()).names()
    by_hash = {_RANK.sub("-", pseudonym): name for pseudonym, name in given.items()}
    return {pseudonym: by_hash.get(_RANK.sub("-", pseudonym)) for pseudonym in asked} or dict(given)
