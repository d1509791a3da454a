"""The index of a long record, by which questions about one pod or node read only what is about it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.index_files import keep_part, read_parts
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import KerfError
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.record_names.postings import Part, part_of

SHORT = 100_000
"""A record of fewer entries is read as a whole: that takes less than a second, and finds damage everywhere."""
ENTRIES_PER_PART, SHORTEST_KEPT = 1_000_000, 50_000


def named_record(
    store: AnyStore, until: int, *, short: int = SHORT, make: bool = True, known: Sequence[Part] = ()
) -> NamedEntries | None:
    """Return what finds the entries of a long record up to `until`, None for a short one.

    What is not in the cache is read and kept there, with everything that the record has by now; unless it is told not
    to `make` much. `known` are parts that were made of it before. A record that cannot be read up to there has no
    index: reading all of it says what is wrong.
    """
    if not isinstance(store, ChainedStore | BundleStore):
        return None
    after, last = store.first_position() - 1, store.last_position()
    if until - after < short:
        return None
    try:
        parts = [part for part in known if known[0].after == after and part.until - part.after >= SHORTEST_KEPT]
        begin = parts[-1].until if parts else after
        parts += [
            Part(part.after, part.until, part.named, part.others, part.names) for part in read_parts(store, begin, last)
        ]
        begin = parts[-1].until if parts else after
        if not make and last - begin > SHORTEST_KEPT:
            return None
        parts += _new_parts(store, begin, last)
    except KerfError:
        return None
    return NamedEntries(store, parts, until)


def _new_parts(store: ChainedStore | BundleStore, after: int, last: int) -> Iterator[Part]:
    with progress_line("entries indexed:") as tell:
        while after < last:
            until = min(after + ENTRIES_PER_PART, last)
            # Checked against the chain: else a forged record could leave its index behind for the true one.
            part = part_of(enumerate(store.encoded(after, until), after + 1), after, until, tell)
            if until - after >= SHORTEST_KEPT:
                keep_part(store, after, until, array("Q", part.named), array("I", part.others), part.names)
            yield part
            after = until
