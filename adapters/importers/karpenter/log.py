"""Karpenter's log as a history: all its lines read, put in order, and told (F-90…F-94)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from operator import attrgetter

from msgspec import structs

from kerf.adapters.importers import claim_steps as st
from kerf.adapters.importers.claim_lives import ClaimLives
from kerf.adapters.importers.history import History, Told
from kerf.adapters.importers.karpenter.lines import LogLine, log_line
from kerf.adapters.importers.karpenter.messages import steps_of
from kerf.adapters.importers.untrusted import json_text, text_of, whole_number
from kerf.adapters.importers.wrapped_lines import Line
from kerf.engine.model.missing_knowledge import Missing

SOURCE = "karpenter-log"
LACKS = (
    Missing.ACTORS, Missing.BEGINNING, Missing.BINDINGS, Missing.CATALOGUE, Missing.CAUSES, Missing.EVICTIONS,
    Missing.KEPT, Missing.PODS, Missing.POLICY, Missing.PRICES,
)  # fmt: skip
"""What the log does not tell, at any level (F-94)."""


_DROPPED = b""
"""Under what a history keeps the steps of no line: those that say what the logger left out."""


def read_log(lines: Iterable[Line]) -> History:
    """The history that the lines of a log tell."""
    history = History(SOURCE, LACKS)
    known = sorted(_lines(lines, history), key=attrgetter("at"))
    for line in known:
        told = steps_of(line)
        if told == ():
            history.not_read(line.number, "it names no NodeClaim or Node: are their names masked?", line.message)
        elif told is None or (digest := _digest(line)) in history.steps:
            history.other += 1
        else:
            history.read += 1
            history.steps[digest] = told
    history.steps[_DROPPED] = tuple(_dropped(known))
    _tell(history, [history])
    history.versions = tuple(dict.fromkeys(line.version for line in known if line.version))
    return history


def as_one_log(histories: Sequence[History]) -> list[History]:
    """The histories, in which the logs among them are told together: a claim's life goes on from one file to the next,
    and files may overlap. The first of them tells it, the others nothing more."""
    logs = [history for history in histories if history.steps]
    if len(logs) < 2:
        return list(histories)
    whole = History(SOURCE, LACKS)
    _tell(whole, logs)
    told: dict[int, list[Told]] = {id(log): [] for log in logs} | {id(logs[0]): whole.told}
    return [structs.replace(history, told=told.get(id(history), history.told)) for history in histories]


def _tell(history: History, logs: Sequence[History]) -> None:
    """Tells what the lines of all logs tell. A line that is in several of them counts once."""
    lines: dict[bytes, tuple[st.Step, ...]] = {}
    for number, log in enumerate(logs):
        for digest, told in log.steps.items():
            lines.setdefault(digest if digest != _DROPPED else b"%d" % number, told)
    steps = sorted(chain.from_iterable(lines.values()), key=attrgetter("at"))
    ClaimLives(history, steps).tell()
    history.told.sort(key=attrgetter("at"))


def _digest(line: LogLine) -> bytes:
    return blake2b(f"{line.at} {json_text(line.fields)}".encode(), digest_size=16).digest()


def _lines(lines: Iterable[Line], history: History) -> Iterator[LogLine]:
    for line in lines:
        found = log_line(line)
        if found is not None:
            yield found
        else:
            history.not_read(line.number, "it is no line of Karpenter's log", line.text)


def _dropped(lines: Iterable[LogLine]) -> list[st.Step]:
    """What the logger left out when lines came too fast: a plan says how many claims its run made (F-61)."""
    made = Counter(text_of(line.fields.get("reconcileID")) for line in lines if line.message == "created nodeclaim")
    found: list[st.Step] = []
    for line in lines:
        if line.message != "computed new nodeclaim(s) to fit pod(s)" or not line.text("reconcileID"):
            continue
        planned, logged = whole_number(line.fields.get("nodeclaims")), made[line.text("reconcileID")]
        if logged < planned:
            text = f"the log has {logged} of the {planned} NodeClaims of this plan: lines were dropped, or it ends here"
            found.append(st.Said(at=line.at, level="warning", text=text))
    return found
