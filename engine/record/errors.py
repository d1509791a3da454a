"""What may go wrong with the record (KERF1xx). Every store raises these errors, whatever database or file it uses.

No error is ever handled by guessing. After an error of `append` nothing of the turn is stored. What a reader got before
an error is good.
"""

from __future__ import annotations

import msgspec

from kerf.engine.errors import KerfError

UNDECODABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, TypeError)
"""What decoding raises for bytes that somebody else may have written: also too deep, or of numbers out of range."""

INCONSISTENT = (*UNDECODABLE, LookupError, AttributeError, ArithmeticError)
"""What folding, or deciding, raises for an entry that can be read and does not follow from those before it."""


class StoreError(KerfError):
    """Root of the record's errors. Raised itself for a fault that has no class of its own (an I/O error, say).

    `position` is the first position that the error is about, 0 if it is about none.
    """

    code = "KERF100"

    def __init__(self, message: str, *, position: int = 0, where: str = "", hint: str = "") -> None:
        self.position = position
        at = f"position {position}" if position else ""
        super().__init__(message, where=", ".join(part for part in (where, at) if part), hint=hint)


class PositionConflict(StoreError):
    """The turn does not begin right after the stored end: somebody else appended, or a turn is missing."""

    code = "KERF101"


class StreamConflict(StoreError):
    """The stream already has an entry with this version."""

    code = "KERF102"


class EpochRefused(StoreError):
    """The turn's epoch is older than the stored one: another writer has taken over."""

    code = "KERF103"


class TurnRefused(StoreError):
    """The turn is malformed: it is empty, has gaps in its positions, or has a blob that does not match its digest."""

    code = "KERF104"


class StoreFull(StoreError):
    """The disk is full."""

    code = "KERF105"


class StoreLocked(StoreError):
    """Another process holds the write lock."""

    code = "KERF106"


class StoreReadOnly(StoreError):
    """A write to a record that was opened for reading, or that lies on read-only media."""

    code = "KERF107"


class NotARecord(StoreError):
    """The file or folder is not a record."""

    code = "KERF108"


class RecordCorrupt(StoreError):
    """The record is damaged at `position`; everything before it is intact and readable."""

    code = "KERF109"


class FormatUnsupported(StoreError):
    """The record's own format, or an entry of it, is newer than this version of kerf."""

    code = "KERF110"


class BlobMissing(StoreError):
    """The store has no blob with this digest."""

    code = "KERF111"


class BlobCorrupt(StoreError):
    """A blob's content does not match its digest."""

    code = "KERF112"


class RecordNotFound(StoreError):
    """There is no file, folder or database at this path."""

    code = "KERF113"


class RecordExists(StoreError):
    """Something exists at this path, and a record never overwrites anything."""

    code = "KERF114"


class EntryRefused(StoreError):
    """An entry cannot be encoded: its payload is not of its type, or holds a value that MessagePack cannot express."""

    code = "KERF115"


class EntryUndecodable(StoreError):
    """The stored bytes of an entry do not fit its type, although type and schema are known."""

    code = "KERF116"


class UpcastFailed(StoreError):
    """The upcaster from an older schema is missing, or it failed."""

    code = "KERF117"


class RecordShortened(StoreError):
    """The record was cut: of the requested entries, only claim events and decisions are kept, or nothing."""

    code = "KERF118"


class CheckpointMissed(RecordCorrupt):
    """The record is not the one that a checkpoint was taken of, or it was changed since."""

    code = "KERF126"


class SpecialFile(StoreError):
    """A link, a folder, a pipe or a device is where a file is to be written."""

    code = "KERF119"


class SchemaNameTooLong(StoreError):
    """A PostgreSQL record's schema has a name that PostgreSQL would cut short."""

    code = "KERF127"
