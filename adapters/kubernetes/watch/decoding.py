"""Decodes the bytes of a list or a watch into objects of the engine's model.

Each object is decoded by itself: one that cannot be read is refused, and the others are not affected. So is one over
which a reader fails because of a defect (KERF605): else it would end the controller, after each start again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct, field

from kerf.adapters.kubernetes.session import Status
from kerf.engine.errors import InputError, fault_of
from kerf.engine.model.durations import parse_time
from kerf.engine.model.labels import POD_DELETION_COST
from kerf.engine.model.manifests.decode import KINDS, decode_object
from kerf.engine.model.manifests.kubernetes.pods import DELETION_COST_IGNORED
from kerf.engine.model.manifests.violations import ManifestError, Report
from kerf.engine.model.manifests.wire import Read
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.record.observations import InputRefused

_DELETION_COST = f"metadata.annotations[{POD_DELETION_COST}]"
ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Frame(Struct, gc=False):
    """One line of a watch."""

    type: str
    object: Raw


class ListMetadata(Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class Page(Struct, gc=False):
    """One page of a list."""

    metadata: ListMetadata = field(default_factory=ListMetadata)
    items: list[Raw] = field(default_factory=list)


class _ObjectMetadata(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str = ""


class _Object(Struct, gc=False):
    metadata: _ObjectMetadata = field(default_factory=_ObjectMetadata)


_frames = msgspec.json.Decoder(Frame).decode_lines
_page = msgspec.json.Decoder(Page).decode
_object = msgspec.json.Decoder(_Object).decode
_status = msgspec.json.Decoder(Status).decode


def read_page(data: bytes) -> Page:
    """Reads a page of a list. Raises one of UNDECODABLE."""
    return _page(data)


def read_frames(lines: bytes) -> list[Frame]:
    """Reads whole lines of a watch. Raises one of UNDECODABLE if they are not frames."""
    return _frames(lines)


def read_status(data: Raw) -> Status:
    """Returns the Status in an ERROR frame; an empty one if the frame holds something else."""
    try:
        return _status(data)
    except UNDECODABLE:
        return Status(message=bytes(data)[:300].decode(errors="replace"))


def version_of(data: Raw) -> str:
    """Returns metadata.resourceVersion, "" if it cannot be read."""
    try:
        return _object(data).metadata.resource_version
    except UNDECODABLE:
        return ""


def deleting_since(data: Raw) -> int:
    """Returns metadata.deletionTimestamp (ms since the epoch), 0 if it cannot be read or there is none."""
    try:
        told = _object(data).metadata.deletion_timestamp
        return parse_time(told) if told else 0
    except (*UNDECODABLE, InputError):
        return 0


def reader(api: str, trim: Callable[[Struct], Struct] | None = None) -> Callable[[Raw], Read | InputRefused]:
    """Returns a function that reads objects of one kind (a key of KINDS), and trims them if told how."""
    read = KINDS[api].read

    def read_object(data: Raw) -> Read | InputRefused:
        report = Report(admitted=True)
        try:
            found = read(data, report)
            if not report.violations:
                return _trimmed(found._replace(notes=tuple(report.notes)), trim)
        except UNDECODABLE:
            pass  # the slow way repairs, or says what is wrong
        slowly = _slowly(bytes(data), api)
        return slowly if isinstance(slowly, InputRefused) else _trimmed(slowly, trim)

    def read_alone(data: Raw) -> Read | InputRefused:
        try:
            return read_object(data)
        except Exception as error:
            fault = fault_of(error, subject(api, data))
            return InputRefused(fault.code, "watch", subject(api, data), message=f"{fault.message}. {fault.hint}")

    return read_alone


def _trimmed(read: Read, trim: Callable[[Struct], Struct] | None) -> Read:
    return read if trim is None else read._replace(object=trim(read.object))


def ignored_fields(api: str, data: Raw, read: Read) -> list[InputRefused]:
    """Returns what of an accepted object cannot be read and counts as not there (LG-14)."""
    return [
        InputRefused("KERF303", "watch", subject(api, data), _DELETION_COST, f"{note.params['value']!r} counts as 0")
        for note in read.notes
        if note.code == DELETION_COST_IGNORED
    ]


def _slowly(data: bytes, api: str) -> Read | InputRefused:
    try:
        decoded = decode_object(data, source="watch", assume=api)
    except ManifestError as error:
        first = error.violations[0]
        more = f" (and {len(error.violations) - 1} more)" if len(error.violations) > 1 else ""
        return InputRefused(first.code, "watch", subject(api, data), first.path, first.message + more)
    return Read(decoded.object, decoded.blobs, decoded.notes)


def subject(api: str, data: bytes | Raw) -> str:
    """Returns "Kind/namespace/name" of an object that may otherwise be unreadable."""
    try:
        metadata = _object(data).metadata
    except UNDECODABLE:
        metadata = _ObjectMetadata(name="?")
    return "/".join(part for part in (api.rpartition("/")[2], metadata.namespace, metadata.name) if part)


def identity(data: Raw) -> tuple[str, str]:
    """Returns uid and name of an object that may otherwise be unreadable; "" for what it lacks."""
    try:
        metadata = _object(data).metadata
    except UNDECODABLE:
        return "", ""
    return metadata.uid, metadata.name
