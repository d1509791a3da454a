"""Kubernetes documents from files: YAML of any number of documents, or JSON. Each document stands by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from kerf.adapters.cli.input.bounded_yaml import NotFinite, read_bounded, read_yaml
from kerf.engine.errors import InputError
from kerf.engine.model.manifests.decode import NAMELESS
from kerf.engine.model.manifests.lists import form_of, items_of

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
MAX_DOCUMENTS = 100_000
"""A file may hold this many documents."""
_YAML_FILES = (".yaml", ".yml", ".json")


class FileUnreadable(InputError):
    """A file that cannot be read at all, or a folder without manifests."""

    code = "KERF330"


class NotADocument(InputError):
    """Text that is neither YAML nor JSON, or a document that is no object."""

    code = "KERF331"


class Refused(Struct, frozen=True):
    """A document that could not be parsed; `item` says which."""

    item: str
    error: InputError


class Documents(Struct, frozen=True):
    """`good` were parsed, `refused` not; `digest` is of all that was read. `places` says where each good one stands:
    "file:line". Items of lists stand by themselves: "file:line[2]"."""

    good: list[dict[str, Any]]
    refused: list[Refused]
    digest: str
    places: list[str]

    def named(self) -> Documents:
        """Those without apiVersion and kind are refused: nothing but its place says which one that is."""
        pairs = list(zip(self.places, self.good, strict=True))
        good = [(place, pair) for place, pair in pairs if pair.get("apiVersion") or pair.get("kind")]
        nameless = [
            Refused(
                place, InputError("The document has no apiVersion and kind", where=place, hint=NAMELESS, code="KERF302")
            )
            for place, pair in pairs
            if not (pair.get("apiVersion") or pair.get("kind"))
        ]
        return Documents(
            [document for _, document in good], self.refused + nameless, self.digest, [at for at, _ in good]
        )


def read_documents(paths: Iterable[Path]) -> Documents:
    """The documents of files (of a folder: its .yaml, .yml and .json files, by name).

    Raises FileUnreadable (KERF330) for a path that cannot be read: that is no bad document, but a wrong command.
    """
    good: list[dict[str, Any]] = []
    refused: list[Refused] = []
    places: list[str] = []
    digest = blake2b(digest_size=16)
    for file in _files(paths):
        data = _bytes(file)
        digest.update(data)
        for found in _parsed(file, data):
            if isinstance(found, Refused):
                refused.append(found)
                continue
            for place, document in items_of(found[1], found[0]):
                if isinstance(document, InputError):
                    refused.append(Refused(place, document))
                else:
                    good.append(dict(document))
                    places.append(place)
    return Documents(good, refused, digest.hexdigest(), places)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(file for file in path.iterdir() if file.suffix in _YAML_FILES)
        if not inside:
            raise FileUnreadable("the folder holds no manifests", where=str(path), hint="Give .yaml or .json files")
        yield from inside


def _bytes(file: Path) -> bytes:
    try:
        return read_bounded(file)
    except OSError as error:
        hint = "Check the path"
        raise FileUnreadable(f"cannot read the file: {error.strerror}", where=str(file), hint=hint) from error


def _parsed(file: Path, data: bytes) -> Iterator[tuple[str, dict[str, Any]] | Refused]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"the file is no UTF-8 text (byte {error.start})"
        hint = "Give YAML or JSON; kerf status, log and explain read records and bundles"
        yield Refused(str(file), NotADocument(found, where=str(file), hint=hint))
        return
    for number, (line, part) in enumerate(_parts(text), start=1):
        where = f"{file}:{line}"
        if number > MAX_DOCUMENTS:
            most = f"the file holds more than {MAX_DOCUMENTS:,} documents"
            yield Refused(f"the rest of {file}", NotADocument(most, where=where, hint="Split it into several files"))
            return
        try:
            documents = [(line, read_yaml(part))]
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            stream = _json_documents(part)
            if not stream:
                yield Refused(f"document {number} of {file}", _malformed(error, file, line, part))
                continue
            documents = [(line + below, document) for below, document in stream]
        for at, document in documents:
            if isinstance(document, dict):
                yield f"{file}:{at}", document
            elif document is not None:
                what = NotADocument(f"the document is {form_of(document)}, and no object", where=f"{file}:{at}")
                yield Refused(f"document {number} of {file}", what)


def _json_documents(part: str) -> list[tuple[int, Any]]:
    """The documents of JSON that follow one another, as kubectl takes them, each with the lines before it. None where
    any of it is something else."""
    found: list[tuple[int, Any]] = []
    start, line, decode = 0, 0, json.JSONDecoder().raw_decode
    try:
        while part.startswith("{", start):
            end = decode(part, start)[1]
            found.append((line, read_yaml(part[start:end])))
            while part[end : end + 1].isspace():
                end += 1
            line, start = line + part.count("\n", start, end), end
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    return found if start == len(part) and len(found) <= MAX_DOCUMENTS else []


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a stream with the line at which each begins. A mistake in one leaves the others readable."""
    breaks = [*_SEPARATOR.finditer(text)]
    starts = [0, *(found.end() for found in breaks)]
    ends = [*(found.start() for found in breaks), len(text)]
    line, counted = 1, 0
    for start, end in zip(starts, ends, strict=True):
        line, counted = line + text.count("\n", counted, start), start
        if part := text[start:end].strip():
            yield line + _blank_lines(text[start:end]), part


def _blank_lines(part: str) -> int:
    return part[: len(part) - len(part.lstrip())].count("\n")


def _malformed(error: Exception, file: Path, line: int, part: str) -> InputError:
    mark = getattr(error, "problem_mark", None)
    at = f"{file}:{line + mark.line}" if mark is not None else f"{file}:{line}"
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    if isinstance(error, NotFinite):
        return InputError(problem, where=at, hint="Leave the field out where nothing is meant", code="KERF303")
    return NotADocument(f"not YAML: {problem}", where=at, hint=_remedy(part, mark))


def _remedy(part: str, mark: yaml.Mark | None) -> str:
    """What to do about a document that is no YAML."""
    if "{{" in part:
        return 'It is a template: give what it makes, such as with "helm template"'
    lines = part.splitlines()
    if mark is not None and mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t":
        return "Write spaces in place of the tab"
    return "Mend the indentation or the quotes there"
