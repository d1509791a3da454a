"""Workloads as captures and traces tell of them: Deployments and others that come, change their size and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kerf.adapters.importers.history import Applied, History
from kerf.adapters.importers.objects import BY_API, gone, observed
from kerf.adapters.importers.untrusted import name_of, text_of, whole_number
from kerf.engine.errors import InputError
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.observations import ControllerSaid

Document = dict[str, Any]


class Workloads:
    """Tells a history of documents. `source` says in whose words sentences are."""

    def __init__(self, history: History, source: str) -> None:
        self._history, self._source = history, source
        self._shown: dict[tuple[str, str], Struct] = {}

    def say(self, at: int, text: str, level: str = "info") -> None:
        self._history.tell(at, ControllerSaid(self._source, level, text))

    def apply(self, at: int, document: Document, number: int) -> None:
        """Tells of an object that is new or has changed. One of a kind that kerf does not watch is a sentence."""
        api = f"{text_of(document.get('apiVersion'))}/{text_of(document.get('kind'))}"
        name = key_of_document(document)
        if not name:
            self._history.not_read(number, "an object has no name", api)
            return
        self._history.read += 1
        found = BY_API.get(api)
        if found is None:
            self._history.applied.append(Applied(at, document))
            self.say(at, f"{text_of(document.get('kind'))} {name} is there", "debug")
            return
        try:
            obj, blobs = observed(*found, document)
        except InputError as error:
            self._history.not_read(number, f"{found[1].api} {name} cannot be read", str(error))
            return
        self._history.applied.append(Applied(at, document))
        before = self._shown.get((api, name))
        if before == obj:
            return
        self._shown[api, name] = obj
        self._history.tell(at, obj, blobs=blobs)
        if isinstance(obj, Workload) and isinstance(before, Workload) and before.replicas != obj.replicas:
            self.say(at, f"{found[1].plural[:-1]} {name} is scaled from {before.replicas} to {obj.replicas}")

    def remove(self, at: int, api: str, name: str) -> bool:
        """Tells that an object is gone; False if it was never there."""
        version, _, kind = api.rpartition("/")
        namespace, _, own = name.rpartition("/")
        metadata = {"namespace": namespace, "name": own} if namespace else {"name": own}
        was = {"apiVersion": version, "kind": kind, "metadata": metadata}
        self._history.applied.append(Applied(at, was, gone=True))
        obj = self._shown.pop((api, name), None)
        if obj is None:
            return False
        self._history.read += 1
        self._history.tell(at, gone(BY_API[api][0], obj))
        return True


def key_of_document(document: Document) -> str:
    """namespace/name, or the name alone."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not name_of(metadata):
        return ""
    namespace = name_of(metadata.get("namespace"))
    return f"{namespace}/{name_of(metadata)}" if namespace else name_of(metadata)


def wanted_of(document: Document, field: str) -> int:
    """A number of the spec, 1 if it is not told (as the API has it)."""
    spec = document.get("spec")
    value = spec.get(field) if isinstance(spec, dict) else None
    return whole_number(value) if type(value) is int else 1


def rounds_of(job: Document) -> int:
    """How many times a Job begins as many pods as may run at once, at least 1."""
    at_once = max(1, wanted_of(job, "parallelism"))
    return max(1, -(-wanted_of(job, "completions") // at_once))


def dangling_terms(template: Document) -> Iterator[str]:
    """Which terms of a pod template select labels that its own pods do not have: a sanitiser has renamed these, so the
    term neither spreads nor repels any more (F-28)."""
    labels = part_of(template, "metadata").get("labels")
    own = labels.items() if isinstance(labels, dict) else {}.items()
    spec = part_of(template, "spec")
    for term in _list(spec.get("topologySpreadConstraints")):
        if _dangles(term, own):
            yield f"its spread over {text_of(term.get('topologyKey'))}"
    affinity = part_of(spec, "affinity")
    for word in ("podAffinity", "podAntiAffinity"):
        for term in _list(part_of(affinity, word).get("requiredDuringSchedulingIgnoredDuringExecution")):
            if _dangles(term, own):
                yield f"its {word} by {text_of(term.get('topologyKey'))}"


def _dangles(term: Document, own: Any) -> bool:
    wanted = part_of(term, "labelSelector").get("matchLabels")
    return isinstance(wanted, dict) and not all(pair in own for pair in wanted.items())


def part_of(document: Document, key: str) -> Document:
    """A part of a document; an empty one if it is no object."""
    part = document.get(key)
    return dict(part) if isinstance(part, dict) else {}


def _list(value: object) -> list[Document]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
