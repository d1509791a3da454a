"""An older decision is made again where that is declared; what differs is a declared difference, never a divergence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.provision import VERSION
from kerf.replay.errors import DeclarationRefused
from kerf.replay.verify.declared_changes import DeclaredChanges, changes_document, read_changes
from kerf.replay.verify.report_lines import declared_lines, verdict
from kerf.replay.verify.verify import verify
from tests.support.memory import MemoryStore
from tests.support.records import changed, position_of, tampered, whole_life

OLDER = VERSION - 1
PROVISION: dict[str, Any] = {"decider": "provision", "from": OLDER, "to": VERSION, "why": "cheaper plans"}
LAUNCHED: dict[str, Any] = {"claimEvent": "claim.launched", "why": "it tells more"}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def declared(*changes: dict[str, Any]) -> DeclaredChanges:
    return read_changes({"changes": list(changes)}, "changes.yaml")


def older(store: MemoryStore, price: float | None = None) -> MemoryStore:
    """The record as if an older version of provision had written it, its first plan with another price if given."""
    first = position_of(store, "decision.made")

    def written(entry: Entry) -> Entry:
        decision: Any = entry.payload
        if not isinstance(decision, Decision) or decision.decider != "provision":
            return entry
        result: Any = decision.result
        if price is not None and entry.position == first:
            result = replace(result, claims=(replace(result.claims[0], price=price),))
        return replace(entry, payload=replace(decision, version=OLDER, result=result))

    twin = MemoryStore()
    twin.blobs, twin.entries = store.blobs, [written(entry) for entry in store.entries]
    return twin


def test_an_older_decision_that_is_made_as_it_was_is_no_difference(store: MemoryStore) -> None:
    record = older(store)
    assert verify(record).exit_code == 4, "unsupported where nothing is declared"
    report = verify(record, changes=declared(PROVISION))
    assert (report.exit_code, report.unsupported, report.differences) == (0, (), ())
    assert report.decisions == sum(entry.type == "decision.made" for entry in store.entries), "all are made again"
    (change,) = report.declared
    assert (change.what, change.recorded, change.version, change.differs) == ("provision", OLDER, VERSION, 0)
    assert verdict(report).startswith("same: ")


def test_an_older_decision_that_is_made_otherwise_is_a_declared_difference(store: MemoryStore) -> None:
    report = verify(older(store, price=0.001), changes=declared(PROVISION))
    assert (report.exit_code, report.diverged, report.unsupported) == (0, 0, ())
    position = position_of(store, "decision.made")
    (difference,) = report.differences
    assert (difference.position, difference.path) == (position, "payload.result.claims[0].price")
    assert (difference.was, difference.now, difference.version_recorded) == (0.001, 0.096, OLDER)
    assert [(c.differs, c.first, c.why) for c in report.declared] == [(1, position, "cheaper plans")]
    assert verdict(report) == "same but for 1 declared difference: all else is decided as recorded"
    (line,) = declared_lines(report)
    assert line.startswith(f"declared: provision {OLDER} → {VERSION}, ")
    assert line.endswith(": cheaper plans")


def test_what_is_not_declared_stays_unsupported(store: MemoryStore) -> None:
    for changes in (
        {**PROVISION, "to": VERSION + 1},
        {**PROVISION, "from": OLDER - 1},
        {**PROVISION, "decider": "moves"},
    ):
        report = verify(older(store), changes=declared(changes))
        assert (report.exit_code, report.diverged) == (4, 0), changes


def test_a_decision_of_todays_version_diverges_in_a_record_of_declared_ones(store: MemoryStore) -> None:
    """A declaration hides nothing but what it names."""
    record = older(store, price=0.001)
    decisions = [entry for entry in record.entries if isinstance(entry.payload, Decision)]
    advance = next(entry.position for entry in decisions if entry.payload.decider == "advance")
    forged = tampered(record, changed(advance, intents=()))
    report = verify(forged, changes=declared(PROVISION, LAUNCHED))
    assert report.exit_code == 1
    assert report.divergences[0].position == advance


def test_a_claim_event_may_differ_only_where_it_is_declared_and_decisions_are_older(store: MemoryStore) -> None:
    launched = position_of(store, "claim.launched")
    cheaper = changed(launched, took=7)
    assert verify(tampered(older(store), cheaper), changes=declared(PROVISION)).exit_code == 4
    report = verify(tampered(older(store), cheaper), changes=declared(PROVISION, LAUNCHED))
    assert (report.exit_code, [d.position for d in report.differences]) == (0, [launched])
    assert verify(tampered(store, cheaper), changes=declared(PROVISION, LAUNCHED)).exit_code == 1, "nothing is older"


def test_what_is_found_out_can_be_declared(store: MemoryStore) -> None:
    record = tampered(older(store, price=0.001), changed(position_of(store, "claim.launched"), took=7))
    found = verify(record, changes=DeclaredChanges(all_of_them=True))
    written = changes_document(found.declared)
    assert [item.get("decider", item.get("claimEvent")) for item in written["changes"]] == [
        "claim.launched",
        "provision",
    ]
    assert verify(record, changes=read_changes(written, "written.yaml")).exit_code == 0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "no mapping"),
        ({"change": []}, "Is it changes?"),
        ({"changes": []}, "an empty one"),
        ({"changes": [{**PROVISION, "form": 1}]}, "Is it from?"),
        ({"changes": [{**PROVISION, "decider": "provisoin"}]}, "Is it provision?"),
        ({"changes": [{**PROVISION, "from": "22"}]}, "whole number"),
        ({"changes": [{**PROVISION, "why": " "}]}, "says why"),
        ({"changes": [{"why": "?"}]}, "what may differ"),
        ({"changes": [{**LAUNCHED, "to": 2}]}, "has no version"),
    ],
)
def test_a_file_that_declares_nothing_readable_is_refused(document: object, said: str) -> None:
    with pytest.raises(DeclarationRefused, match=said) as refused:
        read_changes(document, "changes.yaml")
    assert refused.value.code == "KERF220"
    assert "changes.yaml" in refused.value.where
