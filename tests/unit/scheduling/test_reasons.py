"""Reasons in words: which label may be meant (S-22), found when it is told and not when it is decided."""

from __future__ import annotations

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import Selector, SpreadConstraint
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.reasons import SchedulingCode, reason, sentence
from tests.support.scenarios.problems import Workloads, instance_type, ladder, pool, problem, shape, spec


def told(key: str, **labels: str) -> str:
    """What the only pod is told that asks for this label; the NodePool has some of its own."""
    work = Workloads().add("a", 1, shape(node_selector={key: "x"}))
    planned = plan(problem(work, ladder(2), pool(labels=labels)))
    (left,) = (*planned.unplaced, *planned.ignored)
    return sentence(left.reasons[0])


@pytest.mark.parametrize("key", ["karpenter.sh/capacity-typ", "karpenter.sh/capcity-type"])
def test_s22_a_mistyped_label_of_karpenters_own_is_told_which_is_meant(key: str) -> None:
    assert told(key) == f"label {key} may not be selected on (is {lbl.CAPACITY_TYPE} meant?)"


def test_s22_a_label_that_nobody_knows_may_be_a_well_known_one_or_one_of_the_nodepool() -> None:
    assert told("zone").endswith(f"label zone is not defined here (is {lbl.ZONE} meant?)")
    assert told("team", **{"example.com/team": "red"}).endswith("(is example.com/team meant?)")
    assert told("deployment", **{"example.com/team": "red"}).endswith("label deployment is not defined here")


def test_s22_a_restricted_label_that_is_spelt_rightly_is_no_typing_error() -> None:
    assert told(lbl.HOSTNAME) == f"label {lbl.HOSTNAME} may not be selected on"


def test_what_is_recorded_does_not_depend_on_letters() -> None:
    """A record whose names are replaced is decided the same: it holds which labels there are, not which look alike."""
    work = Workloads().add("a", 1, shape(node_selector={"team": "x"}))
    given = problem(work, ladder(2), pool(labels={"example.com/team": "red", "unlike": "y"}))
    (left,) = plan(given).unplaced
    assert left.reasons[0].code == SchedulingCode.LABEL_UNDEFINED
    params = {"keys": ["team"], "known": ["example.com/team", "unlike"], "node_pool": "default"}
    assert left.reasons[0].params == params


def test_s136_of_several_spreads_the_one_that_refuses_a_domain_is_told() -> None:
    """The only zone is allowed; of the families one is full by the spread, and in the other no type is large enough."""
    types = [instance_type(name, cpu, zones=["z1"], labels={"family": (name,)}) for name, cpu in (("a", 4), ("b", 1))]
    spreads = tuple(SpreadConstraint(key, selector=Selector({"app": "web"})) for key in (lbl.ZONE, "family"))
    work = Workloads().add("web", 2, shape(2000, labels={"app": "web"}, spread=spreads))
    (left,) = plan(problem(work, Catalogue(tuple(types)))).unplaced
    assert left.pods == ("web-1",)
    told = {"rule": "spread", "key": "family", "domains": ["a=1", "b=0"], "node_pool": "default"}
    assert left.reasons[0].params == told


@pytest.mark.parametrize(
    ("key", "domains", "said"),
    [
        (lbl.ZONE, ["z1=3", "z2=2"], "(pods that count: z1=3, z2=2)"),
        (lbl.ZONE, ["z1=3", "and 7 more"], "(pods that count: z1=3, and 7 more domains)"),
        (lbl.HOSTNAME, ["n1=1", "and 15 more"], "(pods that count: n1=1, and 15 more nodes)"),
        (lbl.HOSTNAME, ["and 15 more"], "(15 nodes of this plan)"),
        (lbl.HOSTNAME, ["n1=1", "and 1 more"], "(pods that count: n1=1, and 1 more node)"),
        (lbl.HOSTNAME, ["and 1 more"], "(1 node of this plan)"),
        (lbl.HOSTNAME, [], "(there is none)"),
        ("example.com/rack", [], "(no node has the label, or would have it)"),
    ],
)
def test_s136_domains_are_told_with_what_is_counted(key: str, domains: list[str], said: str) -> None:
    given = reason(SchedulingCode.TOPOLOGY, rule="spread", key=key, domains=domains)
    assert sentence(given) == f"spread over {key} leaves no place {said}"


def test_who_follows_pods_is_told_that_there_are_none() -> None:
    given = reason(SchedulingCode.TOPOLOGY, rule="affinity", key=lbl.ZONE, domains=[])
    assert sentence(given) == f"affinity over {lbl.ZONE} leaves no place (there are no such pods)"


def test_a_node_pool_that_nobody_gave_types_to_rules_none_out() -> None:
    given = reason(SchedulingCode.NO_INSTANCE_TYPES, node_pool="p", types=0)
    assert sentence(given) == "NodePool p: there are no instance types for it"


@pytest.mark.parametrize(
    ("selector", "code"),
    [({"n": "9"}, SchedulingCode.TYPES_REQUIREMENTS), ({"n": "4"}, SchedulingCode.LIMITS), ({}, SchedulingCode.LIMITS)],
)
def test_limits_are_the_reason_where_without_them_a_type_would_do(
    selector: dict[str, str], code: SchedulingCode
) -> None:
    """To raise them helps nobody who asks for what no type has, however little they leave."""
    catalogue = Catalogue((instance_type("t4", 4, labels={"n": ("4",)}),))
    work = Workloads().add("a", 1, shape(500, node_selector=selector))
    (left,) = plan(problem(work, catalogue, pool("p", spec("n", "In", "4", "9"), limits={"cpu": 1000}))).unplaced
    assert [why.code for why in left.reasons] == [code]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (SchedulingCode.TYPES_REQUIREMENTS, "the only type does not meet the requirements on cpu"),
        (SchedulingCode.TYPES_RESOURCES, "the only type that meets the requirements does not have enough cpu"),
        (SchedulingCode.TYPES_OFFERINGS, "the only type that would do is not on offer"),
    ],
)
def test_one_type_is_not_counted(code: SchedulingCode, said: str) -> None:
    assert sentence(reason(code, types=1, keys=["cpu"], resources=["cpu"])) == said
    assert sentence(reason(code, types=2, keys=["cpu"], resources=["cpu"])).startswith("none of ")
