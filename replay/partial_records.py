"""What a question needs, and an imported record does not have: the error says both, and nothing is made up."""

from __future__ import annotations

from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.observations import Imported, RecordStarted
from kerf.engine.record.store import Store
from kerf.engine.state.load import beginning
from kerf.replay.errors import PartialRecord


def imported_from(store: Store) -> Imported | None:
    """What an imported record was made of; None for a record that kerf wrote itself. Raises StoreError."""
    if store.base() is not None:
        return beginning(store).facts.imported
    first = next(store.scan(until=1), None)
    return first.payload.imported if first is not None and isinstance(first.payload, RecordStarted) else None


TOLD_ELSEWHERE = "kerf log and kerf story tell what is known"


def require(imported: Imported | None, missing: Missing, question: str, instead: str = TOLD_ELSEWHERE) -> None:
    """Raises PartialRecord (KERF211) if the record lacks what the question needs. `instead` says what answers it."""
    if imported is None or missing not in imported.lacks:
        return
    made = "captured" if imported.captured else "imported"
    sources = imported.sources[0] if imported.captured else " and ".join(imported.sources)
    raise PartialRecord(
        f"this record was {made} from {sources}, which does not tell {missing.sentence}: {question} is not known",
        hint=f"{instead}; docs/import.md says which format tells what",
    )
