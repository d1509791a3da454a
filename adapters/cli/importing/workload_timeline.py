"""The workloads of histories as a Timeline: with it `kerf simulate` runs them under anybody's NodePools (F-30, F-54).

Its actions are what users and autoscalers did: objects applied, scaled and deleted, each at its time after the
beginning. What controllers made of these objects is left to the simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec import Struct

from kerf.adapters.importers.history import Applied, History
from kerf.adapters.importers.untrusted import text_of, time_of
from kerf.adapters.importers.workloads import Document, key_of_document, part_of, rounds_of, wanted_of
from kerf.adapters.simulation.documents.jobs import RUNS_FOR
from kerf.adapters.simulation.timeline.timeline import API_VERSION, KIND
from kerf.engine.model.durations import format_duration

_SCALED = ("Deployment", "StatefulSet")
_WITH_TEMPLATE = (*_SCALED, "DaemonSet", "Job")
_DELETED = (*_WITH_TEMPLATE, "Pod", "PodDisruptionBudget", "PersistentVolumeClaim", "Service")
_APPLIED = (*_DELETED, "Namespace", "PriorityClass", "StorageClass")
"""Kinds that an action scales, that have a pod template, that an action deletes, and that belong to a workload."""
_OF_THE_CLUSTER = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces of what a cluster runs itself on nodes that Karpenter does not launch (F-17). Their DaemonSets run on all
nodes."""
_OF_SERVERS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "selfLink",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class WorkloadTimeline(Struct, frozen=True):
    """A Timeline as a document, and what it is of. Times are ms since the epoch. `left_out` counts objects by their
    kind and why they are not in it."""

    document: Document
    since: int
    until: int
    workloads: int
    actions: int
    left_out: dict[str, int]


def workload_timeline(histories: Sequence[History], jobs_run_for: int = 0) -> WorkloadTimeline | None:
    """The Timeline; None if no workload is told. `jobs_run_for`: how long (ms) the pods of Jobs run whose end is not
    known; with 0 such Jobs are left out."""
    applied = sorted((each for history in histories for each in history.applied), key=attrgetter("at"))
    told = [turn.at for history in histories for turn in history.told]
    if not applied:
        return None
    since = min([applied[0].at, *told])
    made = _Actions(since, _lengths(applied), jobs_run_for)
    for each in applied:
        made.take(each)
    until = max([applied[-1].at, *told, *(history.until for history in histories)])
    source = " and ".join(dict.fromkeys(history.source for history in histories if history.applied))
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": source},
        "spec": {"actions": made.actions},
    }
    left_out = dict(sorted(made.left_out.items()))
    return WorkloadTimeline(document, since, until, len(made.workloads), len(made.actions), left_out)


class _Actions:
    def __init__(self, since: int, lengths: dict[str, int], jobs_run_for: int) -> None:
        self.actions: list[Document] = []
        self.workloads: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self._since, self._lengths, self._jobs_run_for = since, lengths, jobs_run_for
        self._there: dict[str, Document] = {}
        self._refused: set[str] = set()

    def take(self, applied: Applied) -> None:
        key, kind = _identity(applied.document), text_of(applied.document.get("kind"))
        at = format_duration(applied.at - self._since)
        if applied.gone:
            if self._there.pop(key, None) is not None and kind in _DELETED:
                self.actions.append({"at": at, "action": "delete", "kind": kind, **_name(applied.document)})
            return
        document = self._wanted(applied, key, kind)
        before = self._there.get(key)
        if document is None or document == before:
            return
        self._there[key] = document
        self.workloads |= {key} if kind in (*_WITH_TEMPLATE, "Pod") else set()
        if before is not None and kind in _SCALED and _unscaled(before) == _unscaled(document):
            replicas = wanted_of(document, "replicas")
            self.actions.append(
                {"at": at, "action": "scale", "kind": kind, **_name(document), "replicas": replicas}
            )  # fmt: skip
        else:
            self.actions.append({"at": at, "action": "apply", "object": document})

    def _wanted(self, applied: Applied, key: str, kind: str) -> Document | None:
        """The object as a user would apply it; None for one that is not repeated."""
        document = applied.document
        why = _not_repeated(document, kind)
        if why is None and kind == "Job" and not self._length(key):
            why = "Job whose end is not known"
        if why is not None:
            if why and key not in self._refused:
                self._refused.add(key)
                self.left_out[why] += 1
            return None
        return _with_length(_as_applied(document), self._length(key) if kind in ("Job", "Pod") else 0)

    def _length(self, key: str) -> int:
        """How long each pod of a Job, or a bare pod, runs (ms); 0 if it does not end."""
        return self._lengths.get(key, self._jobs_run_for if key.startswith("batch/v1/Job ") else 0)


