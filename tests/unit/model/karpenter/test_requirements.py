"""The requirement algebra: rules S-1…S-24 and the worked examples E-1…E-13."""

from __future__ import annotations

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import (
    MAX_INT64,
    Requirement,
    Requirements,
    parse_integer,
    requirement,
)
from kerf.engine.model.mistyped import suggestion


def r(operator: str, *values: str, key: str = "k", least: int | None = None) -> Requirement:
    return requirement(key, operator, values, least)


@pytest.mark.parametrize(
    ("made", "complement", "values", "gte", "lte"),
    [
        (r("In", "a", "b"), False, {"a", "b"}, None, None),
        (r("NotIn", "a"), True, {"a"}, None, None),
        (r("Exists"), True, set(), None, None),
        (r("DoesNotExist"), False, set(), None, None),
        (r("Gt", "3"), True, set(), 4, None),
        (r("Lt", "3"), True, set(), None, 2),
        (r("Gte", "3"), True, set(), 3, None),
        (r("Lte", "3"), True, set(), None, 3),
    ],
)
def test_s2_construction(
    made: Requirement, complement: bool, values: set[str], gte: int | None, lte: int | None
) -> None:
    assert (made.complement, set(made.values), made.gte, made.lte) == (complement, values, gte, lte)


def test_s3_gt_of_the_largest_integer_is_does_not_exist_without_min_values() -> None:
    """`Gt` of the largest integer is DoesNotExist, without minValues (E-7)."""
    made = r("Gt", str(MAX_INT64), least=2)
    assert made.operator == "DoesNotExist"
    assert made.min_values is None


def test_s3_a_comparison_with_no_integer_counts_as_zero() -> None:
    assert r("Gt", "many").gte == 1
    assert r("Lte").lte == 0


def test_s4_in_without_values_is_does_not_exist() -> None:
    assert r("In") == r("DoesNotExist")


@pytest.mark.parametrize(
    ("alias", "key"),
    [
        ("failure-domain.beta.kubernetes.io/zone", lbl.ZONE),
        ("failure-domain.beta.kubernetes.io/region", lbl.REGION),
        ("topology.ebs.csi.aws.com/zone", lbl.ZONE),
        ("beta.kubernetes.io/arch", lbl.ARCH),
        ("beta.kubernetes.io/os", lbl.OS),
        ("beta.kubernetes.io/instance-type", lbl.INSTANCE_TYPE),
    ],
)
def test_s5_a19_aliases(alias: str, key: str) -> None:
    assert r("In", "x", key=alias).key == key
    assert Requirements().get(alias) == requirement(key, "Exists")


def test_e1_selector_by_an_alias_meets_the_stable_key() -> None:
    selector = Requirements.of_labels({"beta.kubernetes.io/arch": "amd64"})
    assert Requirements([r("In", "amd64", key=lbl.ARCH)]).compatible(selector)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("", None),
        ("7.0", None),
        ("1_000", None),
        (" 7", None),
        ("٣", None),
    ],
)
def test_s7_integers(text: str, number: int | None) -> None:
    assert parse_integer(text) == number


def test_s7_integers_beyond_64_bits_are_none() -> None:
    assert parse_integer(str(MAX_INT64)) == MAX_INT64
    assert parse_integer(str(MAX_INT64 + 1)) is None


def test_s7_has() -> None:
    assert r("In", "a").has("a")
    assert not r("In", "a").has("b")
    assert r("NotIn", "a").has("b")
    assert not r("Exists").intersection(r("Gte", "2")).has("x")
    assert not r("DoesNotExist").has("")


def test_s8_length_does_not_look_at_bounds() -> None:
    assert len(r("In", "a", "b")) == 2
    assert len(r("NotIn", "a")) == MAX_INT64 - 1
    assert len(r("Gt", "3")) == MAX_INT64


