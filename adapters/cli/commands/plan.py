"""`kerf plan`: one provisioning decision per scenario, without a cluster and without a cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

EFFORT, MAX_STEPS = 100, 1_000_000
"""Those of `kerf.engine.model.settings.Settings`, which is not imported for a help page."""
NOMINATED = "Pods are told their nodes, as by kerf run on Kubernetes 1.35 and later (--no-nominate: they are not)."
REFUSED = 1
"""The exit code when a scenario could not be read."""


def plan(
    scenarios: Path,
    /,
    *,
    catalogues: Annotated[Path | None, Parameter(help="A file of named instance-type catalogues.")] = None,
    json: Annotated[bool, Parameter(help="One result per line, in the format of the scenarios.", negative="")] = False,
    trace: Annotated[bool, Parameter(help="With --json: what ruled out each instance type.", negative="")] = False,
    effort: Annotated[
        int, Parameter(validator=Number(gte=0), help="Search steps for a cheaper plan; 0: the first one.")
    ] = EFFORT,
    max_steps: Annotated[
        int, Parameter(validator=Number(gte=1), help="Attempts to place a pod, after which a plan ends.")
    ] = MAX_STEPS,
    nominate: Annotated[
        bool, Parameter(help="Plan as where kerf run tells pods their nodes (Kubernetes 1.35 and later).")
    ] = True,
) -> int:
    """Decide once for each scenario: which pods go where, and which nodes are launched for the rest.

    A scenario names pods, NodePools, nodes and instance types; docs/plan.md
    describes the format. A scenario that cannot be read gets a line with its
    error, and the others go on. Exit codes: 0 all were planned, 1 a scenario
    was refused, 2 usage or an unreadable file.

    For example:

        kerf plan docs/examples/plan/workshop.json
        kerf plan scenarios.jsonl --catalogues catalogues.json --json

    Parameters
    ----------
    scenarios: Path
        A JSON file of one scenario, of a list of them, or of one per line; - for standard input.
    """
    from kerf.adapters.cli.input.scenarios import named_catalogues, readable, scenarios_of
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.output import emit_json_line
    from kerf.adapters.cli.render.plan import describe
    from kerf.replay.scenarios.plan_scenarios import plan_scenario

    choices: dict[str, Any] = {"effort": effort, "max_steps": max_steps, "nominate": nominate}
    known = named_catalogues(catalogues)
    refused = planned = False
    for scenario in readable(scenarios, scenarios_of):
        result = plan_scenario(scenario, known, trace=trace, **choices)
        if not json and result["result"].get("errors"):  # people are told the nearest misses; it takes much longer
            result = plan_scenario(scenario, known, trace=True, **choices)
        refused, planned = refused or "error" in result["result"], planned or "error" not in result["result"]
        if json:
            emit_json_line(result)
        else:
            print_text("\n".join(describe(result)))
    if planned and nominate and not json:
        print_text(NOMINATED)
    return REFUSED if refused else 0
