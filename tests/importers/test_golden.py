"""What each importer makes of its sample today is what its golden case holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.store.files.golden import GoldenStore
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import RecordStarted
from tests.support.imports.imported import imported
from tests.support.repository import ROOT

CASES = {
    "imported-audit-log": "audit.jsonl",
    "imported-karpenter-log": "karpenter-1.12.log",
    "imported-kubereplay": "kubereplay.json",
    "imported-lp4k": "lp4k-36.csv",
    "imported-simkube": "simkube-v2.sktrace",
}


@pytest.mark.parametrize("case", CASES)
def test_an_import_gives_what_its_golden_case_holds(tmp_path: Path, case: str) -> None:
    """To change a case on purpose: import its sample, and write it anew with `kerf bundle golden`."""
    with imported(tmp_path, CASES[case]) as (_, store):
        made = [entry for entry in store.scan() if not _names_the_engine(entry)]
    golden = GoldenStore(ROOT / "tests" / "golden" / case)
    assert made == [entry for entry in golden.scan() if not _names_the_engine(entry)]


def _names_the_engine(entry: Entry) -> bool:
    return isinstance(entry.payload, RecordStarted)
