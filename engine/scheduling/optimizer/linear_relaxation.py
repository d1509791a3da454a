"""A lower bound of the price of new capacity: no set of nodes that holds the pods can cost less.

The bound is the linear relaxation of "buy nodes that together have what the pods request": minimise
Σ price·count subject to Σ amount·count ≥ demand per resource. It is solved in its dual form, whose
variables are prices per unit of each resource, and any such prices under which no type is worth more than
it costs prove the bound, whatever the solver did. Two things sharpen it soundly: of one node no more than
the whole demand is counted (nodes come whole), and pods that cannot share any node are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

EPSILON = 1e-12
MAX_PIVOTS = 200
"""A limit that is never met in practice: there are as many columns as resources."""


class PricedNode(Struct, frozen=True):
    """One thing to buy: its price, and per resource what it has for pods."""

    price: float
    amounts: tuple[int, ...]


class ResourcePrices(Struct, frozen=True):
    """What a unit of each resource is worth, in USD per hour, when the cheapest mixture is bought; `total`
    is the worth of the whole demand, and the bound."""

    units: tuple[float, ...]
    total: float

    def of(self, amounts: Iterable[int]) -> float:
        return math.fsum(unit * amount for unit, amount in zip(self.units, amounts, strict=True))


def resource_prices(rows: Sequence[PricedNode], demand: Sequence[int]) -> ResourcePrices:
    """The dual prices of the cheapest cover of `demand`. No bound (total 0) without rows or demand."""
    wanted = [number for number, amount in enumerate(demand) if amount > 0]
    shares = [_shares(row, demand, wanted) for row in rows]
    units = [0.0] * len(demand)
    if not wanted or not rows:
        return ResourcePrices(tuple(units), 0.0)
    found = _maximised(shares, [row.price for row in rows], len(wanted))
    scale = _feasible_scale(rows, shares, found)
    for number, value in zip(wanted, found, strict=True):
        units[number] = value * scale / demand[number]
    return ResourcePrices(tuple(units), math.fsum(found) * scale)


def _shares(row: PricedNode, demand: Sequence[int], wanted: Sequence[int]) -> list[float]:
    """Of the demand, what one node can serve per resource: never more than all of it."""
    return [min(1.0, max(0, row.amounts[number]) / demand[number]) for number in wanted]


def _feasible_scale(rows: Sequence[PricedNode], shares: Sequence[Sequence[float]], units: Sequence[float]) -> float:
    """What the prices must be multiplied by so that no row is worth more than it costs: 1, but for
    rounding."""
    scale = 1.0
    for row, share in zip(rows, shares, strict=True):
        value = math.fsum(a * b for a, b in zip(share, units, strict=True))
        if value > row.price:
            scale = min(scale, row.price / value)
    return scale


def _maximised(shares: Sequence[Sequence[float]], prices: Sequence[float], columns: int) -> list[float]:
    """The y ≥ 0 with the largest sum for which no row's share·y exceeds its price: the simplex method on a
    tableau of one column per resource. y = 0 is where it starts, so it may stop anywhere."""
    table = [[*share, price] for share, price in zip(shares, prices, strict=True)]
    gain = [1.0] * columns + [0.0]
    inside, outside = [columns + number for number in range(len(table))], list(range(columns))
    for _ in range(MAX_PIVOTS):
        column = max(range(columns), key=lambda c: (gain[c], -outside[c]))
        limiting = [number for number, row in enumerate(table) if row[column] > EPSILON]
        if gain[column] <= EPSILON or not limiting:
            break
        pivot = min(limiting, key=lambda number: (table[number][-1] / table[number][column], inside[number]))
        table[pivot] = row = _divided(table[pivot], column)
        for number, other in enumerate(table):
            if number != pivot and other[column]:
                table[number] = _reduced(other, row, column)
        gain = _reduced(gain, row, column)
        inside[pivot], outside[column] = outside[column], inside[pivot]
    found = [0.0] * columns
    for row, variable in zip(table, inside, strict=True):
        if variable < columns:
            found[variable] = max(0.0, row[-1])
    return found


def _divided(row: list[float], column: int) -> list[float]:
    divisor = row[column]
    divided = [value / divisor for value in row]
    divided[column] = 1.0 / divisor
    return divided


def _reduced(row: list[float], pivot: list[float], column: int) -> list[float]:
    factor = row[column]
    reduced = [value - factor * other for value, other in zip(row, pivot, strict=True)]
    reduced[column] = -factor * pivot[column]
    return reduced
