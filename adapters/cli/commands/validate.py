"""`kerf validate`: what the API server and the controllers would say to manifests, without either."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import ec2_values
from kerf.adapters.cli.input.manifests import read_manifests, told
from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.adapters.cli.render.text import counted
from kerf.engine.model.manifests.validate import Judgement, Verdict, judge
from kerf.engine.model.manifests.violations import Violation

REFUSED = 1
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


def validate(
    files: Annotated[list[str], Parameter(negative="", allow_leading_hyphen=True)],
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Check manifests: everything that is wrong, with a code, the field, and what to write instead.

    NodePools, NodeClaims, NodeOverlays, CapacityBuffers, EC2NodeClasses and KWOKNodeClasses are checked as the API
    server would (types, patterns, ranges, CEL rules, unknown fields), and then as the controllers would. Pods,
    workloads and all else that kerf reads are checked for what scheduling looks at. Other kinds are counted, and not
    checked, unless they are spelt nearly like one of these. v1beta1 is checked as the v1 that it becomes.

    Exit codes: 0 all accepted, 1 something was refused, 2 usage, or a file that cannot be read.

    Examples: `kerf validate nodepool.yaml`, `kerf validate manifests/ --json`,
    `kubectl get nodepools,ec2nodeclasses -o yaml | kerf validate -`

    Parameters
    ----------
    files: list[str]
        YAML or JSON files, folders of them, or - for standard input.
    json
        Print the verdict on every object as JSON.
    """
    checked = _check(files)
    if json:
        emit_json({"objects": checked, **_count(checked)})
    else:
        _tell(checked)
    return REFUSED if any(each.verdict == "refused" for each in checked) else 0


def _check(files: list[str]) -> list[Checked]:
    placed, unreadable = read_manifests(files)
    known = ec2_values()
    checked = [_checked(each.place, judge(each.document, known)) for each in placed]
    for item in unreadable:
        error = item.error
        wrong = Violation(error.code, "", error.message, error.hint)
        checked.append(Checked(error.where or item.item, item.item, "refused", (wrong,)))
    return checked


def _checked(place: str, found: Judgement) -> Checked:
    notes = [told(note) for note in found.notes]
    if found.old:
        notes.insert(0, _OLD[found.verdict])
    return Checked(place, found.object, found.verdict, found.violations, tuple(notes))


def _count(checked: list[Checked]) -> dict[str, Any]:
    return {
        verdict: sum(each.verdict == verdict for each in checked) for verdict in ("accepted", "refused", "unchecked")
    }


def _tell(checked: list[Checked]) -> None:
    out = Printer()
    for each in checked:
        if each.verdict == "unchecked":
            continue
        out.line(f"{each.place} {each.object}: {each.verdict}", "error" if each.verdict == "refused" else "good")
        for wrong in each.violations:
            where = f" {wrong.path}:" if wrong.path else ""
            hint = f". {wrong.hint}" if wrong.hint else ""
            out.indented().line(f"{wrong.code}{where} {wrong.message}{hint}")
        for note in each.notes:
            out.indented().line(f"note: {note}", "warning")
    count = _count(checked)
    others = f"; {count['unchecked']} of other kinds not checked" if count["unchecked"] else ""
    objects = counted(count["accepted"] + count["refused"], "object")
    out.line(f"{objects}: {count['accepted']} accepted, {count['refused']} refused{others}", "title")