def _not_repeated(document: Document, kind: str) -> str | None:
    """Why an object is not repeated, "" for what its controller makes again; None if it is."""
    owners = part_of(document, "metadata").get("ownerReferences")
    if isinstance(owners, list) and owners and not (kind == "Job" and _owner(owners) == "CronJob"):
        return ""
    if kind not in _APPLIED:
        return f"{kind or 'object'} that a simulation does not need or know"
    if text_of(part_of(document, "metadata").get("namespace")) in _OF_THE_CLUSTER and kind != "DaemonSet":
        return f"{kind} of the cluster itself"
    if kind in _WITH_TEMPLATE and not part_of(part_of(part_of(document, "spec"), "template"), "spec").get("containers"):
        return f"{kind} whose pods are not told"
    return None


def _lengths(applied: Iterable[Applied]) -> dict[str, int]:
    """How long the pods of each Job, and bare pods, ran: as told, or between the times of a Job's status."""
    lengths: dict[str, int] = {}
    for each in applied:
        runs = each.runs or _job_took(each.document)
        if runs:
            lengths[_identity(each.document)] = runs
    return lengths


def _job_took(document: Document) -> int:
    """How long each pod of a finished Job ran (ms), 0 if its status does not tell."""
    status = part_of(document, "status")
    began, ended = time_of(status.get("startTime")), time_of(status.get("completionTime"))
    return max(0, ended - began) // rounds_of(document) if began is not None and ended is not None else 0


def _as_applied(document: Document) -> Document:
    """The object without what the API server and controllers have written."""
    metadata = {name: value for name, value in part_of(document, "metadata").items() if name not in _OF_SERVERS}
    annotations = {name: value for name, value in part_of(metadata, "annotations").items() if name != _LAST_APPLIED}
    kept = {name: value for name, value in metadata.items() if name != "annotations"}
    if annotations:
        kept["annotations"] = annotations
    head = {"apiVersion": document.get("apiVersion"), "kind": document.get("kind"), "metadata": kept}
    return {**head, **{name: value for name, value in document.items() if name not in (*head, "status")}}


def _with_length(document: Document, runs: int) -> Document:
    if not runs:
        return document
    said = {RUNS_FOR: format_duration(runs)}
    if document["kind"] == "Pod":
        return {**document, "metadata": _annotated(part_of(document, "metadata"), said)}
    spec = part_of(document, "spec")
    template = part_of(spec, "template")
    template = {**template, "metadata": _annotated(part_of(template, "metadata"), said)}
    return {**document, "spec": {**spec, "template": template}}


def _annotated(metadata: Document, said: Document) -> Document:
    return {**metadata, "annotations": {**part_of(metadata, "annotations"), **said}}


def _unscaled(document: Document) -> Document:
    return {**document, "spec": {**part_of(document, "spec"), "replicas": None}}


def _identity(document: Document) -> str:
    return f"{text_of(document.get('apiVersion'))}/{text_of(document.get('kind'))} {key_of_document(document)}"


def _name(document: Document) -> Document:
    namespace, _, name = key_of_document(document).rpartition("/")
    return {"namespace": namespace, "name": name} if namespace else {"name": name}


def _owner(owners: Sequence[object]) -> str:
    first = owners[0]
    return text_of(first.get("kind")) if isinstance(first, dict) else ""
