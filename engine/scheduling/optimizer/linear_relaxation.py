"""The linear relaxation of "buy nodes that together have what the pods request".

It minimises Σ price·count subject to Σ amount·count ≥ demand, for each resource. No set of nodes that holds the pods
can cost less. The dual form is solved: its variables are prices per unit of each resource. Any unit prices under which
no node is worth more than it costs prove the bound, so an error of the solver cannot make it wrong. The bound is
sharpened in one sound way: of one node no more than the whole demand is counted, because nodes come whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul

from msgspec import Struct

EPSILON = 1e-12
MAX_PIVOTS = 200
"""A limit that is never reached in practice, because there are only as many columns as resources."""


class PricedNode(Struct, frozen=True):
    """A node to buy: its price, and what it has for pods of each resource."""

    price: float
    amounts: tuple[int, ...]


class ResourcePrices(Struct, frozen=True):
    """The price of a unit of each resource, in USD per hour, when the cheapest mixture of nodes is bought. `total`: the
    price of the whole demand, which is the bound."""

    units: tuple[float, ...]
    total: float

    def value(self, amounts: Iterable[float]) -> float:
        """What these amounts are worth together."""
        return math.fsum(map(mul, self.units, amounts))


def resource_prices(nodes: Sequence[PricedNode], demand: Sequence[int]) -> ResourcePrices:
    """The unit prices when `demand` is bought as cheaply as possible; no bound (total 0) without nodes or demand."""
    demanded = [number for number, amount in enumerate(demand) if amount > 0]
    units = [0.0] * len(demand)
    if not demanded or not nodes:
        return ResourcePrices(tuple(units), 0.0)
    # the part of the demand that each node serves of each resource, never more than all of it
    shares = [[min(1.0, max(0, node.amounts[number]) / demand[number]) for number in demanded] for node in nodes]
    values = _maximised(shares, [node.price for node in nodes], len(demanded))
    worth = [math.fsum(map(mul, share, values)) for share in shares]
    # 1, but for rounding: no node may be worth more than it costs
    scale = min([1.0, *(node.price / value for node, value in zip(nodes, worth, strict=True) if value > node.price)])
    for number, value in zip(demanded, values, strict=True):
        units[number] = value * scale / demand[number]
    return ResourcePrices(tuple(units), math.fsum(values) * scale)


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
        divisor = table[pivot][column]
        row = [value / divisor for value in table[pivot]]
        row[column] = 1.0 / divisor
        table[pivot] = row
        for number, other in enumerate(table):
            if number != pivot and other[column]:
                table[number] = _reduced(other, row, column)
        gain = _reduced(gain, row, column)
        inside[pivot], outside[column] = outside[column], inside[pivot]
    values = [0.0] * columns
    for row, variable in zip(table, inside, strict=True):
        if variable < columns:
            values[variable] = max(0.0, row[-1])
    return values


def _reduced(row: list[float], pivot: list[float], column: int) -> list[float]:
    factor = row[column]
    reduced = [value - factor * other for value, other in zip(row, pivot, strict=True)]
    reduced[column] = -factor * pivot[column]
    return reduced
