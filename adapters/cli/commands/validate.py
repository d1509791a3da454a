"""`kerf validate`: what the API server and the controllers would say to manifests, without either."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

REFUSED = 1
"""The exit code when an object was refused."""


def validate(
    files: Annotated[list[str], Parameter(negative="", allow_leading_hyphen=True)],
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Check manifests: everything that is wrong, with a code, the field, and what to write instead.

    NodePools, NodeClaims, NodeOverlays, CapacityBuffers, EC2NodeClasses and
    KWOKNodeClasses are checked as the API server would (types, patterns, ranges,
    CEL rules, unknown fields), and then as the controllers would. Pods,
    workloads and all else that kerf reads are checked for what scheduling looks
    at. Other kinds are counted, and not checked, unless they are spelt nearly
    like one of these. v1beta1 is checked as the v1 that it becomes.

    Exit codes: 0 all accepted, 1 something was refused, 2 usage, or a file that
    cannot be read.

    For example:

        kerf validate nodepool.yaml
        kerf validate manifests/ --json
        kubectl get nodepools,ec2nodeclasses -o yaml | kerf validate -

    Parameters
    ----------
    files: list[str]
        YAML or JSON files, folders of them, or - for standard input.
    json
        Print the verdict on every object as JSON.
    """
    from kerf.adapters.cli.input.validation import check_manifests, count_verdicts
    from kerf.adapters.cli.render.manifests import verdicts_text
    from kerf.adapters.cli.render.output import Printer, emit_json

    checked = check_manifests(files)
    if json:
        emit_json({"objects": checked, **count_verdicts(checked)})
    else:
        verdicts_text(Printer(), checked)
    return REFUSED if any(each.verdict == "refused" for each in checked) else 0
