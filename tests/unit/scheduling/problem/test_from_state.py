"""Which pods a pass is about, and when there is one: from the state to the planner's problem (S-41 to S-48, S-54,
S-58, S-59)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.watch.watched_kinds import observed
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape, Selector, SpreadConstraint, Taint, Toleration
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Decision, LaunchInstance, ProvisionResult
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.departing_pods import MAX_LEAD
from kerf.engine.scheduling.problem.from_state import problem_of
from tests.support.lives import PODS, PROVIDER, in_service, launched
from tests.support.world import Mi, World, pool

SET, DAEMONS, MIRROR = Owner("apps/v1/StatefulSet", "s"), Owner("apps/v1/DaemonSet", "d"), Owner("v1/Node", "n1")


def asked(world: World) -> list[str]:
    """The names of the pods that a pass would be about now."""
    return [pod.name for pod in problem_of(world.runtime.state, world.now).pods]


def seen(world: World, name: str, **changes: Any) -> None:
    shape = PodShape(
        requests={"memory": 100 * Mi}, **{k: changes.pop(k) for k in ("labels", "node_selector") if k in changes}
    )
    digest = content(shape)[0]
    pod = Pod(f"uid-{name}", changes.pop("namespace", "default"), name, digest, created=world.now)
    world.see(Observation(replace(pod, **changes), {digest: shape}))


def test_s41_pods_without_a_node_that_the_scheduler_has_refused_by_namespace_and_name() -> None:
    world = World()
    world.prepare()
    several: dict[str, dict[str, Any]] = {
        "b": {}, "a": {}, "z": {"namespace": "another"}, "bound": {"node": "n1"}, "gated": {"unschedulable": False},
        "daemon": {"owner": DAEMONS}, "mirror": {"owner": MIRROR}, "nominated": {"nominated": "n1"},
    }  # fmt: skip
    for name, changes in several.items():
        seen(world, name, **{"unschedulable": True, **changes})
    assert asked(world) == ["z", "a", "b"]


def test_the_arrival_of_a_pod_is_asked_with_it() -> None:
    """kube-scheduler tries pods of one second in the order in which they came."""
    world = World()
    world.prepare()
    seen(world, "a", unschedulable=True, arrival=8)
    seen(world, "b", unschedulable=True, arrival=7)
    assert [pod.arrival for pod in problem_of(world.runtime.state, world.now).pods] == [8, 7]


def test_s45_pods_of_buffers_come_after_those_that_wait_and_with_the_gate_alone() -> None:
    def names(*, gate: bool) -> list[str]:
        world = World(capacity_buffers=gate)
        world.prepare()
        shape = PodShape(requests={"memory": 100 * Mi})
        digest = content(shape)[0]
        world.see(
            Observation(PodTemplate("default", "spare", digest), {digest: shape}),
            Observation(CapacityBuffer("buf", "default", "a", template="spare", replicas=2)),
        )
        world.pending("z")
        return asked(world)

    assert names(gate=True) == ["z", "capacity-buffer-a-1", "capacity-buffer-a-2"]
    assert names(gate=False) == ["z"]


# ── NodePools ──────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "ready"),
    [
        ({}, True),
        ({"ready": False}, False),
        ({"requirements": (RequirementSpec(lbl.HOSTNAME, "In", ("n",)),)}, False),
        ({"labels": {"karpenter.sh/own": "x"}}, False),
        ({"node_class": NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "another")}, False),
        ({"node_class": NodeClassRef("example.com", "EC2NodeClass", "default")}, False),
    ],
)
def test_s61_a_pool_is_ready_that_is_valid_and_whose_class_is(changes: dict[str, Any], ready: bool) -> None:
    """An object that is new says nothing of it yet: nobody has written its status."""
    world = World()
    world.prepare(replace(pool(), **changes))
    (given,) = problem_of(world.runtime.state, world.now).pools
    assert given.pool.ready is ready


# ── nodes ──────────────────────────────────────


def test_s71_a_node_of_a_pool_without_a_claim_is_no_place() -> None:
    """Unlike in the reference: its instance is an orphan and is ended (L-238). Without the label it is a place."""
    world = World()
    world.prepare()
    known = Node("n2", provider_id="aws:///z/i-2", labels={lbl.NODEPOOL: "default"}, allocatable={"memory": 100 * Mi})
    world.see(Observation(known), Observation(replace(known, name="n3", provider_id="", labels={})))
    assert [node.name for node in problem_of(world.runtime.state, world.now).nodes] == ["n3"]


def test_s72_taints_that_go_by_themselves_count_from_initialization_on() -> None:
    """Also one that the NodePool itself gives, and that a controller of readiness takes away."""
    cni, team = Taint("cni", "NoSchedule"), Taint("team", "NoExecute")
    ready = Taint("readiness.k8s.io/net", "NoSchedule")
    world = World()
    world.prepare(pool(taints=(ready, team), startup_taints=(cni,)))
    world.pending("a", tolerations=(Toleration(operator="Exists"),))

    def counting() -> tuple[Taint, ...]:
        (node,) = problem_of(world.runtime.state, world.now).nodes
        return node.taints

    world.after(1_000)
    assert counting() == (team,)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    assert counting() == (team,)
    world.node("n1", PROVIDER, registered="true", taints=(cni, ready, team))
    assert counting() == (team,)
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(ready, team))
    assert counting() == (ready, team)


def test_s68_s73_a_node_counts_against_limits_by_what_it_reports() -> None:
    """Until it is initialized, what it does not report is what its type promises."""
    world = launched(limits={"cpu": 100_000})
    ((given,), promised) = problem_of(world.runtime.state, world.now).pools, {"cpu": 2000, "memory": 7577 * Mi}
    assert given.usage == {**promised, "pods": 29, "nodes": 1}
    for initialized, memory in (("", 7577 * Mi), ("true", 0)):
        world.node("n1", PROVIDER, registered="true", initialized=initialized)
        node = world.runtime.state.facts.nodes["n1"]
        world.see(Observation(replace(node, capacity={"cpu": 1900, "memory": 0, "example.com/fpga": 1})))
        (given,) = problem_of(world.runtime.state, world.now).pools
        assert (given.usage["cpu"], given.usage["example.com/fpga"]) == (1900, 1)
        assert given.usage.get("memory", 0) == memory


# ── pods of nodes that go ──────────────────────────────────────


def going(world: World) -> World:
    """The node of this world is deleted by a user: its pods will need other places."""
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, deleting=world.now)))
    return world


def test_s46_pods_of_nodes_that_go_come_after_those_that_wait() -> None:
    world = in_service()
    world.pending("zz")
    assert asked(world) == ["zz"]
    assert asked(going(world)) == ["zz", *PODS]
    assert [node.name for node in problem_of(world.runtime.state, world.now).nodes] == []


def test_s46_they_are_not_refused_for_what_they_select() -> None:
    """They run already: S-42 is about pods that wait. One that runs where a label of Karpenter's own stands, which no
    pod that waits may ask for, gets a node that will have it."""
    world = in_service()
    seen(world, "odd", node="n1", phase="Running", node_selector={lbl.REGISTERED: "true"})
    seen(world, "new", unschedulable=True, node_selector={lbl.REGISTERED: "true"})
    planned = plan(problem_of(going(world).runtime.state, world.now))
    assert [group.pods for group in planned.ignored] == [("uid-new",)]
    assert "uid-odd" in planned.placed


@pytest.mark.parametrize(
    ("changes", "moves"),
    [
        ({}, True),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed", "owner": SET}, False),
        ({"deleting": 1}, False),
        ({"deleting": 1, "owner": SET}, True),
        ({"owner": DAEMONS}, False),
        ({"owner": MIRROR}, False),
        ({"do_not_disrupt": "true"}, False),
        ({"do_not_disrupt": "true", "deleting": 1, "owner": SET}, True),
    ],
)
def test_s47_which_pods_of_a_going_node_need_another_place(changes: dict[str, Any], moves: bool) -> None:
    world = in_service()
    seen(world, "p", **{"node": "n1", "phase": "Running", "ready": True, "started": world.now, **changes})
    assert ("p" in asked(going(world))) is moves


def test_s47_not_those_that_a_budget_never_lets_go() -> None:
    world = in_service()
    for name, most in (("free", "1"), ("held", "0")):
        seen(world, name, node="n1", phase="Running", ready=True, labels={"app": name})
        budget = PodDisruptionBudget(f"u-{name}", "default", name, Selector({"app": name}), max_unavailable=most)
        world.see(Observation(budget))
    assert {"free", "held"} & set(asked(going(world))) == {"free"}


@pytest.mark.parametrize(
    ("value", "started", "active"),
    [
        ("true", 0, True),
        ("30m", 1_800_000 - MAX_LEAD - 1, True),
        ("30m", 1_800_000 - MAX_LEAD, False),
        ("10m", None, True),
        ("0s", 0, False),
        ("-10m", 0, False),
        ("yes", 0, False),
        ("True", 0, False),
    ],
)
def test_s48_what_do_not_disrupt_says_of_a_pod(value: str, started: int | None, active: bool) -> None:
    """`started`: ms ago; None without a start. Beside pods that leave now a pod is planned for MAX_LEAD before
    its time is up. What counts for nothing is told of (EV-24, test_object_events)."""
    world = in_service()
    at = 0 if started is None else world.now - started
    seen(world, "p", node="n1", phase="Running", started=at, do_not_disrupt=value)
    assert ("p" not in asked(going(world))) is active


# ── when there is a pass ──────────────────────────────────────


def passes(world: World) -> list[tuple[int, Decision]]:
    """Position and decision of each."""
    found = [(entry.position, entry.payload) for entry in world.store.entries if isinstance(entry.payload, Decision)]
    return [(position, made) for position, made in found if isinstance(made.result, ProvisionResult)]


def test_s58_claims_without_an_instance_hold_no_pass_up_and_their_room_counts() -> None:
    """ADR 5: where the reference waits until all of them have launched."""
    world = World()
    world.prepare()
    world.pending("a", memory=3_000 * Mi)
    world.after(1_000)
    (first,) = world.runtime.state.facts.claims
    world.pending("b", memory=10 * Mi)
    world.pending("c", memory=10_000 * Mi)
    world.after(1_000)
    (_, made) = passes(world)[-1]
    assert isinstance(made.result, ProvisionResult)
    assert [claim.pods for claim in made.result.claims] == [("uid-c",)]
    assert [(placement.claim, placement.pods) for placement in made.result.placements] == [(first, ("uid-a", "uid-b"))]


def test_s59_a_pass_plans_cuts_the_types_records_and_launches_in_one_turn() -> None:
    """One decision, with one order a claim, and the claims' requests behind it: what follows is not before it is
    written."""
    world = World(max_instance_types=2)
    world.prepare()
    world.pending("a", "b", memory=10_000 * Mi)
    world.after(1_000)
    ((position, made),) = passes(world)
    assert isinstance(made.result, ProvisionResult)
    names = [claim.name for claim in made.result.claims]
    assert [intent.claim for intent in made.intents if isinstance(intent, LaunchInstance)] == names
    assert len(names) == 2
    requested = [entry for entry in world.store.entries if entry.type == "claim.requested"]
    assert [entry.payload.claim for entry in requested] == names
    assert all(entry.position > position and entry.turn == requested[0].turn for entry in requested)
    world = World(max_instance_types=2)
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((_, made),) = passes(world)
    assert isinstance(made.result, ProvisionResult)
    assert made.result.claims[0].instance_types == ("c5.large", "m5.large")


def test_s54_vertical_pod_autoscalers_are_not_looked_at() -> None:
    """What they predict takes no part in planning; what a resize in place has done is in the pod (S-30)."""
    every = Settings(
        default_spread=(SpreadConstraint(lbl.ZONE),),
        node_overlays=True,
        capacity_buffers=True,
        ignore_dra_requests=False,
    )
    assert not [observation.path for observation in observed(every) if "/autoscaling.k8s.io/" in observation.path]


def test_s169_where_a_plan_put_the_pods_is_kept() -> None:
    """Of new claims, and of those in flight."""
    world = launched()
    (claim,) = world.runtime.state.facts.claims
    assert world.runtime.state.facts.targets == {f"uid-{name}": claim for name in PODS}
    world.pending("late", memory=10 * Mi)
    world.after(1_000)
    assert world.runtime.state.facts.targets["uid-late"] == claim
