"""The results of a policy as JUnit's XML: a suite for each record, a case for each assertion."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from kerf.adapters.cli.render.policies.text import result_lines
from kerf.projections.prose.printable import printable
from kerf.replay.policies.outcomes import BROKEN, UNKNOWN, PolicyReport, RecordResults, Result


def junit_of(report: PolicyReport) -> bytes:
    """The whole document. A broken assertion is a failure, one that the record does not tell an error."""
    suites = Xml.Element("testsuites", {"name": printable(report.policy), **_counts(report.records)})
    for record in report.records:
        suite = Xml.SubElement(suites, "testsuite", {"name": printable(record.record), **_counts((record,))})
        for result in record.results:
            _case(suite, record, result)
    Xml.indent(suites)
    document: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(suite: Xml.Element, record: RecordResults, result: Result) -> None:
    case = Xml.SubElement(suite, "testcase", classname=printable(record.record), name=printable(result.name))
    lines = [printable(line) for line in result_lines(result)]
    tag = {BROKEN: "failure", UNKNOWN: "error"}.get(result.outcome)
    if tag is not None:
        element = Xml.SubElement(case, tag, message=lines[0] if lines else result.outcome, type=result.assertion)
        element.text = "\n".join(lines)
    elif lines:
        Xml.SubElement(case, "system-out").text = "\n".join(lines)


def _counts(records: tuple[RecordResults, ...]) -> dict[str, str]:
    outcomes = [result.outcome for record in records for result in record.results]
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count(BROKEN)),
        "errors": str(outcomes.count(UNKNOWN)),
    }
