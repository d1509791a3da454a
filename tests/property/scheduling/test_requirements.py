"""Laws of the requirement algebra (S-7, S-10, S-11, S-15, S-17)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.model.karpenter.requirements import Requirement, Requirements, requirement

VALUES = ("a", "b", "x", "1", "2", "3", "5", "-1", "07")
values = st.lists(st.sampled_from(VALUES), max_size=4)
numbers = st.integers(0, 6).map(lambda n: [str(n)])
simple: st.SearchStrategy[tuple[str, list[str]]] = st.one_of(
    st.tuples(st.sampled_from(["In", "NotIn"]), values),
    st.tuples(st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
    st.tuples(st.sampled_from(["Gt", "Lt", "Gte", "Lte"]), numbers),
)
least = st.none() | st.integers(1, 3)


def one(key: str = "k") -> st.SearchStrategy[Requirement]:
    plain = st.builds(lambda entry, n: requirement(key, entry[0], entry[1], n), simple, least)
    return st.one_of(plain, st.builds(lambda a, b: a.intersection(b), plain, plain))


maps = st.lists(st.sampled_from("abc").flatmap(one), max_size=4).map(Requirements)


@given(one(), one())
def test_s10_intersection_is_commutative(a: Requirement, b: Requirement) -> None:
    assert a.intersection(b) == b.intersection(a)


@given(one(), one(), one(), st.sampled_from(VALUES))
def test_s10_intersection_is_associative_in_what_it_allows(
    a: Requirement, b: Requirement, c: Requirement, value: str
) -> None:
    """In what it allows and in minValues; the excluded values that are kept may differ once bounds make them moot."""
    left, right = a.intersection(b).intersection(c), a.intersection(b.intersection(c))
    assert left.has(value) == right.has(value)
    assert left.min_values == right.min_values


@given(one())
def test_s10_intersection_is_idempotent_in_what_it_allows(a: Requirement) -> None:
    again = a.intersection(Requirement(a.key, a.complement, a.values, a.gte, a.lte, a.min_values))
    assert [again.has(value) for value in VALUES] == [a.has(value) for value in VALUES]


@given(one(), one(), st.sampled_from(VALUES))
def test_s10_an_intersection_has_what_both_have(a: Requirement, b: Requirement, value: str) -> None:
    assert a.intersection(b).has(value) == (a.has(value) and b.has(value))


@given(one(), one())
def test_s11_intersects_is_symmetric_and_agrees_with_the_intersection(a: Requirement, b: Requirement) -> None:
    assert a.intersects(b) == b.intersects(a)
    together = a.intersection(b)
    assert a.intersects(b) == (together.complement or bool(together.values))


@given(one())
def test_s12_any_value_satisfies_unless_there_is_none(a: Requirement) -> None:
    value = a.any_value()
    assert value == "" or a.has(value)
    if value == "" and a.complement:
        assert not any(a.has(str(number)) for number in range(10))


@given(one())
def test_s13_specs_allow_what_the_requirement_allows_but_for_lost_exclusions(a: Requirement) -> None:
    """With a bound, excluded values are lost (S-13)."""
    back = Requirements.of_specs(a.specs()).get(a.key)
    assert back.min_values == a.min_values
    for value in VALUES:
        if a.gte is None and a.lte is None:
            assert back.has(value) == a.has(value)
        else:
            assert back.has(value) >= a.has(value)


@given(maps, maps)
def test_s15_merging_is_commutative(a: Requirements, b: Requirements) -> None:
    assert a.merged(b) == b.merged(a)
    assert hash(a.merged(b)) == hash(b.merged(a))


@given(maps, maps)
def test_s17_what_is_compatible_leaves_no_empty_key_but_by_negations(a: Requirements, b: Requirements) -> None:
    if a.compatible(b, frozenset("abc")):
        for merged in a.merged(b):
            sides = [side.find(merged.key) for side in (a, b)]
            negations = all(side is None or side.operator in ("NotIn", "DoesNotExist") for side in sides)
            assert merged.complement or merged.values or negations


@given(one(), one())
def test_allows_all_of_is_about_every_value(wide: Requirement, narrow: Requirement) -> None:
    if wide.allows_all_of(narrow):
        assert all(wide.has(value) for value in VALUES if narrow.has(value))