@pytest.mark.parametrize(
    ("made", "operator", "specs"),
    [
        (r("NotIn", "A").intersection(r("Gt", "1")), "Exists", [("Gte", ("2",))]),  # E-2
        (r("NotIn", "1", "2").intersection(r("Gt", "1")), "NotIn", [("Gte", ("2",))]),  # E-3
        (r("In", "1", "9", "x").intersection(r("Lt", "5")), "In", [("In", ("1",))]),  # E-4
        (r("Gte", "8").intersection(r("Lte", "8")), "Exists", [("Gte", ("8",)), ("Lte", ("8",))]),  # E-5
        (r("Gte", "5").intersection(r("Lte", "3")), "DoesNotExist", [("DoesNotExist", ())]),  # E-6
    ],
)
def test_s9_s10_s13_intersections_and_their_specs(
    made: Requirement, operator: str, specs: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert made.operator == operator
    assert [(spec.operator, spec.values) for spec in made.specs()] == specs


def test_e3_exclusions_and_bounds_hold_together() -> None:
    made = r("NotIn", "1", "2").intersection(r("Gt", "1"))
    assert not made.has("2")
    assert made.has("3")


def test_e4_a_finite_result_carries_no_bounds() -> None:
    made = r("In", "1", "9", "x").intersection(r("Lt", "5"))
    assert made == r("In", "1")


def test_s11_two_complements_share_a_value_even_if_none_is_left() -> None:
    assert r("NotIn", "5").intersects(r("Gte", "5").intersection(r("Lte", "5")))
    assert not r("Gte", "5").intersects(r("Lte", "3"))
    assert not r("In", "a").intersects(r("NotIn", "a"))
    assert r("In", "7").intersects(r("Gt", "3"))
    assert not r("In", "1", "3").intersects(r("Gt", "3")), "no listed value is within the bounds"
    assert not r("Gt", "3").intersects(r("In", "x"))
    assert not r("DoesNotExist").intersects(r("Exists"))


def test_s12_any_is_the_least_candidate() -> None:
    assert r("In", "b", "a").any_value() == "a"
    assert r("NotIn", "0", "1").any_value() == "2"
    assert r("Gte", "5").any_value() == "5"
    assert r("DoesNotExist").any_value() == ""
    assert r("NotIn", "0").intersection(r("Lte", "0")).any_value() == ""


def test_s14_text() -> None:
    assert str(r("In", *"gfedcba")) == "k In [a b c d e and 2 others]"
    assert str(r("Gte", "2").intersection(r("Lte", "4"))) == "k Exists >=2 <=4"
    assert str(r("In", "a", least=1)) == "k In [a] minValues 1"


def test_s15_e13_entries_on_one_key_are_intersected() -> None:
    made = Requirements([r("In", "a", "b", least=1), r("NotIn", "c", least=2)])
    assert list(made) == [r("In", "a", "b", least=2)]
    assert made.min_values == (("k", 2),)


def test_s16_labels_that_are_aliases_of_one_key_are_intersected() -> None:
    made = Requirements.of_labels({"beta.kubernetes.io/arch": "amd64", lbl.ARCH: "arm64"})
    assert made.get(lbl.ARCH).operator == "DoesNotExist"


def test_s17_e8_an_unknown_label_passes_only_where_it_may_be_undefined() -> None:
    incoming = Requirements([r("Exists", key=lbl.ZONE)])
    assert Requirements().compatible(incoming, lbl.WELL_KNOWN)
    (conflict,) = Requirements().incompatibilities(incoming)
    assert conflict.key == lbl.ZONE
    assert conflict.existing is None


def test_s17_a_label_that_may_be_undefined_and_is_defined_has_to_agree() -> None:
    own = Requirements([r("In", "z1", key=lbl.ZONE)])
    assert own.compatible(Requirements([r("In", "z1", "z2", key=lbl.ZONE)]), lbl.WELL_KNOWN)
    assert not own.compatible(Requirements([r("In", "z2", key=lbl.ZONE)]), lbl.WELL_KNOWN)
    assert Requirements([r("Exists", key=lbl.ZONE)]).compatible(Requirements()), "what only the node says is no matter"


@pytest.mark.parametrize("operator", ["In", "Exists", "Gt", "Lt", "Gte", "Lte"])
def test_s20_an_undefined_custom_key_denies(operator: str) -> None:
    assert not Requirements().compatible(Requirements([r(operator, "1")]), lbl.WELL_KNOWN)


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_s20_an_undefined_custom_key_allows_negations(operator: str) -> None:
    assert Requirements().compatible(Requirements([r(operator, "1")]), lbl.WELL_KNOWN)


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [(r("Exists"), False), (r("In", "a"), False), (r("NotIn", "a"), True), (r("DoesNotExist"), True)],
)
def test_s18_e9_against_does_not_exist(incoming: Requirement, expected: bool) -> None:
    assert Requirements([r("DoesNotExist")]).compatible(Requirements([incoming])) is expected


