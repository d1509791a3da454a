"""Each step of a funnel and each kind of near miss has its words."""

from __future__ import annotations

import pytest

from kerf.engine.scheduling.explain.relaxed_preferences import RelaxationKind, RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss
from kerf.engine.scheduling.explain.type_filters import FilterKind
from kerf.projections.prose.funnels import (
    cut_sentence,
    given_up_sentence,
    near_miss_sentence,
)


def test_each_filter_says_what_would_let_more_types_through_where_somebody_can_change_it() -> None:
    unchangeable = {FilterKind.LEFT_OUT, FilterKind.VOLUMES}
    assert {kind for kind in FilterKind if not kind.change} == unchangeable
    assert all(kind.sentence for kind in FilterKind)


def test_every_step_of_a_funnel_has_its_sentence() -> None:
    assert all(cut_sentence(Cut(kind.value, 1, "memory", "4")) for kind in FilterKind)
    assert cut_sentence(Cut("resource", 3, "memory", str(2**30))) == "too little memory for 1Gi"
    assert cut_sentence(Cut("resource", 3, "cpu", "100", 50)) == "too little cpu for 100m and up to 50m for daemons"
    told = cut_sentence(Cut("taint", 3, "team", "team=a:NoSchedule", tolerated=("team=b", "team=c")))
    assert told == "the taint team=a:NoSchedule, which is not tolerated; tolerated is team=b, team=c"


@pytest.mark.parametrize(
    ("miss", "said"),
    [
        (("requirement", 2, "z", ("a", "b"), "node-pool"), "2 types would do if the NodePool allowed a or b for z"),
        (("requirement", 2, "team", (), "pod"), "2 types would do if the pods asked nothing of team"),
        (("topology", 1, "zone", ("a",), "spread"), "1 type would do if their spread over zone allowed a"),
        (
            ("topology", 1, "z", ("a",), "affinity"),
            "1 type would do if they did not have to be with other pods (affinity over z)",
        ),
        (("topology", 1, "host", (), "spread"), "1 type would do if their spread over host allowed a further node"),
    ],
)
def test_a_near_miss_in_words(miss: tuple[str, int, str, tuple[str, ...], str], said: str) -> None:
    what, types, key, values, side = miss
    assert near_miss_sentence(NearMiss(what, types, "m5.large", key, values, side=side)) == f"{said}, m5.large first"


@pytest.mark.parametrize(
    ("key", "short", "said"),
    [("memory", 839 * 2**30 + 5 * 2**20, "840Gi"), ("memory", 300 * 2**20, "300Mi"), ("cpu", 1500, "1500m")],
)
def test_by_how_much_a_near_miss_misses_is_short_to_read(key: str, short: int, said: str) -> None:
    miss = NearMiss("resource", 1, "m5.large", key, short=short)
    assert near_miss_sentence(miss) == f"1 type would do if the pods asked for {said} less {key}, m5.large first"


def test_a_near_miss_names_what_may_be_meant() -> None:
    miss = NearMiss("requirement", 1, "a", "type", ("m5.large",), side="pod", meant=("m5.large",))
    assert near_miss_sentence(miss).endswith(", a first (is m5.large meant?)")
    miss = NearMiss("requirement", 9, "a", "type", ("a", "b", "c"), side="pod", meant=("c",))
    assert "allowed c (and 2 more) for type" in near_miss_sentence(miss), "what may be meant is named before all others"


def test_a_near_miss_names_a_few_values_of_many() -> None:
    values = tuple(f"m{n}.large" for n in range(45))
    said = near_miss_sentence(NearMiss("requirement", 45, "m0.large", "type", values, side="pod"))
    assert "m5.large (and 39 more) for type, m0.large first" in said
    assert "m6.large" not in said


def test_whatever_may_be_given_up_has_its_words() -> None:
    assert all(given_up_sentence(RelaxedPreference(kind.value)) for kind in RelaxationKind)
    asked = RelaxedPreference("preferred-term", ("zone In [z9]", "cpu Exists >=4"), weight=7)
    assert given_up_sentence(asked) == "its preference for zone In [z9] and cpu at least 4 (weight 7)"
    assert given_up_sentence(RelaxedPreference("spread", key="rack")) == "its spread over rack, which is ScheduleAnyway"
