"""Requirements: which values of a label a pod, a NodePool, an instance type or a node allows (S-1…S-24).

Where the reference leaves a choice open, kerf makes a deterministic one: keys are looked at in sorted order, and
`any_value` is the least candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Expression
from kerf.engine.model.labels import HOSTNAME, normalise

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
MAX_VALUES_SHOWN = 5
"""S-14: how many values the text of a requirement lists."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
COMPARISONS = ("Gt", "Lt", "Gte", "Lte")
NEGATIVE = frozenset(["NotIn", "DoesNotExist"])
"""The operators that a missing label satisfies."""


def parse_integer(text: str) -> int | None:
    """`text` as a signed 64-bit base-10 integer, or None if it is not one (S-7)."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None


class Requirement(Struct, frozen=True, cache_hash=True):
    """The values that one label may take (S-1).

    * `complement` False: the value is one of `values`; if there are none, the label must not exist.
    * `complement` True: the label exists, its value is not one of `values`, and it is an integer between `gte` and
      `lte` (inclusive) where these are set.
    * `min_values`: the claim's instance types must have at least that many distinct values.
    """

    key: str
    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """The operator that says the same: NotIn, Exists, In or DoesNotExist (S-9)."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    @property
    def single(self) -> bool:
        """Whether exactly one value is left."""
        return not self.complement and len(self.values) == 1

    def within_bounds(self, value: str) -> bool:
        """Whether the value is within the bounds (S-7): without bounds any value is, with bounds only an integer
        between them."""
        if self.gte is None and self.lte is None:
            return True
        number = parse_integer(value)
        if number is None:
            return False
        return (self.gte is None or number >= self.gte) and (self.lte is None or number <= self.lte)

    def has(self, value: str) -> bool:
        """Whether a value satisfies the requirement (S-7)."""
        return (value in self.values) != self.complement and self.within_bounds(value)

    def met_by(self, value: str | None) -> bool:
        """Whether a node with this value of the label meets the requirement; None: it does not have the label."""
        return self.operator in NEGATIVE if value is None else self.has(value)

    def __len__(self) -> int:
        """The number of values, whatever the bounds (S-8)."""
        return MAX_INT64 - len(self.values) if self.complement else len(self.values)

    def __bool__(self) -> bool:
        return True  # a requirement without values is still one

    def intersection(self, other: Requirement) -> Requirement:
        """The requirement that demands both (S-10)."""
        if self is other:
            return self
        gte, lte = _merged_bounds(self, other)
        least = _largest(self.min_values, other.min_values)
        if _crossed(gte, lte):
            return Requirement(self.key, False, min_values=least)
        if self.complement and other.complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        complement = self.complement and other.complement
        bounds = Requirement(self.key, complement, gte=gte, lte=lte)
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if bounds.within_bounds(value))
        if not complement:
            gte = lte = None
        return Requirement(self.key, complement, values, gte, lte, least)

    def intersects(self, other: Requirement) -> bool:
        """Whether some value satisfies both (S-11). Two complements count as sharing one if their bounds do."""
        if self.gte is self.lte is other.gte is other.lte is None:  # nearly always, and asked for each node of a plan
            if self.complement:
                return other.complement or not other.values <= self.values
            return not (self.values <= other.values if other.complement else self.values.isdisjoint(other.values))
        gte, lte = _merged_bounds(self, other)
        if _crossed(gte, lte):
            return False
        if self.complement and other.complement:
            return True
        finite, test = (other, self) if self.complement else (self, other)
        return any(test.has(value) and finite.has(value) for value in finite.values)

    def conflicts(self, other: Requirement) -> bool:
        """Whether no value satisfies both, and a missing label does not satisfy both either (S-18, S-19)."""
        return not self.intersects(other) and not (self.operator in NEGATIVE and other.operator in NEGATIVE)

    def allows_all_of(self, narrower: Requirement) -> bool:
        """Whether this requirement allows every value that `narrower` allows.

        It is used for nodes on their way. Only requirements are known of their labels, so a pod must fit whichever
        value comes.
        """
        if not narrower.complement:
            if not narrower.values:
                return self.operator in NEGATIVE
            return all(self.has(value) for value in narrower.values)
        if not self.complement or any(narrower.has(value) for value in self.values):
            return False
        low_ok = self.gte is None or (narrower.gte is not None and narrower.gte >= self.gte)
        return low_ok and (self.lte is None or (narrower.lte is not None and narrower.lte <= self.lte))

    def any_value(self) -> str:
        """One value that satisfies it; "" if none can be named (S-12). It is the least listed value, or else the
        smallest integer from the lower bound (or 0) up that is not excluded."""
        if not self.complement:
            return min(self.values, default="")
        number = 0 if self.gte is None else self.gte
        while str(number) in self.values:
            number += 1
        return "" if self.lte is not None and number > self.lte else str(number)

    def specs(self) -> tuple[RequirementSpec, ...]:
        """The entries for a NodeClaim's spec.requirements (S-13).

        A requirement with a bound (Gt, Lt) drops its excluded values, as Karpenter does: an entry of the API cannot
        hold both.
        """
        entries = []
        if self.gte is not None:
            entries.append(RequirementSpec(self.key, "Gte", (str(self.gte),), self.min_values))
        if self.lte is not None:
            entries.append(RequirementSpec(self.key, "Lte", (str(self.lte),), self.min_values))
        if not entries:
            entries.append(RequirementSpec(self.key, self.operator, tuple(sorted(self.values)), self.min_values))
        return tuple(entries)

    def __str__(self) -> str:
        """The requirement as messages show it: key, operator, at most five values, bounds (S-14)."""
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = sorted(self.values)
            more = len(shown) - MAX_VALUES_SHOWN
            tail = [f"and {more} others"] if more > 0 else []
            text += f" [{' '.join(shown[:MAX_VALUES_SHOWN] + tail)}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        if self.min_values is not None:
            text += f" minValues {self.min_values}"
        return text


