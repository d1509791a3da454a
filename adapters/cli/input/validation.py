"""What `kerf validate` finds in manifests."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import ec2_values
from kerf.adapters.cli.input.manifests import manifest_note_sentence, read_manifests
from kerf.engine.model.manifests.validate import Judgement, Verdict, judge
from kerf.engine.model.manifests.violations import Violation

_OLD = {
    "accepted": "this is v1beta1: kerf convert writes it as v1",
    "refused": "this is v1beta1: it is checked as the v1 that it becomes",
}


class Checked(Struct, frozen=True):
    """One object, or one document that is none. `place` is "file:line"."""

    place: str
    object: str
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()


def check_manifests(files: list[str]) -> list[Checked]:
    """One result for each object in the files, and for each document that is none."""
    placed, unreadable = read_manifests(files)
    known = ec2_values()
    checked = [_checked(pod.place, judge(pod.document, known)) for pod in placed]
    for item in unreadable:
        error = item.error
        wrong = Violation(error.code, "", error.message, error.hint)
        checked.append(Checked(error.where or item.item, item.item, "refused", (wrong,)))
    return checked


def _checked(place: str, judgement: Judgement) -> Checked:
    notes = [manifest_note_sentence(note) for note in judgement.notes]
    if judgement.old:
        notes.insert(0, _OLD[judgement.verdict])
    return Checked(place, judgement.object, judgement.verdict, judgement.violations, tuple(notes))


def count_verdicts(checked: Iterable[Checked]) -> dict[Verdict, int]:
    """How many objects have each verdict."""
    verdicts: tuple[Verdict, ...] = ("accepted", "refused", "unchecked")
    all_verdicts = [each.verdict for each in checked]
    return {verdict: all_verdicts.count(verdict) for verdict in verdicts}
