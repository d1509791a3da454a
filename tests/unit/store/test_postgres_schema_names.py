"""Names of schemas that PostgreSQL would cut short. No server is asked."""

from __future__ import annotations

import pytest

from kerf.adapters.store.open import open_record
from kerf.engine.record.errors import SchemaNameTooLong, StoreError

NOBODY = "postgresql://kerf:secret@127.0.0.1:1/none?connect_timeout=1&schema="


@pytest.mark.parametrize("name", ["a" * 64, "%C3%A4" * 32, "a" * 100_000])
@pytest.mark.parametrize("mode", ["create", "write", "read"])
def test_a_name_of_over_63_bytes_is_refused(name: str, mode: str) -> None:
    """PostgreSQL cuts it without a word: the records of two such names that begin alike were one."""
    with pytest.raises(SchemaNameTooLong, match=r"KERF127.*63 at most") as caught:
        open_record(NOBODY + name, mode)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["a" * 63, "%C3%A4" * 31])
def test_a_name_of_63_bytes_is_taken(name: str) -> None:
    with pytest.raises(StoreError, match=r"KERF100.*does not answer"):
        open_record(NOBODY + name)
