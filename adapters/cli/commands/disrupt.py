"""`kerf disrupt`: which nodes could go, decided per cluster, without a cluster and without a cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

REFUSED = 1
"""The exit code when a scenario could not be read."""


def disrupt(
    scenarios: Path,
    /,
    *,
    catalogues: Annotated[Path | None, Parameter(help="A file of named instance-type catalogues.")] = None,
    json: Annotated[bool, Parameter(help="One result per line, in the format of the scenarios.", negative="")] = False,
) -> int:
    """Decide once for each cluster: which nodes go, what replaces them, and why the others stay.

    A scenario names nodes with their pods, NodePools and instance types;
    docs/disrupt.md describes the format. Printed are kerf's own moves, which
    may all be under way at once; with --json also what each of Karpenter's
    methods decides. Exit codes: 0 all were decided, 1 a scenario was refused,
    2 usage or an unreadable file.

    For example:

        kerf disrupt docs/examples/disrupt/scale-in.json
        kerf disrupt scenarios.jsonl --catalogues catalogues.json --json

    Parameters
    ----------
    scenarios: Path
        A JSON file of one scenario, or of many: one per line; - for standard input.
    """
    from kerf.adapters.cli.input.scenarios import named_catalogues, readable, scenarios_of
    from kerf.adapters.cli.render.disrupt import describe
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.output import emit_json_line
    from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario

    known = named_catalogues(catalogues)
    refused = False
    for scenario in readable(scenarios, scenarios_of):
        line = disrupt_scenario(scenario, known)
        refused = refused or "error" in line["result"]
        if json:
            emit_json_line(line)
        else:
            print_text("\n".join(describe(line)))
    return REFUSED if refused else 0
