"""Validates documents offline: reports what the API server and the controllers would refuse."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from kerf.engine.model.crds.check import check
from kerf.engine.model.crds.definitions import KINDS as CUSTOM
from kerf.engine.model.crds.definitions import admit
from kerf.engine.model.crds.ec2_tags import tag_problems
from kerf.engine.model.crds.kubelet import kubelet_problem
from kerf.engine.model.crds.published import PublishedSchemas
from kerf.engine.model.crds.schema import Schema
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepool_validation import KNOWN_VALUES, contradictions, is_label_value, qualified
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.labels import normalise
from kerf.engine.model.manifests.decode import KINDS, decode_object, generates_name, near_kinds, subject_of
from kerf.engine.model.manifests.karpenter.nodepools import BAD_BUDGET
from kerf.engine.model.manifests.rules.workloads import check_workload
from kerf.engine.model.manifests.violations import ManifestError, Report, Violation
from kerf.engine.model.mistyped import CLOSED, Known, mistyped, near_value, protects_nothing
from kerf.engine.model.reasons import Reason

Document = dict[str, Any]
Verdict = Literal["accepted", "refused", "unchecked"]

_GENERATED_FROM = 58
"""So many characters of generateName the API server keeps; it adds five."""
_GROUPS = frozenset(kind.group for kind in CUSTOM)


class Judgement(Struct, frozen=True, omit_defaults=True):
    """The verdict on one object. `object` is "Kind/name" or "Kind/namespace/name".

    A kind that does not concern kerf is "unchecked".
    """

    object: str
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    notes: tuple[Reason, ...] = ()
    old: bool = False
    """The document is of an old version that `v1_of` converts."""


class Converted(Struct, frozen=True):
    document: Document
    notes: tuple[Reason, ...]
    changed: bool


def judge(document: Document, known: Known = CLOSED, published: PublishedSchemas | None = None) -> Judgement:
    """Returns the verdict on one object, with everything that is wrong. Unknown fields are wrong, as they are for
    kubectl.

    Notes what may be mistyped, by comparing label values with `known`. With the `published` schemas, kinds of
    Kubernetes are checked field by field, too, for their version.
    """
    name = _name_of(document)
    kind = KINDS.get(name)
    schema = published.schema(name) if published is not None else None
    if kind is None and schema is None and not _ours(document):
        if not document.get("kind"):
            missing = Violation("KERF302", "kind", "kind is missing", "Say what it is, such as kind: NodePool")
            return Judgement(subject_of(document, ""), "refused", (missing,))
        if not _misspelt(name):
            return Judgement(subject_of(document, name), "unchecked")
    subject = subject_of(document, name)
    moved = kind.moved if kind is not None else {}
    if generates_name(document):
        document, moved = _completed(document), {**moved, "metadata.name": "metadata.generateName"}
    report = Report(moved=moved)
    notes: tuple[Reason, ...] = ()
    plain = _plain(document)
    if published is not None and schema is not None and plain is not None:
        # First, because its hints know the kind's fields; what decoding says of the same field is left out.
        _check_published(schema, plain, published, report)
    if kind is None and schema is not None:
        return Judgement(subject, _verdict(report), tuple(report.violations), tuple(protects_nothing(document)))
    try:
        decoded = decode_object(_without_status(document) if _ours(document) else document)
        typos = (*mistyped(decoded.object, decoded.blobs.values(), known), *protects_nothing(document))
        said = (*decoded.notes, *typos)
        notes = tuple(note for note in said if not _wrong(note, report))
        if isinstance(decoded.object, NodePool):
            _unusable(decoded.object, report)
            notes = tuple(note for note in notes if not _told(note, report))
    except ManifestError as error:
        for violation in error.violations:
            report.add(violation.code, violation.path, violation.message, violation.hint)
    if kind is not None and plain is not None:
        converted = kind.convert(plain, Report()) if kind.convert is not None else plain
        admit(converted, report)
        _check_kubelet(converted, report)
        _check_tags(converted, report)
    old = kind is not None and kind.convert is not None
    return Judgement(subject, _verdict(report), tuple(report.violations), notes, old)


def _without_status(document: Document) -> Document:
    """Returns what the API server checks of a document: it drops a status. That of its own kinds it reads before."""
    return {key: value for key, value in document.items() if key != "status"}


def _completed(document: Document) -> Document:
    """Returns a document with a name as the API server makes of its generateName."""
    made = generates_name(document)[:_GENERATED_FROM] + "00000"
    return {**document, "metadata": {**document["metadata"], "name": made}}


def _verdict(report: Report) -> Verdict:
    return "refused" if report.violations else "accepted"


def _check_published(schema: Schema, document: Document, published: PublishedSchemas, report: Report) -> None:
    """Report what the API server of that version would refuse."""
    check(schema, _without_status(document), report, strict=True)
    check_workload(document, published.version, report)


def _wrong(note: Reason, report: Report) -> bool:
    """Reports a note as a violation if the controllers cannot use what it is about, and returns whether it did (D-18).

    A nodeClassRef of an unknown kind is a violation if it is clear which kind is meant.
    """
    if note.code == "mistyped-node-class":
        message = f"{note.params['given']} is no kind of NodeClass that kerf knows"
        report.add("KERF305", str(note.params["path"]), message, f"Is it {note.params['near']}?")
        return True
    if note.code != BAD_BUDGET:
        return False
    message = f"{note.params['error']}; until it can be read, no node of the NodePool goes by choice"
    path = f"spec.disruption.budgets[{note.params['budget']}].schedule"
    report.add("KERF314", path, message, str(note.params["hint"]))
    return True


def _check_kubelet(document: Document, report: Report) -> None:
    """Report a kubelet with which the controller launches nothing (A-50 to A-52). The API server takes any (A-35)."""
    spec = document.get("spec")
    if document.get("kind") != "EC2NodeClass" or not isinstance(spec, dict):
        return
    kubelet = spec.get("kubelet")
    if not isinstance(kubelet, dict):
        return
    try:
        node_class = decode_object({**document, "spec": {**spec, "kubelet": {}}}).object
    except ManifestError:
        node_class = None  # refused for its other fields: which family it is of is not known
    family = node_class.ami_family if isinstance(node_class, EC2NodeClass) else "Custom"
    problem = kubelet_problem(kubelet, family)
    for violation in problem.violations if problem is not None else ():
        report.add(violation.code, violation.path, violation.message, violation.hint)


def _check_tags(document: Document, report: Report) -> None:
    """Report tags with which EC2 refuses every launch. The API server takes them."""
    spec = document.get("spec")
    if document.get("kind") != "EC2NodeClass" or not isinstance(spec, dict):
        return
    tags = spec.get("tags")
    if not isinstance(tags, dict) or not all(isinstance(text, str) for text in (*tags, *tags.values())):
        return
    for violation in tag_problems(tags, with_profile="role" in spec):
        report.add(violation.code, violation.path, violation.message, violation.hint)


def _unusable(pool: NodePool, report: Report) -> None:
    """Report keys and requirements that pass admission, and with which the NodePool is never ready (L-34, L-36 to
    L-39)."""
    template = "spec.template.spec"
    keys = [(f"spec.template.metadata.labels[{key}]", key) for key in pool.labels]
    for name, taints in (("taints", pool.taints), ("startupTaints", pool.startup_taints)):
        keys += [(f"{template}.{name}[{index}].key", taint.key) for index, taint in enumerate(taints)]
    keys += [(f"{template}.requirements[{index}].key", found.key) for index, found in enumerate(pool.requirements)]
    for path, key in keys:
        if not qualified(key):
            report.add("KERF312", path, f"{key!r} is not a label key", _NAMES)
    for index, requirement in enumerate(pool.requirements):
        path = f"{template}.requirements[{index}]"
        for at, value in enumerate(requirement.values):
            if not is_label_value(value):
                report.add("KERF312", f"{path}.values[{at}]", f"{value!r} is not a label value", _NAMES)
        if requirement.operator == "In" and requirement.values:
            _check_known(requirement, f"{path}.values", report)
    asked = [(f"spec.template.metadata.labels[{key}]", key) for key in pool.labels]
    asked += [(f"{template}.requirements[{index}]", found.key) for index, found in enumerate(pool.requirements)]
    for key, message in contradictions(pool).items():
        *_, path = (path for path, named in asked if normalise(named) == key)
        report.add("KERF312", path, message, "Nothing is launched for such a NodePool")


_NAMES = "Write at most 63 letters, digits, - _ and . that begin and end with a letter or digit"


def _check_known(requirement: RequirementSpec, path: str, report: Report) -> None:
    """Report a requirement `In` of a label with a closed list of which too few values are known: none, or fewer than
    minValues (L-39, L-510)."""
    values = KNOWN_VALUES.get(normalise(requirement.key), frozenset(requirement.values))
    known = [value for value in requirement.values if value in values]
    near = [found for value in requirement.values if (found := near_value(value, values))]
    hint = f"Is it {near[0]}?" if near else ""
    if not known:
        told = f"only {', '.join(sorted(values))} are known of {requirement.key}"
        report.add("KERF305", path, f"{', '.join(requirement.values)}: {told}", hint)
    elif len(known) < min(requirement.min_values or 0, len(requirement.values)):
        message = f"minValues asks for {requirement.min_values} values, and known of these is only {', '.join(known)}"
        report.add("KERF313", path, message, hint)


def _told(note: Reason, report: Report) -> bool:
    """Returns whether a violation already reports the note's field."""
    return any(violation.path == note.params.get("path") for violation in report.violations)


