"""What the commands of figures share: the part of a record, the folds over it, and the price list of `kerf cost`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Protocol

import yaml
from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import ec2_values
from kerf.adapters.cli.input.bounded_yaml import read_document
from kerf.adapters.cli.named_record import named_record
from kerf.adapters.cli.records import beginning_at, located
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import InputError
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.engine.model.mistyped import near_value
from kerf.engine.record.claim_events import Adopted, Launched
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.engine.record.observations import ObjectGone
from kerf.projections.cost import PriceOf
from kerf.projections.prose.amounts import count
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.record_beginning import base_as_entries

_FORM = 'Write a line for each offering, such as "m5.large/spot: 0.03", or "spot: -20%"'


class Fold(Protocol):
    """A read model that folds entries of the types that it `reads`."""

    @property
    def reads(self) -> frozenset[type[Struct]]: ...
    def apply(self, entry: Entry) -> object: ...


class Window(Struct, frozen=True):
    """A part of a record: from `since` to `until` (ms since the epoch); `position` is its last entry."""

    since: int
    until: int
    position: int


def window_of(store: AnyStore, since: str, until: str) -> Window:
    """The part between two moments. Raises PositionUnknown (KERF202) for one that ends before it begins."""
    begin, end = beginning_at(store, since), located(store, until)
    window = Window(begin.at, end.at, end.position)
    if window.until < window.since:
        hint = "Give the earlier one to --since"
        raise PositionUnknown(f"--since {since} is later than --until {until}", hint=hint)
    return window


def fold_into(store: AnyStore, until: int, *folds: Fold, pods: Callable[[Entry], Iterable[str]] | None = None) -> None:
    """Give the folds the entries that they read, up to a position, and before them what a cut record begins with.

    Where none of them reads pods, or they need no others than those that `pods` says of each entry (by their uids), an
    index that is there says where these entries are.
    """
    reads = {read for fold in folds for read in fold.reads}
    only = {NAME_OF[read] for read in reads}
    last = store.scan(until - 1, until)  # of whatever type: it says when the record ends
    every_pod = pods is None and reads & {Pod, ObjectGone}
    named = None if every_pod else named_record(store, until - 1, make=False)
    entries: Iterable[Entry]
    if named is None:
        entries = store.scan(0, until - 1, only)
    elif pods is None:
        entries = named.others(only)
    else:
        others = list(named.others(only))
        uids = {uid for entry in others for uid in pods(entry)}
        entries = merge(others, named.entries(uids), key=attrgetter("position"))
    for entry in chain(base_as_entries(store), entries, last):
        for fold in folds:
            fold.apply(entry)


class PriceList:
    """Prices by offering, from a file. `price` takes a launch; `used` and `unlisted` count those with a price here and
    without."""

    def __init__(self, file: Path, prices: dict[frozenset[str], float | str]) -> None:
        self._file, self._prices = file, prices
        self._launched: set[str] = set()  # types, zones and capacity types
        self.used = self.unlisted = 0

    def price(self, launch: Launched | Adopted) -> float:
        """The price of the line that names most of type, zone and capacity type; the recorded one if none fits."""
        parts = {launch.instance_type, launch.zone, launch.capacity_type}
        self._launched |= parts
        fitting = [named for named in self._prices if named <= parts]
        best = max(fitting, key=lambda named: (len(named), launch.instance_type in named, sorted(named)), default=None)
        found = self._prices[best] if best is not None else None
        if found is None or (isinstance(found, str) and not launch.price):  # a share of what is not known
            self.unlisted += 1
            return launch.price
        self.used += 1
        return launch.price * (1 + float(found[:-1]) / 100) if isinstance(found, str) else found

    def notes(self, *, unpriced: bool) -> list[str]:
        """How many nodes the list gave a price (`unpriced`: the others have none in the record either), and what may
        be mistyped in it."""
        kept = "without a price, counted as $0" if unpriced else "kept their recorded price"
        left = f"; {count(self.unlisted, 'other')} {kept}" if self.unlisted else ""
        return [f"priced by {self._file}: {count(self.used, 'node')}{left}", *self._mistyped()]

    def _mistyped(self) -> Iterator[str]:
        """A name that nothing has is noted where the list leaves out the known one that it is spelt like. A list of all
        types may have newer ones than kerf's tables, and names the others too."""
        values = ec2_values()
        known = {*values[INSTANCE_TYPE], *values[ZONE], *values[CAPACITY_TYPE], *self._launched}
        named = {part for line in self._prices for part in line}
        for part in sorted(named - known):
            near = near_value(part, known)
            if near and near not in named:
                yield f"{part} is no instance type, zone or capacity type that kerf knows. Is it {near}?"


def read_prices(file: Path) -> PriceList:
    """A price list of YAML or JSON: offering → USD per hour, or a share such as "-20%". Raises InputError (KERF212)."""
    try:
        found = read_document(file)
    except OSError as error:
        raise _bad(file, f"the file cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _bad(file, "the file is neither YAML nor JSON") from error
    if not isinstance(found, dict) or not found:
        raise _bad(file, "the file lists no prices")
    return PriceList(file, {_parts(name): _price(file, name, price) for name, price in found.items()})


def _parts(name: object) -> frozenset[str]:
    return frozenset(part for part in str(name).split("/") if part)


def _price(file: Path, name: object, price: object) -> float | str:
    if isinstance(price, int | float) and not isinstance(price, bool) and 0 <= price < 1e6:
        return float(price)
    if isinstance(price, str) and price.endswith("%") and _is_share(price[:-1]):
        return price
    raise _bad(file, f"{name} has no price: {price!r}")


def _is_share(text: str) -> bool:
    try:
        return -100 <= float(text) < 1e6
    except ValueError:
        return False


def _bad(file: Path, what: str) -> InputError:
    return InputError(what, where=str(file), hint=_FORM, code="KERF212")


def price_of(prices: PriceList | None) -> PriceOf | None:
    """The price function of a list, None without one."""
    return None if prices is None else prices.price
