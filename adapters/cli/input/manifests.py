"""Manifests that commands look at one by one: files, folders, or standard input, Lists taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.command_table import STANDARD_INPUT
from kerf.adapters.cli.input.documents import NotADocument, Refused, read_documents
from kerf.adapters.manager.config_maps import is_settings, old_settings
from kerf.engine.errors import KerfError
from kerf.engine.model import mistyped
from kerf.engine.model.manifests.decode import subject_of
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.manifests.karpenter.pool_kubelets import with_moved_kubelets
from kerf.engine.model.manifests.validate import v1_of
from kerf.engine.model.manifests.violations import ManifestError
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.reasons import sentence


class Placed(Struct, frozen=True):
    """A document, and where it stands: "file:line", with the item's number for one of a List."""

    place: str
    document: dict[str, Any]


def read_manifests(files: Sequence[str]) -> tuple[list[Placed], list[Refused]]:
    """The objects, and what is no document. "-" is standard input, as in `--apply=-`. Raises FileUnreadable (KERF330),
    and NotADocument (KERF331) where there is none at all."""
    documents = read_documents(Path(STANDARD_INPUT if file == "-" else file) for file in files)
    pairs = zip(documents.places, documents.good, strict=True)
    placed = [Placed(place.replace(STANDARD_INPUT, "-"), document) for place, document in pairs]
    if not placed and not documents.refused:
        raise NotADocument("there is no document", where=", ".join(files), hint="Give YAML or JSON")
    return placed, documents.refused


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
    on_pools: dict[int, str] = {}  # NodePools with a kubelet, and where they stand
    for manifest in placed:
        if is_settings(manifest.document):
            _convert_settings(manifest, result)
            continue
        try:
            conversion = v1_of(manifest.document)
        except ManifestError as error:
            result.refused.append(ManifestError(error.object, error.violations, source=manifest.place))
            continue
        for note in conversion.notes:
            if note.code == v1beta1.KUBELET_ON_POOL:
                on_pools[len(result.documents)] = manifest.place
            else:
                result.notes.append(f"{manifest.place}: {manifest_note_sentence(note)}")
        result.documents.append(conversion.document)
    return _with_kubelets_on_classes(result, on_pools)


def _with_kubelets_on_classes(result: Converted, on_pools: Mapping[int, str]) -> Converted:
    """Kubelets of NodePools go to EC2NodeClasses of the same files, as Karpenter 1.0 applied them (L-131)."""
    done = with_moved_kubelets(result.documents, tuple(on_pools))
    stays = manifest_note_sentence(Reason(v1beta1.KUBELET_ON_POOL, {"annotation": v1beta1.KUBELET_CONVERSION}))
    said = [
        f"{place}: {f'kubelet moved to EC2NodeClass/{done.moved[index]}' if index in done.moved else stays}"
        for index, place in on_pools.items()
    ]
    return Converted(done.documents, [*result.notes, *said], result.refused)


def _convert_settings(manifest: Placed, result: Converted) -> None:
    """A ConfigMap of settings, with the variables of today: a container takes them by envFrom (L-317 to L-324)."""
    old = old_settings(manifest.document)
    if old.violations:
        name = subject_of(manifest.document, "ConfigMap")
        result.refused.append(ManifestError(name, old.violations, source=manifest.place))
        return
    result.documents.append({**manifest.document, "data": old.environment})
    result.notes.extend(f"{manifest.place}: {note}" for note in old.notes)
