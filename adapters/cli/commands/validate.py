"""`kerf validate`: what the API server and the controllers would say to manifests, without either."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

REFUSED = 1
"""The exit code when an object was refused, or, with --strict, noted."""


def validate(
    *files: Annotated[str, Parameter(required=True)],
    strict: Annotated[bool, Parameter(negative="")] = False,
    kubernetes_version: str = "",
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Check manifests: everything that is wrong, with a code, the field, and what to write instead.

    NodePools, NodeClaims, NodeOverlays, CapacityBuffers, EC2NodeClasses and
    KWOKNodeClasses are checked as the API server would (types, patterns, ranges,
    CEL rules, unknown fields), and then as the controllers would. Pods,
    Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, PodDisruptionBudgets,
    claims and all else of Kubernetes that kerf reads are checked by the schemas
    that Kubernetes publishes, and by rules that these do not hold: selectors that
    miss their template, requests above limits, operators that a version lacks.
    Timelines are checked with what they apply. Other kinds are counted, and not
    checked, unless they are spelt nearly like one of these. v1beta1 is checked as
    the v1 that it becomes.

    Notes tell what is legal and probably wrong: mistyped values, a nodeClassRef
    that leads nowhere, requirements that leave no instance type, tolerations of a
    taint that no NodePool has.

    Exit codes: 0 all accepted, 1 something was refused (with --strict: or noted),
    2 usage, or a file that cannot be read.

    For example:

        kerf validate nodepool.yaml
        kerf validate manifests/ --strict --kubernetes-version 1.34
        kerf validate manifests/ --json
        kubectl get nodepools,ec2nodeclasses -o yaml | kerf validate -

    Parameters
    ----------
    files
        YAML or JSON files, folders of them, or - for standard input.
    strict
        Fail on notes, too.
    kubernetes_version
        The version of Kubernetes that counts, such as 1.34; the newest that kerf knows without it.
    json
        Print the verdict on every object as JSON.
    """
    from kerf.adapters.cli.input.validation import check_manifests, count_verdicts
    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.cli.render.manifests import verdicts_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.kubernetes.published_schemas import published_schemas

    checked = check_manifests(files, kubernetes=kubernetes_version)
    if published_schemas(kubernetes_version).version > (known := published_schemas().version):
        newest = ".".join(map(str, known))
        print_error(f"kerf knows Kubernetes up to {newest}: the schemas of {newest} count, not of {kubernetes_version}")
    if json:
        emit_json({"objects": checked, **count_verdicts(checked)})
    else:
        verdicts_text(Printer(), checked)
    failed = any(found.verdict == "refused" or (strict and found.notes) for found in checked)
    return REFUSED if failed else 0