def test_e10_not_in_with_does_not_exist_merges_to_does_not_exist() -> None:
    own, incoming = Requirements([r("NotIn", "a")]), Requirements([r("DoesNotExist")])
    assert own.compatible(incoming)
    assert own.merged(incoming).get("k").operator == "DoesNotExist"


def test_s19_bounded_not_ins_that_cross_are_called_compatible() -> None:
    low = r("NotIn", "1").intersection(r("Lte", "3"))
    high = r("NotIn", "9").intersection(r("Gte", "5"))
    assert low.operator == high.operator == "NotIn"
    assert Requirements([low]).compatible(Requirements([high]))


def test_s22_suggestions() -> None:
    """An unknown label is told with the one that may be meant (E-11, E-12)."""
    base = frozenset([lbl.ZONE, lbl.REGION])
    assert suggestion("zone", base, ()) == lbl.ZONE
    assert suggestion("node.io/zone", base, ()) == lbl.ZONE
    assert suggestion("zone", lbl.WELL_KNOWN, ()) == lbl.ZONE
    assert suggestion("deployment", base, ("team",)) is None
    assert suggestion("team", frozenset(), ("example.com/team",)) == "example.com/team"
    assert suggestion("karpenter.sh/capcity-type", lbl.WELL_KNOWN, ()) == lbl.CAPACITY_TYPE
    assert suggestion("example.com/taem", lbl.WELL_KNOWN, ("example.com/team",)) == "example.com/team"
    assert suggestion(lbl.HOSTNAME, lbl.WELL_KNOWN, ()) is None, "one label that is known is not another's typing error"
    assert suggestion(lbl.REGISTERED, lbl.WELL_KNOWN, ()) is None


def test_s23_text_of_a_map_leaves_the_hostname_out() -> None:
    made = Requirements([r("In", "x", key=lbl.HOSTNAME), r("Exists", key="b"), r("In", "y", key="a")])
    assert str(made) == "a In [y], b Exists"


def test_equal_maps_are_equal_whatever_the_order() -> None:
    one = Requirements([r("In", "x", key="a"), r("Exists", key="b")])
    two = Requirements([r("Exists", key="b"), r("In", "x", key="a")])
    assert one == two
    assert hash(one) == hash(two)
    assert list(one) == list(two)


def test_specs_of_a_node_pool_keep_min_values() -> None:
    made = Requirements.of_specs([RequirementSpec("k", "Exists", (), 3)])
    assert made.get("k").specs() == (RequirementSpec("k", "Exists", (), 3),)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (r("In", "a", "b"), r("In", "a"), True),
        (r("In", "a"), r("In", "a", "b"), False),
        (r("In", "a"), r("Exists"), False),
        (r("NotIn", "c"), r("In", "a", "b"), True),
        (r("NotIn", "c"), r("NotIn", "c", "d"), True),
        (r("NotIn", "c"), r("Exists"), False),
        (r("Exists"), r("DoesNotExist"), False),
        (r("DoesNotExist"), r("DoesNotExist"), True),
        (r("Gte", "2"), r("Gte", "3"), True),
        (r("Gte", "2"), r("Gte", "1"), False),
        (r("Lte", "4"), r("Exists"), False),
    ],
)
def test_allows_all_of(wide: Requirement, narrow: Requirement, expected: bool) -> None:
    assert wide.allows_all_of(narrow) is expected
