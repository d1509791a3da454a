"""Search a record: names of any kind, and what was said of them."""

from __future__ import annotations

from itertools import chain, islice

from msgspec import Struct

from kerf.adapters.store.open import AnyStore
from kerf.adapters.web.reader import RecordReader
from kerf.projections.explorer.marks import DECISION
from kerf.replay.history.histories_until import histories_of
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.subject_names import similar_names

MOST_OF_A_KIND, MOST_SAID = 12, 20
_KINDS = ("nodepool", "nodeclass", "poddisruptionbudget", "workload", "nodeclaim", "node", "pod")
"""Those of which there are few come first: hundreds of pods are called like their workload."""


class Found(Struct, frozen=True, kw_only=True):
    """A name with its kind; or something that was said at the time `at` (ms since the epoch): `text`, and where it was
    said."""

    kind: str
    name: str
    at: int = 0
    text: str = ""


def search(reader: RecordReader, q: str) -> list[Found]:
    """Names that are like a text, of each kind, those that are it first; then decisions, refusals and troubles whose
    sentence has it, as far as the record is read for the timeline by now."""
    return [*_names(reader, q), *_said(reader, q)]


def _names(reader: RecordReader, q: str) -> list[Found]:
    known = reader.names(_all_names)
    found = [name for name in known if q in name] or similar_names(q, known)
    of_kind = [list(islice((name for name in found if name.startswith(f"{kind}/")), MOST_OF_A_KIND)) for kind in _KINDS]
    kinds_and_names = [tuple(name.split("/", 1)) for name in chain.from_iterable(of_kind)]
    kinds_and_names.sort(key=lambda each: each[1] != q)
    return [Found(kind=kind, name=name) for kind, name in kinds_and_names]


def _all_names(store: AnyStore, named: NamedEntries | None) -> list[str]:
    """Return all names of a record with their kind, in order. Without an index, reads all of it."""
    histories = histories_of(store, None, named)
    known = {f"nodeclaim/{name}" for name in histories.claims}
    known |= {f"node/{name}" for name in histories.claims_of_node}
    known |= {f"nodepool/{claim.node_pool}" for claim in histories.claims.values() if claim.node_pool}
    known |= {f"nodeclass/{name}" for name in histories.node_classes}
    known |= {f"poddisruptionbudget/{name}" for name in histories.budgets}
    known |= {f"pod/{name}" for name in histories.pods.names()}
    known |= {f"workload/{name}" for name in histories.pods.workloads()}
    return sorted(known)


def _said(reader: RecordReader, q: str) -> list[Found]:
    """The same sentence is found once, where it was said first."""
    wanted, found = q.casefold(), dict[str, Found]()
    for mark in reader.picture.now().marks:
        if len(found) >= MOST_SAID:
            break
        if wanted in mark.text.casefold() and mark.text not in found:
            claim = next(iter(mark.claims), "")
            kind, name = ("nodeclaim", claim) if claim and mark.kind != DECISION else ("decision", str(mark.position))
            found[mark.text] = Found(kind=kind, name=name, at=mark.at, text=mark.text)
    return list(found.values())