def v1_of(document: Document) -> Converted:
    """Returns the v1 document of a v1beta1 one, and any other document unchanged.

    Raises `ManifestError` if it cannot be converted, or would be refused as v1.
    """
    name = _name_of(document)
    kind, plain = KINDS.get(name), _plain(document)
    if kind is None and not _ours(document):
        return Converted(document if plain is None else plain, (), changed=False)
    if kind is None or plain is None:
        decode_object(document)  # raises, and says what there is instead
    assert kind is not None
    assert plain is not None
    if kind.convert is None:
        return Converted(plain, (), changed=False)
    found = judge(document)
    if found.violations:
        raise ManifestError(found.object, found.violations)
    report = Report(moved=kind.moved)
    converted = kind.convert(plain, report)
    metadata = {key: part for key, part in converted["metadata"].items() if part not in ({}, None)}
    return Converted(converted | {"metadata": metadata}, tuple(report.notes), changed=True)


def _ours(document: Document) -> bool:
    """Returns whether only kerf could know a kind of this group; also for a document without an apiVersion."""
    version = document.get("apiVersion")
    return not isinstance(version, str) or not version or version.partition("/")[0] in _GROUPS


def _misspelt(name: str) -> bool:
    """Returns whether an unknown kind of Kubernetes is spelt like a known one.

    Other projects' groups have a dot, and may have a kind Service of their own.
    """
    group = name.rpartition("/")[0].rpartition("/")[0]
    return "." not in group and bool(near_kinds(name))


def _name_of(document: Document) -> str:
    return f"{document.get('apiVersion')}/{document.get('kind')}"


def _plain(document: Document) -> Document | None:
    """Returns a value as JSON would hold it: texts as keys, RFC 3339 times. None if JSON cannot hold it; decoding
    refuses that.
    """
    try:
        plain: Document = msgspec.json.decode(msgspec.json.encode(document))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return plain
