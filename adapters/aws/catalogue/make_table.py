"""Writes `data/instance-types.json` from an answer of DescribeInstanceTypes.

    python -m kerf.adapters.aws.catalogue.make_table <answer.json> <as of> > adapters/aws/data/instance-types.json

The answer is a JSON list of EC2's entries, or an object whose values are such entries (docs/aws-tables.md).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kerf.adapters.aws.catalogue.facts import facts_of

WHAT = "EC2 instance types: the facts of DescribeInstanceTypes that rules A-137 to A-183 read"


def table(entries: Iterable[Mapping[str, Any]], as_of: str) -> bytes:
    """The table, one type a line, sorted by name."""
    kept = sorted((facts for entry in entries if (facts := facts_of(entry))), key=lambda facts: facts.name)
    lines = b",\n".join(msgspec.json.encode(facts) for facts in kept)
    return f'{{"what":{json.dumps(WHAT)},"as_of":{json.dumps(as_of)},"values":[\n'.encode() + lines + b"\n]}\n"


if __name__ == "__main__":
    answer = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    listed = answer.values() if isinstance(answer, dict) else answer
    sys.stdout.buffer.write(table(listed, sys.argv[2]))
