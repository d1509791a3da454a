"""The table that lp4k (LogParserForKarpenter) makes of Karpenter's log: one row a NodeClaim (F-98…F-109)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from kerf.adapters.importers import claim_steps as st
from kerf.adapters.importers.claim_lives import ClaimLives
from kerf.adapters.importers.history import History
from kerf.adapters.importers.untrusted import MAX_LINE, name_of, time_of
from kerf.engine.model.missing_knowledge import Missing

SOURCE = "lp4k"
LACKS = (
    Missing.ACTORS, Missing.BEGINNING, Missing.BINDINGS, Missing.CATALOGUE, Missing.CAUSES, Missing.EVICTIONS,
    Missing.KEPT, Missing.PODS, Missing.POLICY, Missing.PRICES,
)  # fmt: skip
"""What the table does not tell (F-109)."""
_INDEX = re.compile(r"[(\[]\d+[)\]]$")
_OTHERS = re.compile(r"and\d+others")
_AMOUNT = re.compile(r"\d{1,9}")
_SAVINGS = re.compile(r"-?\d{1,9}(\.\d{1,6})?")
_RANKS = (
    st.Created, st.Launched, st.Registered, st.Initialized, st.Decided, st.Interrupted, st.DeletionSeen, st.DrainBegan,
    st.NodeGone, st.ClaimGone,
)  # fmt: skip
"""In which order steps of one instant are told (F-4)."""
Row = dict[str, str]


def is_lp4k(data: bytes) -> bool:
    """Whether the first line is lp4k's, in any of its spellings (F-99)."""
    names = _names(data[:4096].split(b"\n", 1)[0].decode(errors="replace"))
    return names[0] == "nodeclaim" and "createdtime" in names


def read_table(data: bytes) -> History:
    """The history that the table tells."""
    history = History(SOURCE, LACKS)
    lines = data.decode(errors="replace").splitlines()
    names = _names(lines[0])
    rows: list[Row] = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(",") if len(line) <= MAX_LINE else []
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        if not line.strip():
            continue
        if len(cells) != len(names) or not name_of(row["nodeclaim"]) or time_of(row["createdtime"]) is None:
            history.not_read(number, f"it is no row of {len(names)} columns with a NodeClaim and its time", line)
            continue
        history.read += 1
        rows.append(row)
    runs = {row["nodeclaim"]: _run(row) for row in rows}
    steps = [step for row in rows for step in _steps(row, runs)] + [*_decisions(rows)]
    steps.sort(key=lambda step: (step.at, _RANKS.index(type(step)) if type(step) in _RANKS else len(_RANKS)))
    ClaimLives(history, steps).tell()
    return history


def _names(header: str) -> list[str]:
    return [_INDEX.sub("", name.strip()).lower() for name in header.split(",")]


def _steps(row: Row, runs: dict[str, str]) -> Iterator[st.Step]:
    claim, node = row["nodeclaim"], name_of(row.get("k8snodename"))
    provider = name_of(row.get("providerid"))
    types = tuple(filter(None, (name_of(name) for name in row.get("instancetypes", "").split("|"))))
    replaced = row.get("replaces", "").split("|")[0]
    for at in _at(row, "createdtime"):
        yield st.Created(
            at=at, claim=claim, node_pool=name_of(row.get("nodepool")), replaces=bool(replaced),
            instance_types=() if any(map(_OTHERS.fullmatch, types)) else types,
            run=runs.get(replaced, ""),
        )  # fmt: skip
    for at in _at(row, "launchedtime"):
        yield st.Launched(
            at=at, claim=claim, provider_id=provider, instance_type=name_of(row.get("instancetype")),
            zone=name_of(row.get("zone")), capacity_type=name_of(row.get("capacitytype")),
        )  # fmt: skip
    for at in _at(row, "registeredtime"):
        yield st.Registered(at=at, claim=claim, node=node, provider_id=provider)
    for at in _at(row, "initializedtime"):
        yield st.Initialized(at=at, claim=claim, node=node, provider_id=provider)
    for at in _at(row, "interruptiontime"):
        yield st.Interrupted(at=at, claim=claim, node=node, kind=name_of(row.get("interruptionkind")) or "unknown")
    for at in _at(row, "annotationtime"):
        yield st.DeletionSeen(at=at, claim=claim, deadline=row.get("annotation", "").partition(":")[2])
    for at in _at(row, "tainttime"):
        yield st.DrainBegan(at=at, node=node, claim=claim)
    for at in _at(row, "deletedtime"):
        yield st.ClaimGone(at=at, claim=claim, node=node, provider_id=provider)


def _at(row: Row, column: str) -> Iterator[int]:
    """The time of a step, if the row has one."""
    at = time_of(row.get(column))
    if at is not None:
        yield at


def _decisions(rows: list[Row]) -> Iterator[st.Step]:
    """One decision for all rows that have it. Up to 2.1.1 only the last row of several has it (F-108)."""
    about = sorted(((_run(row), row) for row in rows if _run(row)), key=itemgetter(0))
    for run, group in groupby(about, key=itemgetter(0)):
        of = [row for _, row in group]
        (at,) = _at(of[0], "disruptiontime")
        targets = tuple(
            st.Target(name_of(row.get("k8snodename")), row["nodeclaim"], name_of(row.get("instancetype")),
                      name_of(row.get("capacitytype"))) for row in of
        )  # fmt: skip
        replacements = {name for row in of for name in row.get("replacedby", "").split("|")}
        savings = (row.get("savings", "") for row in rows if row["nodeclaim"] in replacements)
        yield st.Decided(
            at=at, why=of[0].get("disruptionreason", "").lower() or "unknown",
            action=of[0].get("disruptiondecision", ""), targets=targets,
            new_nodes=_amount(of[0], "replacementnodecount"), pods=_amount(of[0], "disruptedpodcount"),
            savings=next((float(text) for text in savings if _SAVINGS.fullmatch(text)), None), run=run,
        )  # fmt: skip
        told, named = _amount(of[0], "disruptednodecount"), len(of)
        if told > named:
            text = f"the decision was about {told} nodes, and the table names {named}: the others are not known"
            yield st.Said(at=at, level="warning", text=text, claims=tuple(row["nodeclaim"] for row in of))


def _run(row: Row) -> str:
    """What tells one decision from the others: its time, reason and counts; "" for a row without one."""
    at = next(_at(row, "disruptiontime"), None)
    columns = ("disruptionreason", "disruptiondecision", "disruptednodecount", "replacementnodecount")
    return "" if at is None else "|".join([str(at), *(row.get(column, "") for column in columns)])


def _amount(row: Row, column: str) -> int:
    text = row.get(column, "")
    return int(text) if _AMOUNT.fullmatch(text) else 0
