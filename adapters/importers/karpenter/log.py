"""Karpenter's log as a history: all its lines read, put in order, and told (F-90…F-94)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter

from kerf.adapters.importers import claim_steps as st
from kerf.adapters.importers.claim_lives import ClaimLives
from kerf.adapters.importers.history import History
from kerf.adapters.importers.karpenter.lines import LogLine, log_line
from kerf.adapters.importers.karpenter.messages import steps_of
from kerf.adapters.importers.untrusted import text_of, whole_number
from kerf.adapters.importers.wrapped_lines import Line
from kerf.engine.model.missing_knowledge import Missing

SOURCE = "karpenter-log"
LACKS = (
    Missing.ACTORS, Missing.BEGINNING, Missing.BINDINGS, Missing.CATALOGUE, Missing.CAUSES, Missing.EVICTIONS,
    Missing.KEPT, Missing.PODS, Missing.POLICY, Missing.PRICES,
)  # fmt: skip
"""What the log does not tell, at any level (F-94)."""


def read_log(lines: Iterable[Line]) -> History:
    """The history that the lines of a log tell."""
    history = History(SOURCE, LACKS)
    known = sorted(_lines(lines, history), key=attrgetter("at"))
    steps: list[st.Step] = []
    for line in known:
        told = steps_of(line)
        if told == ():
            history.not_read(line.number, "it names no NodeClaim or Node: are their names masked?", line.message)
        elif told is None:
            history.other += 1
        else:
            history.read += 1
            steps += told
    ClaimLives(history, [*steps, *_dropped(known)]).tell()
    history.told.sort(key=attrgetter("at"))
    history.versions = tuple(dict.fromkeys(line.version for line in known if line.version))
    return history


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
