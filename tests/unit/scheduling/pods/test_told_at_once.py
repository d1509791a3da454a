"""Which pods of one node are told it at the same time: kube-scheduler counts told pods for hard spreads (KEP-5278)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape, Selector, SpreadConstraint
from kerf.engine.model.labels import ZONE
from kerf.engine.scheduling.pods.told_at_once import ToldAtOnce, labels_of_all


class Named(Struct, frozen=True):
    name: str
    shape: str
    namespace: str = "default"


def over_zones(app: str, of: str, skew: int = 1, when: str = "DoNotSchedule") -> PodShape:
    """A pod of `app` that is spread with the pods of another app."""
    spread = SpreadConstraint(ZONE, max_skew=skew, when_unsatisfiable=when, selector=Selector({"app": of}))
    return PodShape(labels={"app": app}, spread=(spread,))


def told(pods: str, shapes: Mapping[str, PodShape], one_domain: frozenset[str] = frozenset()) -> str:
    """The letters of the pods that are told, of pods named by the letters of their shapes."""
    return "".join(
        pod.name for pod in ToldAtOnce(one_domain).of([Named(letter, letter) for letter in pods], shapes.__getitem__)
    )


def test_of_pods_that_count_one_another_as_many_are_told_as_their_skew_allows() -> None:
    assert told("aaaa", {"a": over_zones("a", "a")}) == "a"
    assert told("aaaa", {"a": over_zones("a", "a", skew=2)}) == "aa"


def test_pods_that_only_count_others_are_all_told() -> None:
    assert told("aaaa", {"a": over_zones("a", "somebody-else")}) == "aaaa"


def test_pods_of_which_one_counts_the_other_wait_for_one_another() -> None:
    shapes = {"a": over_zones("a", "b"), "b": over_zones("b", "b", skew=3)}
    assert told("abb", shapes) == "ab"
    assert told("bba", shapes) == "bb"
    assert told("bbbb", shapes) == "bbb"


def test_pods_without_a_hard_spread_are_all_told() -> None:
    shapes = {"b": PodShape(labels={"app": "a"}), "c": over_zones("a", "a", when="ScheduleAnyway")}
    assert told("bbcc", shapes) == "bbcc"


def test_pods_without_a_spread_wait_for_those_that_they_would_be_too_many_for() -> None:
    shapes = {"a": over_zones("a", "a", skew=2), "b": PodShape(labels={"app": "a"}), "c": PodShape(labels={"app": "c"})}
    assert told("abbc", shapes) == "abc"
    assert told("bbac", shapes) == "bbc"


def test_nobody_waits_for_a_pod_whose_spread_counts_every_pod() -> None:
    spread = SpreadConstraint(ZONE, selector=Selector())
    shapes = {"a": PodShape(labels={"app": "a"}, spread=(spread,)), "b": PodShape(labels={"app": "b"})}
    assert told("abba", shapes) == "abb"


def test_pods_that_are_spread_over_one_domain_are_all_told() -> None:
    shapes = {"a": over_zones("a", "b"), "b": over_zones("b", "b")}
    assert told("abb", shapes, frozenset([ZONE])) == "abb"


def test_a_label_is_of_all_nodes_if_none_has_another_value_or_is_without() -> None:
    shapes, here = [over_zones("a", "a")], {ZONE: "z1", "example.com/rack": "r1"}
    assert labels_of_all(shapes, [here, here]) == {ZONE}
    assert labels_of_all(shapes, [here, {ZONE: "z2"}]) == frozenset()
    assert labels_of_all(shapes, [here, {}]) == frozenset()
    assert labels_of_all([over_zones("a", "a", when="ScheduleAnyway")], [here]) == frozenset()


def test_of_a_node_that_is_not_launched_yet_only_the_labels_that_its_claim_requires_say_anything() -> None:
    shapes, here = [over_zones("a", "a")], {ZONE: "z1"}
    assert labels_of_all(shapes, [here], [{}, here]) == {ZONE}
    assert labels_of_all(shapes, [here], [{ZONE: "z2"}]) == frozenset()
    assert labels_of_all(shapes, [], [here, {ZONE: "z2"}]) == frozenset()
