"""Notes as sentences, for the author of a document that was accepted."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.adapters.cli.render.lines import print_error
from kerf.engine.model import mistyped
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.reasons import sentence

SIMULATED: dict[str, str] = {
    "after-the-end": "it has {actions} after the end of the simulation (--until): without effect",
    "deletion-cost-ignored": "the pod-deletion-cost {value} is no whole number and counts as 0",
    "devices-ignored": "no node is launched for pods with ResourceClaims (--ignore-dra-requests false)",
    "gate-off": "it does nothing: the feature gate {gate} is off (--feature-gates {gate}=true)",
    "mistyped-gate": "no feature gate has this name, so that nothing is switched by it. Is it {near}?",
    "not-rolled-out": "its running pods keep the template that they have: only Deployments are rolled out here",
    "other-scheduler": "the scheduler {scheduler} is not simulated: its pods are bound as kube-scheduler's are",
    "stands-twice": "it stands in these files twice; the last one counts",
    "unknown-gate": "no feature gate has this name, so that nothing is switched by it",
    "not-simulated": "ignored, for this is not simulated",
    v1beta1.KUBELET_ON_POOL: "its kubelet is not applied in a simulation: kerf convert puts it on its EC2NodeClass, "
    "where it counts",
}
"""Notes of a simulation; those of the conversion from v1beta1 have their sentences there."""


def note_sentence(note: Reason) -> str:
    """The note as a sentence. A code without one here is worded as in explanations."""
    template = SIMULATED.get(note.code) or v1beta1.NOTES.get(note.code) or mistyped.NOTES.get(note.code)
    if template is None:
        return sentence(note)
    values = {key: ", ".join(param) if isinstance(param, list) else param for key, param in note.params.items()}
    return template.format_map(values).rstrip()


def print_gate_notes(notes: Iterable[Reason]) -> None:
    """Print notes on feature gates to standard error, before anything begins."""
    for note in notes:
        print_error(f"KERF339: feature gate {note.params['gate']}: {note_sentence(note)}")
