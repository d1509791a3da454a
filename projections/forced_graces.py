"""The grace periods that pods ask for which are deleted by force: they may be gone before the answer comes."""

from __future__ import annotations

from kerf.engine.record.decisions import DeletePod, Intent
from kerf.engine.state.state import State


class ForcedGraces:
    """Only a process that has the state knows them."""

    def __init__(self) -> None:
        self._by_uid: dict[str, int] = {}
        self._state: State | None = None

    def know(self, state: State) -> None:
        """Take up the deletions that are under way."""
        self._state = state
        for asked in state.facts.intents.values():
            self.note(asked.intent)

    def note(self, intent: Intent) -> None:
        """Note what the pod asks for, if this deletes one by force."""
        pod = self._state.facts.pods.get(intent.uid) if self._state and isinstance(intent, DeletePod) else None
        grace = self._state.indexes.blobs.shape(pod.shape).grace if self._state and pod is not None else None
        if pod is not None and grace is not None:
            self._by_uid[pod.uid] = grace

    def taken(self, uid: str) -> int | None:
        """The grace period of a pod that is deleted (s); None if it is not known."""
        return self._by_uid.pop(uid, None)
