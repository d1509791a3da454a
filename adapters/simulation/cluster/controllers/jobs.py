"""The Job controller, for Jobs that say how long their pods run.

It keeps up to `parallelism` pods running until as many as `completions` have ended. One that is evicted comes again and
starts anew. No pod fails, and pods that have ended stay, as they do without a TTL. Scheduling gates are taken off.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.controllers.recorded_pods import RecordedPods, Slot
from kerf.adapters.simulation.cluster.controllers.workloads import PodTemplate
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.engine.model.kubernetes.pods import Owner, Pod, is_terminal

JOB = "batch/v1/Job"


class Job(Struct, frozen=True):
    """A Job whose pods run for `runs` ms each."""

    uid: str
    namespace: str
    name: str
    template: PodTemplate
    runs: int
    completions: int = 1
    parallelism: int = 1


class Jobs:
    """All Jobs, by namespace and name. `begun` counts the pods of each, by its uid; one that comes again counts
    once."""

    def __init__(self, api: ApiServer, clock: Clock, rng: SeededRandom, pods: RecordedPods) -> None:
        self._api, self._clock, self._rng, self._pods = api, clock, rng, pods
        self._jobs: dict[tuple[str, str], Job] = {}
        self._by_uid: dict[str, Job] = {}
        self._begun: dict[str, int] = {}
        api.listen(self._changed)

    def apply(self, job: Job) -> None:
        """Begin a Job. One that is applied again goes on as it is: the API lets nobody change its pods."""
        key = job.namespace, job.name
        if key in self._jobs:
            return
        self._jobs[key] = self._by_uid[job.uid] = job
        self._begun[job.uid] = 0
        for _ in range(min(job.parallelism, job.completions)):
            self._begin(job)

    def delete(self, namespace: str, name: str) -> bool:
        """Delete a Job and, as `kubectl delete` does, its pods. Return whether it was there."""
        job = self._jobs.pop((namespace, name), None)
        if job is None:
            return False
        del self._by_uid[job.uid]
        for number in range(self._begun.pop(job.uid)):
            self._pods.leave(_slot(job, number))
        for pod in self._api.pods_of(job.uid):
            if is_terminal(pod):
                self._api.remove(pod)
        return True

    def _begin(self, job: Job) -> None:
        number = self._begun[job.uid]
        if number >= job.completions:
            return
        self._begun[job.uid] += 1
        pod = Pod(
            uid=self._rng.uid("pod", job.uid, number),
            namespace=job.namespace,
            name=f"{job.name}-{self._rng.suffix(5, 'name', job.uid, number)}",
            shape=self._api.keep_shape(job.template.shape),
            owner=Owner(kind=JOB, name=job.name, uid=job.uid),
            do_not_disrupt=job.template.do_not_disrupt,
            deletion_cost=job.template.deletion_cost,
        )
        slot = Slot(pod=pod, runs=job.runs, phase="Succeeded", kept=0, again=True, named=False, uid=pod.uid)
        self._pods.come(_slot(job, number), slot)

    def _changed(self, change: Change) -> None:
        pod, old = change.new, change.old
        if not isinstance(pod, Pod) or pod.owner is None or not is_terminal(pod):
            return
        job = self._by_uid.get(pod.owner.uid)
        if job is not None and isinstance(old, Pod) and not is_terminal(old):
            self._clock.after(0, "job controller", lambda: self._next(job))

    def _next(self, job: Job) -> None:
        if job.uid in self._by_uid:
            self._begin(job)


def _slot(job: Job, number: int) -> str:
    return f"{job.uid}/{number}"
