"""The history of a PodDisruptionBudget: what it selected, and since when it lets no pod go."""

from __future__ import annotations

from msgspec import Struct, field

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.model.reasons import Reason
from kerf.engine.record.entries import Entry


class BudgetTurn(Struct, frozen=True):
    """From when on a PodDisruptionBudget allows an eviction, or none. One that is gone forbids nothing."""

    position: int
    at: int
    allows: bool


class BudgetHistory(Struct):
    """A PodDisruptionBudget by its name (namespace/name). `first` is where it was seen first. `selectors` are those
    that it has had, each with the position from which on."""

    key: str
    first: int
    selectors: list[tuple[int, Selector | None]] = field(default_factory=list)
    turns: list[BudgetTurn] = field(default_factory=list)

    def seen(self, budget: PodDisruptionBudget, entry: Entry) -> None:
        if not self.selectors or self.selectors[-1][1] != budget.selector:
            self.selectors.append((entry.position, budget.selector))
        self._turn(entry, budget.disruptions_allowed > 0)

    def gone(self, entry: Entry) -> None:
        self._turn(entry, True)

    def _turn(self, entry: Entry, allows: bool) -> None:
        if not self.turns or self.turns[-1].allows != allows:
            self.turns.append(BudgetTurn(entry.position, entry.at, allows))

    def up_to(self, until: int) -> BudgetHistory:
        """Return the history as it was up to a position, which is not before `first`."""
        return BudgetHistory(
            self.key,
            self.first,
            [had for had in self.selectors if had[0] <= until],
            [turn for turn in self.turns if turn.position <= until],
        )

    @property
    def allows_none_since(self) -> int:
        """Since when it allows no eviction, in ms since the epoch; 0 if it allows one."""
        return self.turns[-1].at if self.turns and not self.turns[-1].allows else 0


def names_budget(reason: Reason, key: str) -> bool:
    """Return whether a reason is about the PodDisruptionBudget of this name (namespace/name)."""
    named = reason.params.get("budgets")
    return isinstance(named, list) and key in named
