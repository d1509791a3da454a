"""`kerf convert`: v1beta1 manifests as v1."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import yaml
from cyclopts import Parameter

from kerf.adapters.cli.input.manifests import read_manifests, told
from kerf.adapters.cli.render.output import emit_json
from kerf.engine.errors import KerfError
from kerf.engine.model.manifests.validate import v1_of
from kerf.engine.model.manifests.violations import ManifestError

REFUSED = 1


class _Dumper(yaml.SafeDumper):
    """Nothing is written as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def convert(
    files: Annotated[list[str], Parameter(negative="", allow_leading_hyphen=True)],
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Write v1beta1 NodePools and EC2NodeClasses as v1, as Karpenter 1.0's own conversion did.

    All documents go to standard output, those of other kinds and versions unchanged, so that the output replaces the
    files; comments are lost. What its author should know of a conversion, and what was refused, goes to standard error.
    Nothing of a refused document is written.

    One thing is done otherwise: consolidation that v1beta1 switched off (consolidateAfter Never with WhenUnderutilized)
    stays off.

    Exit codes: 0 done, 1 something was refused, 2 usage, or a file that cannot be read.

    Examples: `kerf convert nodepool.yaml > nodepool-v1.yaml`, `kerf convert old/ | kubectl apply -f -`

    Parameters
    ----------
    files: list[str]
        YAML or JSON files, folders of them, or - for standard input.
    json
        Write a List as JSON.
    """
    placed, unreadable = read_manifests(files)
    refused: list[KerfError] = [item.error for item in unreadable]
    documents = []
    for each in placed:
        try:
            converted = v1_of(each.document)
        except ManifestError as error:
            refused.append(ManifestError(error.object, error.violations, source=each.place))
            continue
        documents.append(converted.document)
        for note in converted.notes:
            print(f"{each.place}: {told(note)}", file=sys.stderr)
    for wrong in refused:
        print(wrong, file=sys.stderr)
    if json:
        emit_json({"apiVersion": "v1", "kind": "List", "items": documents})
    else:
        yaml.dump_all(documents, sys.stdout, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return REFUSED if refused else 0
