"""Manifests that commands look at one by one: files, folders, or standard input, Lists taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.input.documents import NotADocument, Refused, read_documents
from kerf.engine.errors import KerfError
from kerf.engine.model import mistyped
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.manifests.validate import v1_of
from kerf.engine.model.manifests.violations import ManifestError
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.reasons import sentence

_INPUT = "/dev/stdin"


class Placed(Struct, frozen=True):
    """A document, and where it stands: "file:line", with the item's number for one of a List."""

    place: str
    document: dict[str, Any]


def read_manifests(files: Sequence[str]) -> tuple[list[Placed], list[Refused]]:
    """The objects, and what is no document. "-" is standard input. Raises FileUnreadable (KERF330), and NotADocument
    (KERF331) where there is none at all."""
    documents = read_documents(Path(_INPUT if file == "-" else file) for file in files)
    placed = [
        Placed(place.replace(_INPUT, "-"), document)
        for at, whole in zip(documents.places, documents.good, strict=True)
        for place, document in items_of(at, whole)
    ]
    if not placed and not documents.refused:
        raise NotADocument("there is no document", where=", ".join(files), hint="Give YAML or JSON")
    return placed, documents.refused


def items_of(place: str, document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The document itself, or the items of a List, each with its place."""
    kind, items = document.get("kind"), document.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield place, document
        return
    # The items of a typed list need not say what they are.
    named = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield f"{place}[{number}]", named | item


def manifest_note_sentence(note: Reason) -> str:
    """A note on a manifest, as its author should read it."""
    template = v1beta1.NOTES.get(note.code) or mistyped.NOTES.get(note.code)
    if template is None:
        return sentence(note)
    return template.format_map(
        {key: ", ".join(param) if isinstance(param, list) else param for key, param in note.params.items()}
    )


class Converted(Struct, frozen=True):
    """Manifests as v1, with a line for each note on their conversion, and the errors of those that were refused."""

    documents: list[dict[str, Any]]
    notes: list[str]
    refused: list[KerfError]


def converted(files: Sequence[str]) -> Converted:
    """The manifests of files as v1. Raises what `read_manifests` does."""
    placed, unreadable = read_manifests(files)
    result = Converted([], [], [item.error for item in unreadable])
    for manifest in placed:
        try:
            conversion = v1_of(manifest.document)
        except ManifestError as error:
            result.refused.append(ManifestError(error.object, error.violations, source=manifest.place))
            continue
        result.documents.append(conversion.document)
        result.notes.extend(f"{manifest.place}: {manifest_note_sentence(note)}" for note in conversion.notes)
    return result
