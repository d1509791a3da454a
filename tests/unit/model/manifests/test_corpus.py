"""The offline check gives each case of the corpus the verdict that the specification demands."""

import msgspec
import pytest

from kerf.engine.model.crds.definitions import admit
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.violations import CODES, ManifestError, Report
from tests.support.manifests.corpus import CASES, Case


def test_the_corpus_is_a_few_hundred_cases_of_both_kinds() -> None:
    assert len(CASES) == len({case.name for case in CASES})
    assert sum(case.accepted for case in CASES) > 150
    assert sum(not case.accepted for case in CASES) > 250


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_verdicts(case: Case) -> None:
    report = Report()
    admit(msgspec.json.decode(msgspec.json.encode(case.document)), report)
    assert (not report.violations) == case.accepted, report.violations
    assert all(violation.code in CODES and violation.path and violation.message for violation in report.violations)


LENIENT = ("unknown ", "name ", "metadata ")
"""Of decoding: a cluster drops unknown fields, and its objects have names, and metadata that was admitted."""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_decoding_refuses_what_is_not_admitted(case: Case) -> None:
    """All but what a cluster may hold. A NodeClaim is adopted with its node, under whatever rules it was made."""
    report = Report()
    admit(msgspec.json.decode(msgspec.json.encode(case.document)), report, strict=False)
    if case.accepted or not report.violations or case.name.startswith(LENIENT):
        return
    if case.document["kind"] == "NodeClaim":
        return
    with pytest.raises(ManifestError):
        decode_object(case.document)
