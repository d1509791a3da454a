"""Where the large set of scenarios is: some hundreds, decided by Karpenter, too many for the repository.

It has scenarios.jsonl, results.jsonl, consolidation-scenarios.jsonl, consolidation-results.jsonl and catalogues.json,
in the form of docs/plan.md. It stands beside the clone; where it is absent, the tests that need it are skipped.
"""

from __future__ import annotations

from pathlib import Path

LARGE_SET = Path(__file__).resolve().parents[3] / "shared" / "conformance"
ABSENT = f"the large set of scenarios is not there ({LARGE_SET})"
