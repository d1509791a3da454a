"""`kerf check`: does a record, or a simulation, hold what a policy asserts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Json, Markdown


def check(
    policy: Path,
    /,
    *records: Annotated[str, Parameter(required=True)],
    until: str | None = None,
    record: Path | None = None,
    junit: Path | None = None,
    markdown: Markdown = False,
    json: Json = False,
) -> int:
    """Hold records, or a simulation of your manifests, against a policy.

    A policy is a list of assertions: which pods are never evicted, what an hour may
    cost, how long pods may wait for a node, and more (docs/check.md). Each breach
    says what, when and about which objects, and which kerf command explains it.

    Exit codes: 0 all hold, 1 one is broken, 2 none is, but a record does not tell
    what one asks.

    For example:

        kerf check policy.yaml record.kerf incident.kerfb golden/five-pods
        kerf check policy.yaml nodepools.yaml app.yaml timeline.yaml
        kerf check policy.yaml record.kerf --junit check.xml

    Parameters
    ----------
    policy
        A YAML file with the assertions.
    records
        Records, as for any command; or files and folders of manifests with a Timeline, which are simulated together.
    until
        Virtual time at which the simulation stops, such as 90m or 48h.
    record
        Keep the simulation's record in this file.
    junit
        Write the results to this file, as JUnit's XML.
    markdown
        Print Markdown, for a comment on a pull request.
    json
        Print JSON.
    """
    from kerf.adapters.cli.boundary import reader_may_leave
    from kerf.adapters.cli.checking.policy_file import policy_of
    from kerf.adapters.cli.checking.subjects import store_of, subjects
    from kerf.adapters.cli.records import has_pseudonyms
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.markdown.policy import markdown_of
    from kerf.adapters.cli.render.output import Printer, emit_json, one_form
    from kerf.adapters.cli.render.policies.junit import junit_of
    from kerf.adapters.cli.render.policies.text import policy_text
    from kerf.adapters.cli.render.progress import progress_line
    from kerf.adapters.store.files.private_files import write_whole
    from kerf.projections.json_times import with_times
    from kerf.replay.policies.check import hold_against
    from kerf.replay.policies.outcomes import PolicyReport

    one_form(json=json, markdown=markdown)
    assertions = policy_of(policy)
    held = []
    for subject in subjects(records, until, record):
        with store_of(subject) as store, progress_line("read up to position") as progress:
            held.append(hold_against(store, assertions, subject.name, progress, pseudonyms=has_pseudonyms(store)))
    report = PolicyReport(policy=str(policy), records=tuple(held))
    if junit is not None:
        write_whole(junit, junit_of(report), replace=True)
    with reader_may_leave():
        if json:
            emit_json(with_times(report))
        elif markdown:
            print_text(markdown_of(report))
        else:
            policy_text(Printer(), report)
    return report.exit_code