def _merged_bounds(a: Requirement, b: Requirement) -> tuple[int | None, int | None]:
    uppers = [bound for bound in (a.lte, b.lte) if bound is not None]
    return _largest(a.gte, b.gte), min(uppers, default=None)


def _largest(a: int | None, b: int | None) -> int | None:
    return max((n for n in (a, b) if n is not None), default=None)


def _crossed(gte: int | None, lte: int | None) -> bool:
    return gte is not None and lte is not None and gte > lte


def requirement(key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> Requirement:
    """The requirement of one operator and its operands (S-2…S-5). Values are taken as they are: no provider has a table
    for S-6.

    An operand of a comparison that is no integer counts as 0, and an unknown operator as Exists. Callers validate first
    (`kerf.engine.scheduling.pods.validation`).
    """
    key, operands = normalise(key), tuple(values)
    if operator == "In":
        return Requirement(key, False, frozenset(operands), min_values=min_values)
    if operator == "DoesNotExist":
        return Requirement(key, False, min_values=min_values)
    if operator == "NotIn":
        return Requirement(key, True, frozenset(operands), min_values=min_values)
    if operator not in COMPARISONS:
        return Requirement(key, True, min_values=min_values)
    number = (parse_integer(operands[0]) if operands else 0) or 0
    if operator == "Gt" and number == MAX_INT64:
        return Requirement(key, False)  # S-3: nothing is greater; minValues is dropped
    if operator in ("Gt", "Gte"):
        return Requirement(key, True, gte=number + (operator == "Gt"), min_values=min_values)
    return Requirement(key, True, lte=number - (operator == "Lt"), min_values=min_values)


def unmet(specs: Iterable[RequirementSpec], labels: Mapping[str, str]) -> tuple[RequirementSpec, ...]:
    """The requirements that these labels do not meet. A missing label meets NotIn and DoesNotExist alone (D-125)."""
    values = {normalise(key): value for key, value in labels.items()}
    wanted = ((spec, requirement(spec.key, spec.operator, spec.values)) for spec in specs)
    return tuple(spec for spec, asked in wanted if not asked.met_by(values.get(asked.key)))


class Conflict(Struct, frozen=True):
    """A key on which two sides cannot agree. `existing`: None if that side does not know the label (S-17)."""

    incoming: Requirement
    existing: Requirement | None = None

    @property
    def key(self) -> str:
        return self.incoming.key


class Requirements:
    """An immutable map from label key to one requirement. Keys are sorted, so equal maps have the same order, text and
    hash."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for entry in requirements:
            present = by_key.get(entry.key)
            by_key[entry.key] = entry if present is None else present.intersection(entry)  # S-15
        self._by_key = dict(sorted(by_key.items()))
        self._hash = hash(tuple(self._by_key.values()))

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Requirements:
        """One requirement with In for each label (S-16)."""
        return _of_labels(tuple(labels.items()))

    @classmethod
    def of_specs(cls, specs: Iterable[RequirementSpec]) -> Requirements:
        return cls(requirement(spec.key, spec.operator, spec.values, spec.min_values) for spec in specs)

    @classmethod
    def of_expressions(cls, expressions: Iterable[Expression]) -> Requirements:
        return cls(requirement(expression.key, expression.operator, expression.values) for expression in expressions)

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Requirements) and self._by_key == other._by_key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Requirements({self})"

    def __str__(self) -> str:
        """All requirements but the hostname's, as messages show them (S-23)."""
        return ", ".join(sorted(str(requirement) for requirement in self if requirement.key != HOSTNAME))

    def find(self, key: str) -> Requirement | None:
        """The requirement of a key; None if there is none. The key must be normalised."""
        return self._by_key.get(key)

    def get(self, key: str) -> Requirement:
        """The requirement of a key or its alias; Exists if there is none (S-5)."""
        key = normalise(key)
        return self._by_key.get(key) or Requirement(key, True)

    def merged(self, other: Iterable[Requirement]) -> Requirements:
        """Both sides together, intersected key by key (S-15)."""
        more = tuple(other)
        if not more:
            return self
        if not self._by_key and isinstance(other, Requirements):
            return other
        return Requirements((*self._by_key.values(), *more))

    def without(self, keys: Iterable[str]) -> Requirements:
        dropped = frozenset(keys)
        return Requirements(requirement for requirement in self if requirement.key not in dropped)

    def with_min_values(self, lowered: Mapping[str, int]) -> Requirements:
        """With minValues set to the given numbers (S-107)."""
        return Requirements(
            replace(requirement, min_values=lowered[requirement.key]) if requirement.key in lowered else requirement
            for requirement in self
        )

    @property
    def min_values(self) -> tuple[tuple[str, int], ...]:
        """The keys that ask for a number of distinct values, and how many (S-24: empty if none does)."""
        return tuple(
            (requirement.key, requirement.min_values) for requirement in self if requirement.min_values is not None
        )

    def conflicts(self, incoming: Requirements) -> tuple[Conflict, ...]:
        """All conflicts on keys that both have (S-18)."""
        conflicts = []
        for entry in incoming:
            present = self._by_key.get(entry.key)
            if present is not None and present.conflicts(entry):
                conflicts.append(Conflict(entry, present))
        return tuple(conflicts)

    def incompatibilities(
        self, incoming: Requirements, undefined: frozenset[str] = frozenset()
    ) -> tuple[Conflict, ...]:
        """Why `incoming` cannot hold on this side; empty if it can (S-17). The keys in `undefined` may be missing
        here."""
        unknown = tuple(
            Conflict(entry)
            for entry in incoming
            if entry.key not in self._by_key and entry.key not in undefined and entry.operator not in NEGATIVE
        )
        return unknown or self.conflicts(incoming)

    def compatible(self, incoming: Requirements, undefined: frozenset[str] = frozenset()) -> bool:
        """Whether what is asked for can be met here; keys in `undefined` may be missing (S-17)."""
        return not incoming._by_key or not self.incompatibilities(incoming, undefined)


NO_REQUIREMENTS = Requirements()


MAX_CACHED_LABEL_SETS, MAX_CACHED_LABELS = 1 << 14, 1 << 16
"""How many are kept: nodes' labels are asked for again with each plan."""


@lru_cache(maxsize=MAX_CACHED_LABEL_SETS)
def _of_labels(labels: tuple[tuple[str, str], ...]) -> Requirements:
    return Requirements(_of_label(key, value) for key, value in labels)


@lru_cache(maxsize=MAX_CACHED_LABELS)
def _of_label(key: str, value: str) -> Requirement:
    return requirement(key, "In", (value,))
