"""Compiled catalogues: bitsets against plain loops (S-75, S-103 to S-105)."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.requirements import requirement
from kerf.engine.scheduling.launchable import compiled_catalogue as module
from kerf.engine.scheduling.launchable.compiled_catalogue import bits, compile_catalogue, compiled_catalogue
from kerf.engine.scheduling.launchable.templates import available_types
from kerf.engine.scheduling.matching.resources import fits
from kerf.engine.scheduling.planner import plan
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, problem, shape

TYPES = (
    instance_type("b", 4, labels={"n": ("4",), "gpu": ()}),
    instance_type("a", 2, labels={"n": ("2",)}, extra={"gpu": 1}),
    instance_type("d", 16, labels={"n": ("16",), "gpu": ("t4", "v100")}, zones=("z1",)),
    instance_type("c", 4, memory=GI, labels={"n": ("4",)}),
)
COMPILED = compile_catalogue(Catalogue(TYPES))


def names(mask: int) -> str:
    return "".join(COMPILED.names[number] for number in bits(mask))


def test_types_are_numbered_by_name() -> None:
    assert COMPILED.names == ("a", "b", "c", "d")
    assert names(COMPILED.everything) == "abcd"


@pytest.mark.parametrize(
    "requests",
    [
        {},
        {"cpu": 4000},
        {"cpu": 4001},
        {"memory": 5 * GI},
        {"gpu": 1},
        {"gpu": 0},
        {"fpga": 1},
        {"fpga": 0},
        {"cpu": 99999},
    ],
)
def test_fitting_equals_fits_type_by_type(requests: dict[str, int]) -> None:
    """The bitset of types that fit equals asking each type (S-75, E-26)."""
    expected = "".join(
        offered_type.name for offered_type in COMPILED.types if fits(requests, offered_type.allocatable())
    )
    assert names(COMPILED.fitting(requests)) == expected


def test_s75_a_type_with_a_negative_amount_takes_nothing() -> None:
    broken = instance_type("x", 1)
    broken = type(broken)("x", broken.capacity, {"cpu": 2000}, broken.requirements, broken.offerings)
    assert compile_catalogue(Catalogue((broken,))).fitting({"memory": 1}) == 0


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("Gt", ("8",), "d"),  # E-21
        ("Lt", ("8",), "abc"),
        ("Gte", ("16",), "d"),
        ("Lte", ("2",), "a"),
        ("In", ("4", "16"), "bcd"),
        ("NotIn", ("4",), "ad"),
        ("Exists", (), "abcd"),
        ("DoesNotExist", (), ""),
    ],
)
def test_s103_requirements_against_type_labels(operator: str, values: tuple[str, ...], expected: str) -> None:
    assert names(COMPILED.admitting(requirement("n", operator, values))) == expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("Exists", (), "acd"), ("DoesNotExist", (), "abc"), ("NotIn", ("t4",), "abcd"), ("In", ("t4",), "acd")],
)
def test_s18_a_type_that_says_does_not_exist(operator: str, values: tuple[str, ...], expected: str) -> None:
    """b says DoesNotExist; a and c say nothing, which denies nothing; d has two values, of which NotIn leaves one."""
    assert names(COMPILED.admitting(requirement("gpu", operator, values))) == expected


def test_levels() -> None:
    levels = COMPILED.capacity["cpu"]
    assert names(levels.at_least(4000)) == "bcd"
    assert names(levels.at_most(4000)) == "abc"
    assert names(levels.at_most(1999)) == ""
    assert levels.highest(COMPILED.everything & ~0b1000) == 4000


def test_slots_hold_all_offerings() -> None:
    slots = {(slot.zone, slot.capacity_type): names(slot.types) for slot in COMPILED.slots}
    assert len(slots) == 6
    assert slots["z1", "spot"] == "abcd"
    assert slots["z2", "spot"] == "abc"
    assert lbl.RESERVATION_ID in COMPILED.slots[0].requirements()


@pytest.mark.parametrize(
    ("unavailable", "expected"),
    [
        (("spot", "a", "z1"), {"z1": "bcd", "z2": "abc", "z3": "abc"}),
        (("spot", "a", ""), {"z1": "bcd", "z2": "bc", "z3": "bc"}),
        (("spot", "", "z2"), {"z1": "abcd", "z2": "", "z3": "abc"}),
        (("on-demand", "", ""), {"z1": "abcd", "z2": "abc", "z3": "abc"}),
        (("spot", "nosuch", ""), {"z1": "abcd", "z2": "abc", "z3": "abc"}),
    ],
)
def test_offerings_known_to_lack_capacity(unavailable: tuple[str, str, str], expected: dict[str, str]) -> None:
    masks = available_types(COMPILED, frozenset([unavailable]))
    spot = {
        slot.zone: names(mask) for slot, mask in zip(COMPILED.slots, masks, strict=True) if slot.capacity_type == "spot"
    }
    assert spot == expected


def test_the_cache_serves_only_the_catalogue_it_was_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_CATALOGUES", 2)
    one, other = ladder(1, 2), ladder(1, 4)
    made = compiled_catalogue("digest", one)
    assert compiled_catalogue("digest", one) is made
    assert compiled_catalogue("digest", ladder(1, 2)) is made
    assert compiled_catalogue("digest", other).names == ("t01", "t04")
    for number in range(3):
        compiled_catalogue(f"more-{number}", ladder(1, 2))
    assert len(module._cache) == 2


def test_catalogues_that_are_in_use_are_compiled_once_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NodeOverlays tell NodePools apart, each question is about the catalogues of all of them in turn."""
    monkeypatch.setattr(module, "MAX_CACHED_CATALOGUES", 2)
    several = {f"digest-{cores}": ladder(1, cores) for cores in (2, 4, 8, 16)}
    first, again = ([compiled_catalogue(*each) for each in several.items()] for _ in range(2))
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_a_catalogue_is_compared_once_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment of `kerf verify` decodes its own copy: a thousand questions must not compare it each."""
    compared: list[object] = []

    def equal(one: Catalogue, other: object) -> bool:
        compared.append(other)
        return True

    monkeypatch.setattr(Catalogue, "__eq__", equal)
    monkeypatch.setattr(module, "_cache", OrderedDict())
    made = compiled_catalogue("digest", ladder(1, 2))
    copy = ladder(1, 2)
    assert all(compiled_catalogue("digest", copy) is made for _ in range(3))
    assert len(compared) == 1


def test_s104_what_a_type_has_for_pods() -> None:
    """Capacity less overhead; huge pages are memory that pods cannot have as such, and less than none is left none."""
    huge = replace(
        instance_type("h", 4, memory=4 * GI, extra={"hugepages-2Mi": GI, "hugepages-1Gi": GI}),
        overhead={"cpu": 100, "memory": GI // 2},
    )
    left = huge.allocatable()
    assert (left["cpu"], left["memory"], left["hugepages-2Mi"]) == (3_900, 4 * GI - GI // 2 - 2 * GI, GI)
    assert instance_type("h", 4, memory=GI, extra={"hugepages-1Gi": 2 * GI}).allocatable()["memory"] == 0
    work = Workloads().add("a", 1, shape(100, 2 * GI))
    assert plan(problem(work, Catalogue((huge,)))).unplaced
    assert plan(problem(Workloads().add("a", 1, shape(100, 3 * GI // 2)), Catalogue((huge,)))).claims
