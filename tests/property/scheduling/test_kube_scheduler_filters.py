"""The two models of kube-scheduler agree, filter by filter.

The engine rates its plans with one model (`engine.scheduling.kube_scheduler`); the simulated cluster binds pods by
another, written independently (`adapters.simulation.scheduler`). Each filter plugin is asked of both, for random pods
and nodes.

Left out is what only one of them can meet: terms without expressions, and matchFields (the API server and DaemonSets
use them), negative free resources, and pods that are being deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer
from kerf.adapters.simulation.cluster.controllers.volumes import Volumes
from kerf.adapters.simulation.scheduler import filters as simulated
from kerf.adapters.simulation.scheduler.topology_filters import TopologyFilter
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    HostPort,
    NodeTerm,
    Pod,
    PodShape,
    Resources,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeRef,
)
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeClaim, VolumeFacts
from kerf.engine.model.labels import HOSTNAME, ZONE
from kerf.engine.scheduling.kube_scheduler import filters
from kerf.engine.scheduling.kube_scheduler.equivalence_classes import EquivalenceClasses
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsage
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod, Problem
from tests.support.scenarios.problems import Workloads
from tests.support.strategies.examples import examples

many = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])

# ── pods and nodes ──────────────────────────────────────

NUMBERS = (
    "1",
    "5",
    "-3",
    "007",
    "+5",
    "-0",
    "0",
    "",
    "5e2",
    "1_000",
    " 5",
    "9223372036854775807",
    "9223372036854775808",
)
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
APPS = ("a", "b", "c")
KEYS = (ZONE, HOSTNAME, "rack")

amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 4))
taints = st.builds(
    Taint, st.sampled_from(["x", "y"]), st.sampled_from(EFFECTS), st.sampled_from(["red", "blue", *NUMBERS])
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", "Equal", "Exists", "Lt", "Gt"]),
    st.sampled_from(["red", "blue", *NUMBERS]),
    st.sampled_from(["", *EFFECTS]),
)
ports = st.builds(
    HostPort,
    st.sampled_from([80, 443]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2", "::"]),
)
several_ports = st.lists(ports, max_size=3).map(tuple)


@st.composite
def node_terms(draw: st.DrawFn) -> NodeTerm:
    """Terms of different keys, as people write them; of one key several make a range."""
    found = []
    for key in draw(st.lists(st.sampled_from(["size", "disk", "rack"]), min_size=1, max_size=2, unique=True)):
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
        if operator in ("Gt", "Lt"):
            values: tuple[str, ...] = (draw(st.sampled_from(["0", "4", "007", "+5"])),)
        elif operator in ("In", "NotIn"):
            values = tuple(draw(st.lists(st.sampled_from(["4", "8", "ssd"]), min_size=1, max_size=2, unique=True)))
        else:
            values = ()
        found.append(Expression(key, operator, values))
    return NodeTerm(tuple(found))


node_labels = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(["4", "8", "007", "+9", "1_000", "ssd"]) for key in ("size", "disk", "rack")}
)
selectors = st.one_of(
    st.none(),
    st.builds(Selector, st.sampled_from([{}, {"app": "a"}, {"app": "b"}])),
    st.builds(
        Selector,
        st.just({}),
        st.sampled_from(
            [
                (Expression("app", operator, ("a",) if "In" in operator else ()),)
                for operator in ("In", "NotIn", "Exists")
            ]
        ),
    ),
)


@st.composite
def topology_shapes(draw: st.DrawFn) -> PodShape:
    spreads = st.builds(
        SpreadConstraint,
        st.sampled_from(KEYS),
        st.integers(1, 2),
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        selectors,
        st.sampled_from([None, 1, 3]),
        st.sampled_from([(), ("app",)]),
        st.sampled_from(["Honor", "Ignore"]),
        st.sampled_from(["Honor", "Ignore"]),
    )
    terms = st.builds(
        AffinityTerm,
        st.sampled_from(KEYS),
        selectors,
        st.sampled_from([(), ("other",)]),
        st.sampled_from([None, None, Selector(), Selector({"team": "red"})]),
        st.sampled_from([0, 0, 10]),
        st.sampled_from([(), ("app",)]),
    )
    return PodShape(
        requests={"cpu": 1},
        labels={"app": draw(st.sampled_from(APPS))},
        node_selector=draw(st.sampled_from([{}, {}, {"rack": "4"}])),
        tolerations=tuple(draw(st.lists(st.just(Toleration("x", "Exists")), max_size=1))),
        spread=tuple(draw(st.lists(spreads, max_size=2))),
        affinity=tuple(draw(st.lists(terms, max_size=2))),
        anti_affinity=tuple(draw(st.lists(terms, max_size=1))),
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[tuple[PodShape, str, int]], PodShape]:
    """Nodes, bound pods (shape, namespace, number of the node), and a pod that waits."""
    nodes = []
    for number in range(draw(st.integers(1, 4))):
        labels = {HOSTNAME: f"n{number}", **draw(st.fixed_dictionaries({}, optional={"rack": st.sampled_from("45")}))}
        labels |= draw(st.sampled_from([{}, {ZONE: "z1"}, {ZONE: "z1"}, {ZONE: "z2"}]))
        own = draw(st.lists(st.builds(Taint, st.just("x"), st.sampled_from(EFFECTS)), max_size=1))
        nodes.append(Node(f"n{number}", labels=labels, taints=tuple(own)))
    shapes = draw(st.lists(topology_shapes(), min_size=1, max_size=3))
    places = st.tuples(st.sampled_from(shapes), st.sampled_from(["default", "other"]), st.integers(0, len(nodes) - 1))
    return nodes, draw(st.lists(places, max_size=6)), shapes[0]


# ── filters that look at one node ──────────────────────────────────────


@given(amounts, amounts, st.integers(0, 1))
@many
def test_node_resources_fit(requests: Resources, free: Resources, pods: int) -> None:
    free = {**free, "pods": pods}
    ours = filters.node_resources_fit({**requests, "pods": 1}, free)
    assert ours == simulated.resources_fit(requests, free)


@given(st.lists(taints, max_size=3), st.lists(tolerations, max_size=3).map(tuple))
@example([Taint("x", "NoSchedule", "007")], (Toleration("x", "Gt", "5"),))
@example([Taint("x", "NoSchedule", "7")], (Toleration("x", "Lt", "+9"),))
@many
def test_taint_toleration(on_node: list[Taint], tolerated: tuple[Toleration, ...]) -> None:
    """KEP-5471: Lt and Gt compare canonical decimal integers only."""
    shape = PodShape(tolerations=tolerated)
    ours = filters.taint_toleration(on_node, tolerated)
    assert ours == simulated.taints_tolerated(shape, on_node, ("NoSchedule", "NoExecute"))


@given(several_ports, several_ports)
@many
def test_node_ports(wanted: tuple[HostPort, ...], used: tuple[HostPort, ...]) -> None:
    assert filters.node_ports(wanted, used) == simulated.ports_free(wanted, used)


@given(
    st.lists(node_terms(), max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(["size", "zone"]), st.sampled_from(["4", "8"])),
    node_labels,
)
@example((NodeTerm((Expression("size", "Gt", ("4",)),)),), {}, {"size": "1_000"})
@many
def test_node_affinity(terms: tuple[NodeTerm, ...], selector: dict[str, str], labels: dict[str, str]) -> None:
    shape = PodShape(node_selector=selector, required_terms=terms)
    ours = filters.node_affinity(filters.required_alternatives(shape), Requirements.of_labels(labels))
    assert ours == simulated.node_selected(shape, Node("n", labels=labels))


@st.composite
def volumes(draw: st.DrawFn) -> tuple[VolumeFacts, list[str], str]:
    """Claims with and without volumes, the claims of a pod that is on the node, and the claim of one that waits."""
    zones = [(), (NodeTerm((Expression(ZONE, "In", ("z1",)),)),), (NodeTerm((Expression(ZONE, "In", ("z2",)),)),)]
    drivers = st.sampled_from(["ebs.csi.aws.com", "fast.example.com"])
    classes = {"c": StorageClass("c", draw(drivers), topologies=draw(st.sampled_from(zones)))}
    claims, there = {}, {}
    for number in range(3):
        name = f"v{number}"
        if draw(st.booleans()):
            there[name] = Volume(name, draw(drivers), draw(st.sampled_from(zones)))
            claims[f"default/{name}"] = VolumeClaim("default", name, name, phase="Bound", bind_completed=True)
        else:
            claims[f"default/{name}"] = VolumeClaim("default", name, storage_class="c")
    limits = draw(st.dictionaries(drivers, st.integers(2, 3)))
    on_node = draw(st.lists(st.sampled_from(["v0", "v1"]), max_size=2, unique=True))
    return VolumeFacts(claims, there, classes, {"n": limits}), on_node, draw(st.sampled_from(["v0", "v1", "v2"]))


@given(volumes(), st.sampled_from([{ZONE: "z1"}, {ZONE: "z2"}, {}]))
@many
def test_volumes(asked: tuple[VolumeFacts, list[str], str], labels: dict[str, str]) -> None:
    """VolumeBinding, VolumeZone and NodeVolumeLimits. Of each driver a node takes two volumes or more, so that no
    limit is exceeded before the pod comes."""
    facts, on_node, claim = asked
    shapes = [PodShape(volumes=(VolumeRef("data", name),)) for name in (*on_node, claim)]
    node = Node("n", labels=labels)
    api = ApiServer(Clock(0))
    _fill(api, [node], [(shape, "default", 0) for shape in shapes[:-1]])
    for item in (*facts.claims.values(), *facts.volumes.values(), *facts.classes.values()):
        api.put(item)
    api.put(CSINode("n", dict(facts.limits["n"])))
    waiting = Pod("waits", "default", "waits", api.keep_shape(shapes[-1]))
    theirs = Volumes(api, Clock(0), SeededRandom(0), Timing()).filter(waiting)
    assert theirs is not None

    problem = _problem([node], [(shape, "default", 0) for shape in shapes[:-1]], shapes[-1], facts)
    info = _info(node)
    info.attach_volumes(_attached(facts, on_node), facts.limits["n"])
    pod_class = EquivalenceClasses(problem, InterpodRules(problem), []).of(problem.pods[0], True)
    ours = pod_class.may_go_to(info) and NodeUsage(info, {}).holds(pod_class.load)
    assert ours == theirs(node)


def _attached(facts: VolumeFacts, names: Sequence[str]) -> set[tuple[str, str]]:
    claims = [facts.claims[f"default/{name}"] for name in names]
    driver_of = {
        claim.key: (facts.volumes[claim.volume] if claim.volume else facts.classes["c"]).driver for claim in claims
    }
    return {(driver, key) for key, driver in driver_of.items()}


# ── filters that look at other pods ──────────────────────────────────────

WITH_A_AND_B = PodShape(
    requests={"cpu": 1},
    labels={"app": "c"},
    affinity=(AffinityTerm(ZONE, Selector({"app": "a"})), AffinityTerm(ZONE, Selector({"app": "b"}))),
)
"""A pod that must be with a pod that is both, which none can be."""


@pytest.mark.slow
@given(clusters())
@example(
    (
        [Node("n0", labels={HOSTNAME: "n0", ZONE: "z1"})],
        [(PodShape(labels={"app": "a"}), "default", 0), (PodShape(labels={"app": "b"}), "default", 0)],
        WITH_A_AND_B,
    )
)
@many
def test_pod_topology_spread_and_interpod_affinity(
    cluster: tuple[list[Node], list[tuple[PodShape, str, int]], PodShape],
) -> None:
    nodes, bound, shape = cluster
    api = ApiServer(Clock(0))
    topology = TopologyFilter(api)
    _fill(api, nodes, bound)
    check = topology.for_pod(Pod("waits", "default", "waits", api.keep_shape(shape)), shape)
    theirs = [number for number, node in enumerate(nodes) if check is None or check(node)]

    problem = _problem(nodes, bound, shape, None)
    counts = InterpodCounts(problem, InterpodRules(problem), [_info(node) for node in nodes])
    shape_key = problem.pods[0].namespace, problem.pods[0].shape
    assert counts.feasible(shape_key, range(len(nodes))) == theirs
    assert [number for number in range(len(nodes)) if counts.allows(shape_key, number)] == theirs


NAMESPACES = (Namespace("default"), Namespace("other", {"team": "red"}))


def _fill(api: ApiServer, nodes: Sequence[Node], bound: Sequence[tuple[PodShape, str, int]]) -> None:
    """Put these objects into the simulated API server."""
    for namespace in NAMESPACES:
        api.put(namespace)
    for node in nodes:
        api.put(node)
    for number, (shape, name, place) in enumerate(bound):
        api.put(Pod(f"b{number}", name, f"b{number}", api.keep_shape(shape), node=nodes[place].name))


def _problem(
    nodes: Sequence[Node],
    bound: Sequence[tuple[PodShape, str, int]],
    shape: PodShape,
    facts: VolumeFacts | None,
) -> Problem:
    """The engine's problem with these objects and one pod that waits."""
    work = Workloads().add("waits", 1, shape)
    there = [
        BoundPod(f"b{number}", namespace, work.shape(pod), nodes[place].name, name=f"b{number}")
        for number, (pod, namespace, place) in enumerate(bound)
    ]
    pods: tuple[PendingPod, ...] = tuple(work.pods)
    shapes: Mapping[str, PodShape] = work.shapes
    return Problem(pods, shapes, (), {}, namespaces=NAMESPACES, bound=tuple(there), volumes=facts)


def _info(node: Node) -> NodeInfo:
    return NodeInfo(node.name, node.labels, node.taints, {"cpu": 100, "pods": 100}, {"cpu": 100})
