"""`kerf explain`: why a pod, node or NodeClaim is as it is, or why a decision was made."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Json, When
from kerf.engine.errors import InputError

_Kind = Annotated[
    str,
    Parameter(
        help="What to explain: pod, node, nodeclaim or decision; or that and the name in one, as in node/ip-10-0-1-2. "
        "Plurals and short names do as well, as with kubectl: nodes, no, po."
    ),
]
_LONGEST = 18
"""Digits of a position. Python refuses to read numbers of thousands of digits."""
_KINDS = ("pod", "node", "nodeclaim", "decision")


def explain(record: str, kind: _Kind, name: str = "", /, *, at: When = "end", json: Json = False) -> None:
    """Explain why a pod, node or NodeClaim is as it is, or a decision.

    For example:

        kerf explain record.kerf pod default/web-1
        kerf explain record.kerf node ip-10-0-1-2 --at +2h
        kerf explain record.kerf decision 1234 --json

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    name
        A pod's namespace/name, the name of a node or NodeClaim, or a decision's position.
    at
        As of a position or time (see kerf at).
    json
        Print JSON: structs with coded reasons.
    """
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.explain.claim import claim_text
    from kerf.adapters.cli.render.explain.decision import decision_text
    from kerf.adapters.cli.render.explain.pod import pod_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.replay.explain.claim import explain_claim, explain_node
    from kerf.replay.explain.decision import explain_decision
    from kerf.replay.explain.pod import explain_pod
    from kerf.replay.verify.decision_lines import decision_lines

    kind, name = _subject(kind, name)
    with opened(record) as store:
        position = None if at == "end" else located(store, at)
        printer = Printer()
        if kind == "pod":
            pod = explain_pod(store, name, position)
            emit_json(pod) if json else pod_text(printer, pod)
        elif kind == "decision":
            decision = explain_decision(store, _position(name))
            emit_json(decision) if json else decision_text(printer, decision, decision_lines(decision.result))
        else:
            claim = (explain_node if kind == "node" else explain_claim)(store, name, position)
            emit_json(claim) if json else claim_text(printer, claim)


def _subject(kind: str, name: str) -> tuple[str, str]:
    """Kind and name, given as two words or, as kubectl takes them, as one."""
    from kerf.replay.subject_names import kind_of

    word, _, rest = (kind, "", name) if name else kind.partition("/")
    known = kind_of(word)
    if known in _KINDS and rest:
        return known, rest
    said = f"{word!r} is nothing to explain" if known not in _KINDS else f"which {known} is not said"
    hint = "kerf explain RECORD pod NAMESPACE/NAME, or node NAME, nodeclaim NAME, decision POSITION"
    raise InputError(said, hint=hint, code="KERF200")


def _position(text: str) -> int:
    from kerf.replay.errors import PositionUnknown

    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST):
        raise PositionUnknown(f"{text[:40]!r} is not a position", hint="kerf log RECORD --all shows the positions")
    return int(text)
