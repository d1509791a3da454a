"""The workload that a pod belongs to, as people name it: the Deployment of its ReplicaSet, the CronJob of its Job."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Owner, Pod

POD = "Pod"
_TEMPLATE_HASH = re.compile(r"(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}")
"""A Deployment names its ReplicaSets by its own name and a hash in this alphabet of Kubernetes."""
_RUN = re.compile(r"(.+)-[0-9]{8,10}")
"""A CronJob names its Jobs by its own name and the minute of the run."""
_ABOVE = {"ReplicaSet": (_TEMPLATE_HASH, "Deployment"), "Job": (_RUN, "CronJob")}


class WorkloadName(Struct, frozen=True, order=True):
    """A workload. A pod without an owner stands for itself, with the kind `POD`."""

    namespace: str
    name: str
    kind: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def workload_of(pod: Pod) -> WorkloadName:
    """Return the workload of a pod."""
    return WorkloadName(pod.namespace, pod.name, POD) if pod.owner is None else owner_name(pod.namespace, pod.owner)


@lru_cache(4096)  # a record has thousands of pods of each owner
def owner_name(namespace: str, owner: Owner) -> WorkloadName:
    """Return the workload that an owner of pods belongs to, or the owner itself. The owner of an owner is not in the
    record: its name tells."""
    kind = owner.kind.rpartition("/")[2]
    pattern, above = _ABOVE.get(kind, (None, ""))
    found = pattern.fullmatch(owner.name) if pattern is not None else None
    return WorkloadName(namespace, found[1], above) if found else WorkloadName(namespace, owner.name, kind)
