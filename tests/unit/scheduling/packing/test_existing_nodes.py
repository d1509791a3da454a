"""Nodes that exist, and what their labels mean to topology (S-5, S-94, S-95, S-97, S-130, S-137, S-139, S-146)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, HostPort, PodShape, Selector, SpreadConstraint, Taint
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, problem, shape, spec

WEB = Selector({"app": "web"})


def there(name: str, **labels: str) -> NodeInput:
    return NodeInput(name, "", labels, (), {"cpu": 4_000, "memory": 8 * GI, "pods": 20})


def web(cpu: int = 100, **fields: Any) -> PodShape:
    return shape(cpu, labels={"app": "web"}, **fields)


def planned(work: Workloads, *nodes: NodeInput, bound: tuple[tuple[PodShape, str], ...] = ()) -> Plan:
    given = problem(work, ladder(2, 4), nodes=nodes, bound=bound)
    made = plan(given)
    assert faults(given, made) == []
    return made


def on_nodes(made: Plan) -> dict[str, int]:
    return {placement.node: len(placement.pods) for placement in made.placements}


def test_s5_labels_of_nodes_may_be_aliases_too() -> None:
    old = there("n", **{"failure-domain.beta.kubernetes.io/zone": "z1"})
    work = Workloads().add("w", 1, shape(node_selector={lbl.ZONE: "z1"}))
    assert on_nodes(planned(work, old)) == {"n": 1}


@pytest.mark.parametrize(
    ("kind", "key"),
    [("spread", lbl.ZONE), ("spread", "rack"), ("affinity", lbl.ZONE), ("affinity", "rack")],
)
def test_s137_a_node_without_the_label_takes_nobody_who_asks_for_its_domain(key: str, kind: str) -> None:
    fields: dict[str, dict[str, Any]] = {
        "spread": {"spread": (SpreadConstraint(key, selector=WEB),)},
        "affinity": {"affinity": (AffinityTerm(key, WEB),)},
    }
    made = planned(Workloads().add("w", 1, web(**fields[kind])), there("n"))
    assert on_nodes(made) == {}
    assert bool(made.claims) == (key == lbl.ZONE), "new nodes have zones, and no racks"


@pytest.mark.parametrize(("initialized", "taken"), [(True, {"n": 2}), (False, {})])
def test_s137_a_node_that_will_never_have_a_zone_keeps_nobody_apart(initialized: bool, taken: dict[str, int]) -> None:
    """One on its way gets its zone yet."""
    apart = web(anti_affinity=(AffinityTerm(lbl.ZONE, WEB),))
    made = planned(Workloads().add("w", 2, apart), replace(there("n"), initialized=initialized))
    assert on_nodes(made) == taken


@pytest.mark.parametrize(("skew", "here"), [(1, 0), (2, 1), (3, 2)])
def test_s139_a_host_takes_as_many_as_the_skew_allows_beside_those_that_are_there(skew: int, here: int) -> None:
    """The least of all hosts counts as none, and nothing else of them matters."""
    given = web(spread=(SpreadConstraint(lbl.HOSTNAME, skew, selector=WEB),))
    made = planned(Workloads().add("w", 2, given), there("n"), bound=((web(), "n"),))
    assert on_nodes(made).get("n", 0) == min(here, 2)


def test_s139_a_pod_that_its_own_spread_does_not_select_adds_nothing() -> None:
    other = (SpreadConstraint(lbl.HOSTNAME, 1, selector=WEB),)
    made = planned(Workloads().add("w", 3, shape(spread=other)), there("n"), bound=((web(), "n"),))
    assert on_nodes(made) == {"n": 3}


def test_s130_s146_every_host_is_a_domain_of_its_own_that_is_empty_at_first() -> None:
    """By its label, or by its name where it has none."""
    apart = web(anti_affinity=(AffinityTerm(lbl.HOSTNAME, WEB),))
    nodes = there("a"), there("b", **{lbl.HOSTNAME: "host-b"}), there("c")
    made = planned(Workloads().add("w", 3, apart), *nodes, bound=((web(), "c"),))
    assert on_nodes(made) == {"a": 1, "b": 1}
    assert len(made.claims) == 1


def test_s95_what_a_pod_takes_of_a_node_is_gone_for_the_next() -> None:
    """Room, host ports and the count of its domain."""
    ports = shape(100, host_ports=(HostPort(80),))
    assert on_nodes(planned(Workloads().add("w", 2, ports), there("n"))) == {"n": 1}
    assert on_nodes(planned(Workloads().add("w", 5, shape(900)), there("n"))) == {"n": 4}
    spread = web(spread=(SpreadConstraint(lbl.HOSTNAME, 2, selector=WEB),))
    assert on_nodes(planned(Workloads().add("w", 5, spread), there("n"))) == {"n": 2}


def test_s97_ports_conflict_by_number_and_protocol_where_addresses_meet() -> None:
    def beside(first: HostPort, second: HostPort) -> bool:
        work = Workloads().add("a", 1, shape(200, host_ports=(first,))).add("b", 1, shape(100, host_ports=(second,)))
        return on_nodes(planned(work, there("n"))) == {"n": 2}

    assert not beside(HostPort(80), HostPort(80))
    assert not beside(HostPort(80, ip="10.0.0.1"), HostPort(80)), "no address is every address"
    assert not beside(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="::"))
    assert beside(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"))
    assert beside(HostPort(80, "TCP"), HostPort(80, "UDP"))
    assert beside(HostPort(80), HostPort(81))


@pytest.mark.parametrize(("number", "taken"), [(80, {}), (81, {"n": 1})])
def test_s97_the_host_port_of_a_daemon_that_is_still_to_come_is_taken(number: int, taken: dict[str, int]) -> None:
    """It has a higher priority as a rule: the pod would wait for another node, which is not launched."""
    daemon = shape(100, host_ports=(HostPort(number),))
    asked = problem(
        Workloads().add("w", 1, shape(100, host_ports=(HostPort(80),))), ladder(2), nodes=[there("n")], daemons=[daemon]
    )
    made = plan(asked)
    assert on_nodes(made) == taken
    assert unbound_pods(asked, Plan(placements=(Placement("n", "", ("w-0",)),))) == (() if taken else ("w-0",))


def test_s97_a_daemon_that_does_not_come_to_the_node_takes_no_port() -> None:
    daemon = shape(100, host_ports=(HostPort(80),), node_selector={"is": "elsewhere"})
    asked = problem(
        Workloads().add("w", 1, shape(100, host_ports=(HostPort(80),))), ladder(2), nodes=[there("n")], daemons=[daemon]
    )
    made = plan(asked)
    assert on_nodes(made) == {"n": 1}


def test_s33_a_soft_taint_of_a_pool_that_can_launch_nothing_keeps_no_pod_from_its_nodes() -> None:
    """The pool's types are gone from the catalogue; its node is still there."""
    soft = Taint("slow", "PreferNoSchedule")
    node = replace(there("n", **{lbl.NODEPOOL: "old"}), taints=(soft,))
    old = pool("old", spec(lbl.INSTANCE_TYPE, "In", "t99"), taints=(soft,))
    work = Workloads().add("w", 1, shape(node_selector={lbl.NODEPOOL: "old"}))
    assert on_nodes(plan(problem(work, ladder(2), old, pool("new"), nodes=[node]))) == {"n": 1}
    hard = replace(node, taints=(Taint("slow", "NoSchedule"),))
    assert on_nodes(plan(problem(work, ladder(2), old, pool("new"), nodes=[hard]))) == {}
