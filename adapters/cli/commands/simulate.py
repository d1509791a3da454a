"""`kerf simulate`: the whole controller on any manifests, against a virtual cluster and cloud in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

REFUSED, INTERRUPTED = 1, 130
"""The exit codes when a document or an action was refused, and when Ctrl-C ended the simulation."""


def simulate(
    *files: Annotated[Path, Parameter(required=True)],
    until: Annotated[str | None, Parameter(help="Virtual time at which to stop, such as 90m or 2d.")] = None,
    start: Annotated[
        str | None,
        Parameter(
            help="Virtual time at which to begin, such as 2026-03-02T08:00:00Z.", show_default="2026-01-01T00:00:00Z"
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="What is left to chance (names, delays) follows from it.")] = 0,
    record: Annotated[Path | None, Parameter(help="Keep the record in this file.")] = None,
    feature_gates: Annotated[str, Parameter(help="Such as NodeOverlay=true,CapacityBuffer=true.")] = "",
    scheduler_config: Annotated[Path | None, Parameter(help="The cluster's default topology spread.")] = None,
    nominate: Annotated[
        bool, Parameter(help="Write planned nodes' names into pending pods (KEP-5278), as kerf run does.")
    ] = True,
    quiet: Annotated[bool, Parameter(help="No story: only the summary.", negative="")] = False,
    json: Annotated[bool, Parameter(help="No story: one JSON object at the end.", negative="")] = False,
) -> int:
    """Run kerf on your manifests: what would it launch, when, for how much, and why not?

    NodePools, EC2NodeClasses, Deployments and all the rest are applied to a
    virtual cluster with a virtual cloud that sells EC2's instance types at list
    prices. A document of `kind: Timeline` says what happens later; see
    docs/simulate.md. Virtual time takes no time. The same files and seed give the
    same record, to the byte. Without --until it ends two hours after the last
    action.

    A document that is bad is refused with a coded error, and the others go on.
    Ctrl-C ends it early, with a summary and a whole record.
    Exit codes: 0 done, 1 something was refused, 2 usage, 130 ended by Ctrl-C.

    For example:

        kerf simulate docs/examples/simulations/morning.yaml
        kerf simulate nodepool.yaml app.yaml --until 48h --record my.kerf
        helm template app | kerf simulate nodepool.yaml -

    Parameters
    ----------
    files
        YAML or JSON files, folders of them, or - for standard input.
    """
    from kerf.adapters.cli.input.documents import read_documents
    from kerf.adapters.cli.render.lines import print_error, print_text
    from kerf.adapters.cli.render.output import emit_json_line
    from kerf.adapters.cli.render.simulation.report import describe
    from kerf.adapters.cli.simulate.flags import simulated_time, simulation_settings, start_time
    from kerf.adapters.cli.simulate.new_record import new_record
    from kerf.adapters.cli.simulate.runtime import SIMULATE_HOLDER
    from kerf.adapters.cli.simulate.simulation_run import AFTERWARDS, SimulationRun, last_action
    from kerf.adapters.simulation.build import START
    from kerf.engine.model.feature_gates import unknown_gates

    end = 0 if until is None else simulated_time(until)
    begin = START if start is None else start_time(start)
    settings = simulation_settings(feature_gates, scheduler_config, nominate=nominate)
    documents = read_documents(files).named()
    if not documents.good and not documents.refused:
        print_error(f"KERF331: there is no document [{', '.join(map(str, files))}]. Give YAML or JSON")
        return REFUSED
    last = end or last_action(documents.good) + AFTERWARDS
    with new_record(record, SIMULATE_HOLDER, say=print_error) as new:
        run = SimulationRun(documents, new.store, start=begin, seed=seed, quiet=quiet or json, settings=settings)
        new.kept = run.accepted
        for note in unknown_gates(feature_gates):
            run.fold.note(f"feature gate {note.params['gate']}", note)
        if not run.accepted and not json:
            for refused in run.simulation.refused:
                where = " ".join(filter(None, dict.fromkeys((refused.object, refused.field))))
                print_error(f"{refused.code}: {refused.message} [{where}]")
            print_error("Nothing is simulated: no document was accepted")
            return REFUSED
        run.go(last if run.accepted else 0)
        report = run.report(record if new.kept else None)
    if json:
        emit_json_line(report)
    else:
        print_text("\n".join(describe(report)))
    if report.interrupted:
        return INTERRUPTED
    return REFUSED if report.refused else 0
