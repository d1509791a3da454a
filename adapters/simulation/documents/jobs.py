"""Jobs and bare pods that end by themselves: an annotation of their pods says how long these run."""

from __future__ import annotations

from typing import Any

from kerf.adapters.simulation.cluster.controllers.jobs import JOB, Job
from kerf.adapters.simulation.cluster.controllers.recorded_pods import Slot
from kerf.adapters.simulation.cluster.controllers.workloads import PodTemplate
from kerf.adapters.simulation.documents.parts import Document, annotations_of, part_of, template_of
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_duration_with_days
from kerf.engine.model.kubernetes.pods import Pod

RUNS_FOR = "kerf.dev/runs-for"
"""How long a pod runs in a simulation until it has succeeded, as a duration: an annotation of a Pod, or of the pod
template of a Job."""


OF_JOB = "spec.template."
"""The path of the template in a Job."""


def is_job_with_end(document: Document) -> bool:
    """Whether it is a Job that a simulation runs: one that says how long its pods do."""
    kind = f"{document.get('apiVersion')}/{document.get('kind')}"
    return kind == JOB and RUNS_FOR in annotations_of(template_of(document))


def pod_of_job(document: Document) -> dict[str, Any]:
    """The Pod that a Job makes, as a document. Its controller adds labels with the Job's name."""
    metadata, template = part_of(document, "metadata"), template_of(document)
    name = str(metadata.get("name", ""))
    own = {"job-name": name, "batch.kubernetes.io/job-name": name}
    pod = part_of(template, "metadata")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": metadata.get("generateName"),
            "namespace": metadata.get("namespace", "default"),
            "labels": {**part_of(pod, "labels"), **own},
            "annotations": dict(annotations_of(template)),
        },
        "spec": dict(part_of(template, "spec")),
    }


def apply_job(simulation: Simulation, document: Document, pod: Pod, template: PodTemplate, uid: str) -> None:
    """Begin a Job. `pod` is what `pod_of_job` decodes to. Raises InputError (KERF307)."""
    spec = part_of(document, "spec")
    parallelism = _number(spec, "parallelism", 1)
    job = Job(
        uid=uid,
        namespace=pod.namespace,
        name=pod.name,
        template=template,
        runs=runs_for(template_of(document), OF_JOB),
        completions=_number(spec, "completions", parallelism),
        parallelism=0 if spec.get("suspend") is True else parallelism,
    )
    simulation.cluster.jobs.apply(job)


def let_it_end(simulation: Simulation, pod: Pod, runs: int) -> None:
    """Let a bare pod that is there end when it has run for so long (ms)."""
    slot = Slot(pod=pod, runs=runs, phase="Succeeded", kept=0, again=False, named=False, uid=pod.uid)
    simulation.cluster.workloads.recorded.come(pod.uid, slot)


def runs_for(pod: Document, path: str = "") -> int:
    """How long a pod, or one of this template, runs (ms); 0 if it does not say. `path`: of the template in its object.
    Raises InputError (KERF307)."""
    said = annotations_of(pod).get(RUNS_FOR)
    if said is None:
        return 0
    try:
        return max(1, parse_duration_with_days(str(said)))
    except InputError as error:
        where = f"{path}metadata.annotations[{RUNS_FOR}]"
        raise InputError(error.message, where=where, hint=error.hint, code=error.code) from error


def _number(spec: Document, field: str, default: int) -> int:
    value = spec.get(field)
    return max(0, value) if type(value) is int else default
