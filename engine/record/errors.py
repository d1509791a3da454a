"""What may go wrong with the record (KERF1xx). Any store raises these, whatever it stands on.

None of them is ever answered by guessing: after an error of `append` nothing of the turn is stored, and what a reader
got before an error is good.
"""

from __future__ import annotations

from kerf.engine.errors import KerfError


class StoreError(KerfError):
    """Root of the record's errors, and itself a fault that has no name of its own (an I/O error, say).

    `position` is the first position that the error is about, 0 when it is about none.
    """

    code = "KERF100"

    def __init__(self, message: str, *, position: int = 0, where: str = "", hint: str = "") -> None:
        self.position = position
        at = f"position {position}" if position else ""
        super().__init__(message, where=", ".join(part for part in (where, at) if part), hint=hint)


class PositionConflict(StoreError):
    """The turn does not begin right after the stored end: somebody else has appended, or a turn was left out."""

    code = "KERF101"


class StreamConflict(StoreError):
    """A version of a stream is taken already."""

    code = "KERF102"


class EpochRefused(StoreError):
    """The turn's epoch is older than the stored one: this writer is no longer the one writer."""

    code = "KERF103"


class TurnRefused(StoreError):
    """The turn is not well formed: empty, holes in its positions, or a blob that its digest does not name."""

    code = "KERF104"


class StoreFull(StoreError):
    """No room left on the disk."""

    code = "KERF105"


class StoreLocked(StoreError):
    """Another process holds the write lock."""

    code = "KERF106"


class StoreReadOnly(StoreError):
    """A write to a record that was opened for reading or lies on read-only media."""

    code = "KERF107"


class NotARecord(StoreError):
    """The file or folder is something else."""

    code = "KERF108"


class RecordCorrupt(StoreError):
    """The record is damaged at `position`; everything before it is intact and readable."""

    code = "KERF109"


class FormatUnsupported(StoreError):
    """The record's own format is newer than this version of kerf."""

    code = "KERF110"


class BlobMissing(StoreError):
    """No blob of this digest is stored."""

    code = "KERF111"


class BlobCorrupt(StoreError):
    """A blob's content is not what its digest names."""

    code = "KERF112"


class RecordNotFound(StoreError):
    """There is nothing at this path."""

    code = "KERF113"


class RecordExists(StoreError):
    """There is something at this path already, and it is never overwritten."""

    code = "KERF114"


class EntryRefused(StoreError):
    """An entry that cannot be encoded: its payload is not of its type, or holds a value without a MessagePack form."""

    code = "KERF115"


class EntryUndecodable(StoreError):
    """The stored bytes of an entry of a known type and schema do not fit that type."""

    code = "KERF116"


class UpcastFailed(StoreError):
    """The upcaster from an older schema is missing or failed."""

    code = "KERF117"


class RecordShortened(StoreError):
    """The record was cut: of what is asked for only claims' events and decisions are kept, or nothing."""

    code = "KERF118"
