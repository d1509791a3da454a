"""What each of the explorer's answers costs, in CPU time, without a browser and without a server.

    python -m benchmarks.explorer.answering [--entries 1000000 | --record FILE] [--each 12]

The questions are those of `benchmarks.ui`, at moments anywhere in the record, once all is read ahead. Beside the
figures stands a digest of all answers: a change that makes them sooner leaves it as it is. It prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from benchmarks.records.long_record import FOLDER, MILLION, record_of
from kerf.adapters.cli.garbage import look_rarely
from kerf.adapters.web import findings, questions
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.timeline import questions as timeline
from kerf.engine.errors import KerfError
from kerf.projections.json_times import with_times


class Answers:
    """What answers take, in CPU seconds, and a digest of all."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}
        self.digest = blake2b(digest_size=8)

    def ask(self, reader: RecordReader, question: Callable[..., Any], /, **parameters: Any) -> Any:
        began = time.process_time()
        found = question(reader, **parameters)
        body = msgspec.json.encode(found if question in timeline.PLAIN else with_times(found))
        self.taken.setdefault(question.__name__, []).append(time.process_time() - began)
        self.digest.update(body)
        return found


def read_ahead(reader: RecordReader) -> None:
    """Read all that the server reads while somebody looks."""
    reader.picture.whole()
    while not reader.near.advance(1.0):
        pass
    reader.begin_index()


def ask_each(reader: RecordReader, each: int) -> Answers:
    """Ask what the page asks, at moments anywhere in the record."""
    dice, found = random.Random(1), Answers()
    span = found.ask(reader, timeline.timeline)
    claim = timeline.tile(reader, span.coarsest, span.until >> span.coarsest).lanes[0].claim
    for _ in range(each):
        at, level = dice.randint(span.since, span.until), dice.randint(span.finest, span.coarsest)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000 + 1))
        for question, parameters in (
            (timeline.timeline, {}),
            (timeline.tile, {"level": level, "number": at >> level}),
            (timeline.fill, {"level": level, "number": at >> level}),
            (timeline.curves, {"since": span.since, "until": at + 1_000, "points": 600}),
            (timeline.step, {"at": at}),
            (questions.status, {"at": moment}),
            (questions.explain, {"name": f"nodeclaim/{claim}", "at": moment}),
            (questions.story, {"name": f"nodeclaim/{claim}", "at": moment}),
            (questions.log, {"since": at, "until": at + 300_000}),
            (findings.findings, {}),
        ):
            with suppress(KerfError):  # it was not there yet
                found.ask(reader, question, **parameters)
    return found


async def measure(reader: RecordReader, each: int) -> dict[str, Any]:
    began = time.process_time()
    await reader.ask(read_ahead)
    await reader.indexed()
    ahead = time.process_time() - began
    found = await reader.ask(partial(ask_each, each=each))
    every = sorted(one for each_route in found.taken.values() for one in each_route)
    return {
        "read ahead, s": round(ahead, 1),
        "p95 of all, ms": round(every[int(len(every) * 0.95)] * 1000, 1),
        "median and highest by question, ms": {
            name: [round(median(taken) * 1000, 1), round(max(taken) * 1000, 1)] for name, taken in found.taken.items()
        },
        "highest memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "digest of the answers": found.digest.hexdigest(),
        "machine": {"cpus": os.cpu_count(), "load": os.getloadavg()[0]},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=MILLION)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--each", type=int, default=12)
    given = parser.parse_args()
    look_rarely()
    with closing(RecordReader(str(given.record or record_of(given.entries, given.folder)))) as reader:
        print(json.dumps(asyncio.run(measure(reader, given.each)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
