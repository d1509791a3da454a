"""`kerf convert`: v1beta1 manifests as v1."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

REFUSED = 1
"""The exit code when a document was refused."""


def convert(
    *files: Annotated[str, Parameter(required=True)],
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Write v1beta1 NodePools and EC2NodeClasses as v1, as Karpenter 1.0's own conversion did.

    All documents go to standard output, those of other kinds and versions
    unchanged, so that the output can replace the files; comments are lost. Notes
    on a conversion, and what was refused, go to standard error. Nothing of a
    refused document is written.

    Two things are done otherwise. Consolidation that v1beta1 switched off
    (consolidateAfter Never with WhenUnderutilized) stays off. The kubelet of a
    NodePool goes to its EC2NodeClass, if that is in the files: Karpenter 1.0 left
    it in an annotation, which later versions ignore. NodePools of one class with
    different kubelets get classes of their own.

    Exit codes: 0 done, 1 something was refused, 2 usage, or a file that cannot
    be read.

    For example:

        kerf convert nodepool.yaml > nodepool-v1.yaml
        kerf convert old/ | kubectl apply -f -

    Parameters
    ----------
    files
        YAML or JSON files, folders of them, or - for standard input.
    json
        Write a List as JSON.
    """
    from kerf.adapters.cli.input.manifests import converted
    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.cli.render.manifests import print_yaml
    from kerf.adapters.cli.render.output import emit_json

    result = converted(files)
    for line in (*result.notes, *map(str, result.refused)):
        print_error(line)
    if json:
        emit_json({"apiVersion": "v1", "kind": "List", "items": result.documents})
    else:
        print_yaml(result.documents)
    return REFUSED if result.refused else 0
