"""Tell the turns that differ as declared from those that diverge, and count both sides of each declared change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.replay.verify.decide_again import VERSIONS, versions_differ
from kerf.replay.verify.declared_changes import DeclaredChanges, Key
from kerf.replay.verify.divergence import divergence, first_differing
from kerf.replay.verify.report import DeclaredChange, Divergence


class DeclaredTurns:
    """The declared changes that a record has met. `versions` maps a decider to its version in the record."""

    def __init__(self, changes: DeclaredChanges, keep: int) -> None:
        self.changes = changes
        self.differences: list[Divergence] = []
        self._keep = keep
        self._made_again: Counter[Key] = Counter()
        self._differing: dict[Key, list[int]] = {}

    def as_recorded(self, remade: list[Entry], versions: Mapping[str, int]) -> list[Entry]:
        """Return remade entries with the recorded versions of declared deciders, to compare what was decided."""
        return [self._with_version(entry, versions) for entry in remade] if self.changes else remade

    def differs(self, recorded: Sequence[Entry], remade: Sequence[Entry], versions: Mapping[str, int]) -> bool:
        """Whether a turn that differs does so as declared: in its first difference. All else follows from that."""
        index, old, new = first_differing(recorded, remade)
        keys = [self.changes.key(entry, versions) for entry in (old, new) if entry is not None]
        key = next((key for key in keys if key is not None), None)
        if key is None:
            return False
        self._differing.setdefault(key, []).append(recorded[0].position + index)
        if len(self.differences) < self._keep:
            self.differences.append(divergence(recorded, remade))
        return True

    def undeclared(self, recorded: Sequence[Entry], remade: Sequence[Entry], versions: Mapping[str, int]) -> str:
        """Say which older decider may be why a turn differs, "" if it cannot be one: then the turn diverges."""
        older = sorted((name, version) for name, version in versions.items() if version != VERSIONS.get(name))
        silent = [one for one in older if not self.changes.declares(*one)]
        if silent:
            return versions_differ(*silent[0])
        _, old, new = first_differing(recorded, remade)
        events = [entry.type for entry in (old, new) if entry is not None and not isinstance(entry.payload, Decision)]
        return f"{events[0]}, which is not declared" if older and events else ""

    def count(self, entry: Entry, versions: Mapping[str, int]) -> None:
        """Count an entry that was made again."""
        key = self.changes.key(entry, versions) if self.changes else None
        if key is not None:
            self._made_again[key] += 1

    def add(self, later: DeclaredTurns) -> None:
        """Add what was met in the part of the record that follows."""
        self.differences += later.differences[: max(0, self._keep - len(self.differences))]
        self._made_again.update(later._made_again)
        for key, positions in later._differing.items():
            self._differing.setdefault(key, []).extend(positions)

    def met(self) -> tuple[DeclaredChange, ...]:
        """Return the changes that the record has met: all of decisions, and of claim events those that differ."""
        keys = {key for key in self._made_again if key[1]} | self._differing.keys()
        return tuple(self._met(key, self._differing.get(key, [])) for key in sorted(keys))

    def _met(self, key: Key, differing: list[int]) -> DeclaredChange:
        what, recorded = key
        return DeclaredChange(
            what=what,
            recorded=recorded,
            version=VERSIONS.get(what, 0),
            why=self.changes.reason(key),
            made_again=self._made_again[key],
            differs=len(differing),
            first=differing[0] if differing else 0,
        )

    def _with_version(self, entry: Entry, versions: Mapping[str, int]) -> Entry:
        payload = entry.payload
        if not isinstance(payload, Decision) or self.changes.key(entry, versions) is None:
            return entry
        return replace(entry, payload=replace(payload, version=versions.get(payload.decider, payload.version)))
