"""Tell when pods of a workload begin to ask for something else: somebody has changed the workload.

The record holds no Deployments; what the latest pod asks for says when its template was changed. That takes all pods of
a workload, so a timeline that was given only some cannot tell it.
"""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, owned_by
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import BlobMissing
from kerf.projections.differences.documents import Shapes, pod_document
from kerf.projections.differences.field_changes import field_changes
from kerf.projections.timeline.entry_events import make_event
from kerf.projections.timeline.event import INFO, Event
from kerf.projections.workload_names import WorkloadName, workload_of


class ChangedWorkloads:
    """Gives the events of one entry with `apply`. `shapes` say what pods ask for."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._latest: dict[WorkloadName, Pod] = {}

    def apply(self, entry: Entry) -> list[Event]:
        """Return at most one event: of a pod that asks for something else than the latest one of its workload."""
        pod = entry.payload
        if not isinstance(pod, Pod) or pod.owner is None or owned_by(pod, DAEMONSET):
            return []
        workload = workload_of(pod)
        before = self._latest.get(workload)
        if before is not None and pod.created < before.created:
            return []
        self._latest[workload] = pod
        if before is None or (before.shape, before.do_not_disrupt) == (pod.shape, pod.do_not_disrupt):
            return []
        try:
            documents = [pod_document(one, self._shapes(one.shape)) for one in (before, pod)]
        except BlobMissing:  # of a part of a record
            return []
        fields = [change.words for change in field_changes(*documents)]
        subject = f"{workload.kind.lower()}/{workload.key}"
        told = make_event(entry, "workload-changed", INFO, subject, kind=workload.kind, fields=fields)
        return [told] if fields else []
