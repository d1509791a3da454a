"""The index of moves that have started is the same from zero and from a snapshot."""

from __future__ import annotations

from kerf.engine.record.decisions import Move, PlannedClaim
from kerf.engine.state import snapshot
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.moves import index_moves
from kerf.engine.state.state import Facts, State, Underway


def planned(name: str) -> PlannedClaim:
    return PlannedClaim(name, "default", (), (), (), {}, 0.0, ())


def test_a_replacement_that_has_to_go_itself_waits_for_its_own_whatever_the_order_of_the_facts() -> None:
    """D-116. Snapshots have their keys in the order of the texts: "100.0" comes before "99.0"."""
    moves = {
        "99.0": Underway(Move("drifted", ("old",), (planned("middle"),)), 1, started=True),
        "100.0": Underway(Move("drifted", ("middle",), (planned("new"),)), 2, started=True),
        "101.0": Underway(Move("drifted", ("new",)), 3),
    }
    state = State(Facts(moves=moves), Blobs(lambda digest: b""))
    index_moves(state)
    assert state.indexes.move_of == {"old": "99.0", "middle": "100.0", "new": "100.0"}
    data, _ = snapshot.encode(state)
    assert snapshot.decode(data, state.indexes.blobs).indexes.move_of == state.indexes.move_of
