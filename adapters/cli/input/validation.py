"""What `kerf validate` finds in manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import ec2_values
from kerf.adapters.aws.userdata.own_user_data import user_data_problem
from kerf.adapters.cli.input.across_objects import notes_across, pools_of
from kerf.adapters.cli.input.manifests import Placed, manifest_note_sentence, read_manifests
from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.adapters.manager.config_maps import is_settings, old_settings
from kerf.adapters.simulation.documents.jobs import OF_JOB, runs_for
from kerf.adapters.simulation.documents.parts import template_of
from kerf.adapters.simulation.timeline.timeline import Apply, Scheduled, decode_timeline, is_timeline
from kerf.engine.errors import InputError
from kerf.engine.model.crds.published import PublishedSchemas
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.labels import INSTANCE_TYPE, ZONE
from kerf.engine.model.manifests.decode import decode_object, subject_of
from kerf.engine.model.manifests.lists import items_of
from kerf.engine.model.manifests.validate import Verdict, judge
from kerf.engine.model.manifests.violations import ManifestError, Violation
from kerf.engine.model.mistyped import CLOSED, Known, near_value, values_given
from kerf.engine.model.reasons import Reason

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


def check_manifests(files: Sequence[str], *, kubernetes: str = "") -> list[Checked]:
    """One result for each object in the files, and for each document that is none.

    `kubernetes`: the version whose schemas are meant ("1.34"); "" is the newest. Raises `UnknownVersion` (KERF346).
    """
    published = published_schemas(kubernetes)
    placed, unreadable = read_manifests(files)
    documents = [manifest.document for manifest in placed]
    known = {**values_given(pools_of(documents)), **ec2_values()}
    across = notes_across(documents)
    checked: list[Checked] = []
    for number, manifest in enumerate(placed):
        if is_timeline(manifest.document):
            checked += _timeline(manifest, known, published)
            continue
        own = _judged(manifest.place, manifest.document, known, published, across.get(number, []))
        checked.append(_with_settings(own, manifest.document) if is_settings(manifest.document) else own)
    return checked + [_unreadable(item.error, item.item) for item in unreadable]


def _unreadable(error: InputError, item: str) -> Checked:
    wrong = Violation(error.code, "", error.message, error.hint)
    return Checked(error.where or item, item, "refused", (wrong,))


def violations_of(document: Mapping[str, Any], published: PublishedSchemas) -> Sequence[Violation]:
    """What `kerf validate` would refuse an object for, but for a kubelet that nothing can be launched with: the API
    server takes that, and the NodeClass is there as not ready."""
    found = (*judge(dict(document), CLOSED, published).violations, *_wrong_user_data(document))
    if document.get("kind") == "EC2NodeClass" and all(v.path.startswith("spec.kubelet") for v in found):
        return ()
    return found


def _with_settings(checked: Checked, document: Mapping[str, Any]) -> Checked:
    """The verdict on a ConfigMap of settings, with what each became (L-317 to L-324)."""
    old = old_settings(document)
    wrong = (*checked.violations, *old.violations)
    notes = ("Karpenter before 0.32 read it: kerf convert writes it as variables", *old.notes)
    return Checked(checked.place, checked.object, "refused" if wrong else "accepted", wrong, notes)


def _timeline(manifest: Placed, known: Known, published: PublishedSchemas) -> list[Checked]:
    """The verdict on a Timeline, and on each object that it applies."""
    actions, errors = decode_timeline(manifest.document)
    wrong = tuple(Violation(error.code, error.where, error.message, error.hint) for error in errors)
    name = subject_of(manifest.document, "Timeline")
    objects = [
        (f"{manifest.place} {scheduled.path}.object{place}", item)
        for scheduled in actions
        if isinstance(scheduled.action, Apply)
        for place, item in items_of(scheduled.action.object)
    ]
    applied = [
        _unreadable(item, place) if isinstance(item, InputError) else _judged(place, dict(item), known, published)
        for place, item in objects
    ]
    notes = tuple(note for scheduled in actions for note in _mistyped(scheduled, known))
    return [Checked(manifest.place, name, "refused" if wrong else "accepted", wrong, notes), *applied]


def _mistyped(scheduled: Scheduled, known: Known) -> Iterator[str]:
    """Notes on the instance type and the zone of an action. What is sold is only known to a simulation."""
    for field, attribute, key in (("instanceType", "instance_type", INSTANCE_TYPE), ("zone", "zone", ZONE)):
        value = getattr(scheduled.action, attribute, "")
        near = near_value(value, known.get(key, ())) if value else ""
        if near:
            params = {"path": f"{scheduled.path}.{field}", "key": key, "given": value, "near": near}
            yield manifest_note_sentence(Reason("mistyped-value", params))


def _judged(
    place: str, document: dict[str, Any], known: Known, published: PublishedSchemas, across: Iterable[str] = ()
) -> Checked:
    """The verdict on one object, with what kerf's own annotation says of it."""
    judgement = judge(document, known, published)
    notes = [*(manifest_note_sentence(note) for note in judgement.notes), *across]
    if judgement.old:
        notes.insert(0, _OLD[judgement.verdict])
    wrong = (*judgement.violations, *_wrong_lifetime(document), *_wrong_user_data(document))
    verdict = judgement.verdict if wrong == judgement.violations else "refused"
    return Checked(place, judgement.object, verdict, wrong, tuple(notes))


def _wrong_lifetime(document: dict[str, Any]) -> list[Violation]:
    """What is wrong with the annotation that says how long pods run in a simulation."""
    try:
        if document.get("kind") == "Pod":
            runs_for(document)
        elif document.get("kind") == "Job":
            runs_for(template_of(document), OF_JOB)
    except InputError as error:
        return [Violation(error.code, error.where, error.message, error.hint)]
    return []


def _wrong_user_data(document: Mapping[str, Any]) -> list[Violation]:
    """What is wrong with the user data of an EC2NodeClass, as far as the class can be read. The API server takes any,
    and the class is never ready (A-63)."""
    if document.get("kind") != "EC2NodeClass":
        return []
    try:
        node_class = decode_object(dict(document)).object
    except ManifestError:
        return []
    problem = user_data_problem(node_class) if isinstance(node_class, EC2NodeClass) else None
    return [problem] if problem is not None else []


def count_verdicts(checked: Iterable[Checked]) -> dict[Verdict, int]:
    """How many objects have each verdict."""
    verdicts: tuple[Verdict, ...] = ("accepted", "refused", "unchecked")
    all_verdicts = [manifest.verdict for manifest in checked]
    return {verdict: all_verdicts.count(verdict) for verdict in verdicts}
