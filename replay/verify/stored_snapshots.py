"""Compare the snapshots that a record brings along with the states that follow from its entries."""

from __future__ import annotations

from kerf.engine.record.errors import RecordCorrupt, StoreError
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.state import State


class StoredSnapshots:
    """The snapshots of a store. `compared` counts those that were made again."""

    def __init__(self, store: Store) -> None:
        self.compared = 0
        self._false: list[int] = []
        try:
            self._left = store.snapshots(snapshot.SCHEMA)
        except StoreError:  # who reads the record is told
            self._left = {}

    def compare(self, state: State) -> None:
        """Compare the snapshot at the position of a state, if there is one."""
        digest = self._left.pop(state.facts.position, None)
        if digest is not None:
            self.compared += 1
            if digest != snapshot.digest(state):
                self._false.append(state.facts.position)

    def check(self, last: int) -> None:
        """Raise RecordCorrupt (KERF109) for the first snapshot up to position `last` that is not the state there."""
        false = min([*self._false, *(position for position in self._left if position <= last)], default=0)
        if false:
            raise RecordCorrupt(
                "the snapshot is not the state that follows from the entries",
                position=false,
                hint="The entries are as they were; do not believe what kerf status, at and diff said from here on",
            )
