"""`kerf explain`: why anything that has a name is as it is, or why a decision was made."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.completion import candidates
from kerf.adapters.cli.parameters import AsOf, Json, Record

_Name = Annotated[
    str,
    Parameter(
        help="A pod, workload, node, NodeClaim, NodePool, NodeClass, PodDisruptionBudget or instance id, alone or "
        "with its kind before it, as kubectl takes it: web-1, default/web-1, deploy/web, node/ip-10-0-1-2, "
        "np/default, ec2nodeclass/default, pdb/web; or decision/POSITION.",
        completer=candidates.subjects,
    ),
]
_Rest = Annotated[
    str,
    Parameter(help="The name, where its kind stands before it as a word of its own.", completer=candidates.named),
]


def explain(record: Record, name: _Name, rest: _Rest = "", /, *, at: AsOf = "end", json: Json = False) -> None:
    """Explain why anything that has a name is as it is, or a decision.

    For example:

        kerf explain record.kerf default/web-1
        kerf explain record.kerf deploy/web
        kerf explain record.kerf node ip-10-0-1-2 --at 10:00
        kerf explain record.kerf nodepool/default
        kerf explain record.kerf ec2nodeclass/default
        kerf explain record.kerf pdb/default/web
        kerf explain record.kerf i-0123456789abcdef0
        kerf explain record.kerf decision 1234 --json

    Parameters
    ----------
    json
        Print JSON: structs with coded reasons.
    """
    from kerf.adapters.cli.named_record import named_record
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.explain.explanation import explanation_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.projections.json_times import with_times
    from kerf.replay.explain.subject import explain as explain_subject
    from kerf.replay.subject_names import with_kind

    with opened(record) as store:
        moment = located(store, at)
        explanation = explain_subject(
            store, with_kind(name, rest, "explain"), moment.position, moment.at, named_record(store, moment.position)
        )
    if json:
        emit_json(with_times(explanation))
    else:
        explanation_text(Printer(), explanation)
