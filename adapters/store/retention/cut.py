"""Cuts a record: removes old entries, in such a way that the rest can still be decided again.

A record that was cut begins after its *base*, a state that is kept like an entry. Claim events and decisions from
before it move to a table of their own, `history`, with a hash chain of their own, and are removed later. Only the
beginning of a record is ever removed. Before that, the entry `RecordCut` announces it, with the chain's value at the
base (the hash of all that is removed) and the value of the kept entries' chain.

A crash at any point does no harm. `propose` stores the base; the runtime appends the announcement; from `begin` on the
record begins at the base; `steps` removes the rest in short transactions, and may be called again at any time.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.compression import pack
from kerf.adapters.store.read_only import blobs_of, blobs_of_base
from kerf.adapters.store.record_head import CUT
from kerf.adapters.store.retention.cut_tables import (
    KEPT_LONGEST,
    ROWS_PER_PAGE,
    TABLES,
    Cut,
    history_value,
    read_base,
    read_cut,
    seal_of,
    write_cut,
)
from kerf.engine.record.base import Base, pack_base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.errors import StoreError
from kerf.engine.record.hash_chain import link
from kerf.engine.record.observations import RecordCut

ENTRIES_PER_STEP = 1_000
"""Entries per transaction while a record is cut. A writer waits for one transaction at most."""
_BLOBS_PER_STEP = 100


# ── cutting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def propose(store: ChainedStore, base: Base, *, after: int = 0) -> RecordCut:
    """Stores the base, which changes nothing yet, and returns what the record must announce before `begin`.

    Of the kept entries, those up to `after` are removed. Raises StoreError.
    """
    store.must_write()
    with store.session(commit=True) as session:
        for table in TABLES:
            session.run(table)
        cut = read_cut(session)
    after = max(cut.after, min(after, base.position))
    if not cut.base <= base.position <= store.last_position() or cut.moved < cut.base:
        raise StoreError("the record cannot be cut here, or is being cut", position=base.position)
    if store.checkpoint(base.position).value != base.chain:
        raise StoreError("the base is not one of this record", position=base.position)
    value, before = cut.history, _kept_value(store, cut, after)
    for position, encoded in _to_be_kept(store, cut.moved, base.position):
        value = link(value, encoded)
        before = value if position <= after else before
    if base.position > cut.base:
        document = pack_base(base)
        how, packed = pack(document)
        with store.session(commit=True) as session:
            session.run("DELETE FROM bases WHERE position <> ?", cut.base)
            row = (base.position, how, len(document), packed, seal_of(document))
            session.run("INSERT INTO bases VALUES (?,?,?,?,?)", *row)
    return RecordCut(
        base=base.position, chain=base.chain.hex(), state=base.digest, history=value.hex(), after=after,
        before=before.hex(), removed=cut.moved,
    )  # fmt: skip


def _kept_value(store: ChainedStore, cut: Cut, position: int) -> bytes:
    with store.session() as session:
        return history_value(session, cut, min(position, cut.moved))


def _to_be_kept(store: ChainedStore, after: int, until: int) -> Iterator[tuple[int, bytes]]:
    position = after
    statement = (
        "SELECT {position}, state FROM stored_events WHERE {position} > ? AND {position} <= ? "
        f"AND {KEPT_LONGEST} ORDER BY 1 LIMIT ?"
    )
    while True:
        with store.session() as session:
            rows = session.run(statement, position, until, ROWS_PER_PAGE)
        for position, encoded in rows:
            yield position, encoded
        if len(rows) < ROWS_PER_PAGE:
            return


def begin(store: ChainedStore, position: int) -> None:
    """Makes the record begin at the base that the entry at `position` announces. Raises StoreError."""
    announced = next((entry.payload for entry in store.scan(position - 1, position)), None)
    if not isinstance(announced, RecordCut):
        raise StoreError("the entry announces no cut", position=position)
    with store.session(commit=True) as session:
        cut = read_cut(session)
        if announced.base < cut.base or announced.after < cut.after:  # by who has lost office since
            raise StoreError("the record has been cut further since this was announced", position=position)
        base = read_base(session, announced.base)
        write_cut(
            session,
            replace(
                cut,
                base=announced.base,
                at=base.at,
                chain=bytes.fromhex(announced.chain),
                after=announced.after,
                before=bytes.fromhex(announced.before),
                swept=False,
            ),
        )
        head = store.read_head(session)
        changed = replace(head, format=CUT)
        session.run("UPDATE record SET format = ?, seal = ?", CUT, changed.seal())
        session.run("DELETE FROM bases WHERE position <> ?", announced.base)
        session.run("DELETE FROM snapshots WHERE position <= ?", announced.base)


def steps(store: ChainedStore) -> Iterator[int]:
    """Removes what the cut leaves behind, one short transaction a step, and yields the position reached.

    A process that stops or is killed in between continues with another call. Does nothing if nothing was cut.
    """
    while (cut := store.cut()).moved < cut.base:
        yield _move(store)
    while cut.base and _drop_history(store):
        yield cut.base
    if not cut.swept:
        for _ in _sweep(store):
            yield cut.base
    for _ in store.give_back():
        yield cut.base


def _move(store: ChainedStore) -> int:
    """Removes the next entries from the chain, and moves those that are kept to `history`."""
    with store.session(commit=True) as session:
        cut = read_cut(session)
        end = min(cut.moved + ENTRIES_PER_STEP, cut.base)
        value, moved = cut.history, []
        found = session.run(
            f"SELECT {{position}}, topic, state FROM stored_events WHERE {{position}} > ? AND {{position}} <= ? "
            f"AND {KEPT_LONGEST} ORDER BY 1",
            cut.moved,
            end,
        )
        for position, topic, encoded in found:
            value = link(value, encoded)
            if position > cut.after:
                moved.append((position, topic, encoded, value))
        session.many("INSERT INTO history VALUES (?,?,?,?)", moved)
        session.run("DELETE FROM stored_events WHERE {position} <= ?", end)
        write_cut(session, replace(cut, moved=end, history=value, entries=cut.entries + len(moved)))
    return end


def _drop_history(store: ChainedStore) -> bool:
    with store.session(commit=True) as session:
        cut = read_cut(session)
        rows = session.run(
            "SELECT position FROM history WHERE position <= ? ORDER BY 1 LIMIT ?", cut.after, ENTRIES_PER_STEP
        )
        if rows:
            session.run("DELETE FROM history WHERE position <= ?", rows[-1][0])
            write_cut(session, replace(cut, entries=max(0, cut.entries - len(rows))))
    return bool(rows)


def _sweep(store: ChainedStore) -> Iterator[None]:
    """Blobs that neither the base nor an entry after it names go. What is appended meanwhile is looked at, too."""
    cut = store.cut()
    with store.session() as session:
        named = set(blobs_of_base(read_base(session, cut.base)))
    position = cut.base
    for position, encoded in enumerate(store.encoded(cut.base), cut.base + 1):
        named.update(blobs_of(CODEC.decode(encoded)))
        if position % ENTRIES_PER_STEP == 0:
            yield
    with store.session() as session:
        stored = {digest for (digest,) in session.run("SELECT digest FROM blobs")}
    unnamed = sorted(stored - named)
    for chunk in (unnamed[start : start + _BLOBS_PER_STEP] for start in range(0, len(unnamed), _BLOBS_PER_STEP)):
        with store.session(commit=True) as session:
            if read_cut(session).base != cut.base:  # who has cut it further sweeps: what names a blob may have gone
                return
            since = session.run("SELECT {position}, state FROM stored_events WHERE {position} > ? ORDER BY 1", position)
            for _, encoded in since:
                named.update(blobs_of(CODEC.decode(encoded)))
            position = since[-1][0] if since else position  # the next chunk reads on from there
            session.many("DELETE FROM blobs WHERE digest = ?", [(digest,) for digest in chunk if digest not in named])
        yield
    with store.session(commit=True) as session:
        if (now := read_cut(session)).base == cut.base:
            write_cut(session, replace(now, swept=True))
