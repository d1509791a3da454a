"""What a CreateFleet for several claims would leak, deal twice or launch again: the ground of ADR 12 (A-282…A-288).

A model, since kerf does not batch. One intent names the claims in order, the token follows from its position, and the
answer is in the record before instances are dealt. What is driven is the case in which no answer is recorded: it was
lost, or the process died. EC2 then behaves in every way that its documentation does not exclude. It has started some of
the instances or all, and one has ended since. The repetition of the request, which is sent twice since the process may
die again, is refused, or names any of them in any order. Each DescribeInstances shows any part of them, until the last
one shows all that run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

CLAIMS = ("a", "b")
INSTANCES = ("i1", "i2")
Found = tuple[str, ...]


class Ec2(Struct, frozen=True):
    """One way in which it behaves."""

    started: Found
    ended: str  # the instance that has ended by now; "" for none
    repeated: tuple[Found | None, Found | None]  # what the repetitions name; None: refused
    shown: tuple[Found, Found]  # by two looks for the batch's tag

    @property
    def running(self) -> Found:
        return tuple(instance for instance in self.started if instance != self.ended)

    @property
    def fleet(self) -> Found:
        """What DescribeFleets names: all instances of an instant fleet, once its id is known. A repetition tells it,
        and so does a tag of each instance."""
        return self.started if self.names_fleet else ()

    @property
    def names_fleet(self) -> bool:
        return any(repeated is not None for repeated in self.repeated) or any(self.shown)


class Variant(Struct, frozen=True, kw_only=True):
    """How a lost answer is settled."""

    repeats: bool = False  # by the answer to the same request
    looks: bool = False  # by DescribeInstances
    asks_fleet: bool = False  # by DescribeFleets
    recorded: bool = True  # which instance a claim gets is in the record, and no later look deals it again
    relaunches: Literal["always", "if named", "never"] = "always"  # a claim that got none by then is launched anew
    ends_late: bool = True  # an instance that nobody got by then is ended when it shows


def parts(of: Found) -> list[Found]:
    return [part for size in range(len(of) + 1) for part in combinations(of, size)]


def behaviours(*, promised: bool) -> Iterator[Ec2]:
    """`promised`: if EC2 documented that a repetition names all instances of the first answer, in any order."""
    for count in range(len(INSTANCES) + 1):
        started = INSTANCES[:count]
        named = [order for part in parts(started) for order in permutations(part) if not promised or part == started]
        repetitions: list[Found | None] = [*named, *([] if promised else [None])]
        looks = parts(started)
        for ended, repeated, shown in product(("", *started), product(repetitions, repeat=2), product(looks, repeat=2)):
            yield Ec2(started, ended, (repeated[0], repeated[1]), (shown[0], shown[1]))


def sightings(variant: Variant, ec2: Ec2) -> Iterator[Found]:
    if variant.repeats:
        yield from (repeated or () for repeated in ec2.repeated)
    if variant.looks:
        yield from ec2.shown
    if variant.asks_fleet:
        yield ec2.fleet


def harm(variant: Variant, ec2: Ec2) -> set[str]:
    """What goes wrong: an instance of two claims, one that runs for nobody, a second one launched while the first runs,
    a claim that waits for its launch's time to be over."""
    dealt: dict[str, str] = {}
    for found in sightings(variant, ec2):
        deal(dealt, found, variant)
    waiting = [claim for claim in CLAIMS if claim not in dealt]
    late = tuple(instance for instance in ec2.running if instance not in dealt.values())
    anew = variant.relaunches == "always" or (variant.relaunches == "if named" and ec2.names_fleet)
    if not anew:
        deal(dealt, late, variant)
        late = tuple(instance for instance in late if instance not in dealt.values())
    happened = {
        "dealt twice": len(set(dealt.values())) < len(dealt),
        "leaked": bool(late) and not variant.ends_late,
        "launched again": bool(late) and anew and bool(waiting),
        "waits": not anew and len(dealt) < len(CLAIMS),
    }
    return {name for name, did in happened.items() if did}


def deal(dealt: dict[str, str], found: Found, variant: Variant) -> None:
    """By the record: those that no claim has, to claims that have none. Else by their places among what is shown."""
    if variant.recorded:
        unserved = [claim for claim in CLAIMS if claim not in dealt]
        dealt.update(zip(unserved, [each for each in sorted(found) if each not in dealt.values()], strict=False))
    else:
        dealt.update((claim, each) for claim, each in zip(CLAIMS, found, strict=False) if claim not in dealt)


def harms(variant: Variant, *, promised: bool = False) -> set[str]:
    return {name for ec2 in behaviours(promised=promised) for name in harm(variant, ec2)}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        # the issue's: the same request again, instances to claims by their places
        (Variant(repeats=True, recorded=False, ends_late=False), {"dealt twice", "leaked", "launched again"}),
        (Variant(looks=True, recorded=False, ends_late=False), {"dealt twice", "leaked", "launched again"}),
        (Variant(repeats=True, looks=True, recorded=False), {"dealt twice", "launched again"}),
        # all dealing in the record: nothing is dealt twice, and what shows late is ended, but was launched again
        (Variant(repeats=True, looks=True, ends_late=False), {"leaked", "launched again"}),
        (Variant(repeats=True, looks=True), {"launched again"}),
        (Variant(repeats=True, looks=True, asks_fleet=True), {"launched again"}),
        # and no claim launched anew before its time is over: what shows late is dealt
        (Variant(repeats=True, looks=True, relaunches="never"), {"waits"}),
        (Variant(repeats=True, looks=True, asks_fleet=True, relaunches="if named"), {"waits"}),
    ],
)
def test_what_each_way_to_settle_a_lost_batch_does(variant: Variant, expected: set[str]) -> None:
    assert harms(variant) == expected


def test_a_repetition_that_names_all_would_settle_it_alone() -> None:
    """Then the order does not matter: it is dealt once, by the record."""
    assert harms(Variant(repeats=True), promised=True) == set()


def named(harmed: Variant) -> set[bool]:
    """Whether anything names the fleet where this variant does harm."""
    return {ec2.names_fleet for ec2 in behaviours(promised=False) if harm(harmed, ec2)}


def test_asked_for_its_fleet_a_batch_is_launched_again_or_waits_only_if_nothing_names_the_fleet() -> None:
    asked = Variant(repeats=True, looks=True, asks_fleet=True)
    assert named(asked) == named(replace(asked, relaunches="if named")) == {False}
    assert named(replace(asked, asks_fleet=False)) == {False, True}
