"""The worked cases of a NodeClaim's life (L-477 to L-505)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import EvictPod, LaunchInstance, TerminateInstance
from kerf.engine.record.observations import LaunchAnswered, ObjectGone, Observation, SettingsSeen
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.lives import PROVIDER, UNREGISTERED, asked, claim_of, in_service, launched, types
from tests.support.world import World
from tests.support.worlds.drain import drain, evicted, forced, put, serving

MINUTE = 60_000
STARTUP = Taint("warming", "NoExecute")


def own(world: World) -> NodeClaim:
    """The claim of `n1`, or the only one."""
    claims = world.runtime.state.facts.claims.values()
    return next((claim for claim in claims if claim.node == "n1"), None) or claim_of(world)


def condition(world: World, kind: str) -> tuple[str, str]:
    shown = claim_conditions(own(world), world.runtime.state, world.now)
    found: dict[str, Condition] = {shown_condition.type: shown_condition for shown_condition in shown}
    return found[kind].status, found[kind].reason


def registered(**changes: object) -> World:
    """`n1` has registered, and nothing has been said of its initialization."""
    world = launched(**changes)
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    return world


# ── launch ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(world: World, code: str = "Throttled") -> None:
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code=code, message=code)))


def test_l477_a_launch_that_fails_is_tried_again_for_five_minutes() -> None:
    world = asked()
    name, deadline = claim_of(world).name, claim_of(world).created + 5 * MINUTE
    tries = 1
    refused(world)
    while world.now < deadline - 1_000:
        world.after(1_000)
        if world.launches():
            tries += 1
            refused(world)
            assert (claim_of(world).name, condition(world, "Launched")) == (name, ("Unknown", "LaunchFailed"))
    assert tries > 3
    world.after(1_000)
    assert "claim.launch-timed-out" in types(world)
    assert name not in world.runtime.state.facts.claims


def test_l479_a_node_that_never_joins_has_fifteen_minutes_from_the_claims_creation() -> None:
    """Not from its launch, which took almost five."""
    world = asked()
    created = claim_of(world).created
    world.now = created + 4 * MINUTE + 58_000
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.after(created + 15 * MINUTE - 1 - world.now)
    assert claim_of(world).state == "launched"
    world.after(1)
    assert [type(intent) for _, intent in world.intents] == [TerminateInstance]
    assert claim_of(world).why == "registration-timeout"


def test_l482_without_capacity_the_claim_is_over_at_once_and_the_next_plan_makes_another() -> None:
    """Nothing is to be ended, and the NodePool is as well as before."""
    world = asked()
    first = claim_of(world).name
    ((ref, order),) = world.launches()
    code = "InsufficientInstanceCapacity"
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", code=code, message=code)))
    assert first not in world.runtime.state.facts.claims
    assert not [intent for _, intent in world.intents if isinstance(intent, TerminateInstance)]
    assert world.runtime.state.facts.health["default"].ring == ()
    world.after(10_000)
    assert [intent.claim != first for _, intent in world.intents if isinstance(intent, LaunchInstance)] == [True]


# ── registration and initialization ─────────────────────────────────────────────────────────────────────────────────


def test_l488_a_startup_taint_that_comes_back_later_is_a_taint_like_any_other() -> None:
    world = registered(startup_taints=(STARTUP,))
    world.node("n1", PROVIDER, registered="true", taints=(STARTUP,))
    assert problem_of(world.runtime.state, world.now).nodes[0].taints == ()
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true")
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(STARTUP,))
    assert claim_of(world).state == "initialized"
    assert problem_of(world.runtime.state, world.now).nodes[0].taints == (STARTUP,)


def test_l489_a_resource_that_is_asked_for_and_not_allocatable_is_waited_for() -> None:
    world = registered()
    claim_of(world).requests["nvidia.com/gpu"] = 1
    world.node("n1", PROVIDER, registered="true")
    node = world.runtime.state.facts.nodes["n1"]
    gpu = {"nvidia.com/gpu": 1}
    world.see(Observation(replace(node, capacity=gpu, allocatable={**node.allocatable, "nvidia.com/gpu": 0})))
    assert condition(world, "Initialized") == ("Unknown", "ResourceNotRegistered")
    (order,) = world.see(Observation(replace(node, capacity=gpu, allocatable={**node.allocatable, **gpu})))
    assert order.node == "n1"  # type: ignore[union-attr]


def test_l490_a_readiness_taint_holds_initialization_back_and_no_pod() -> None:
    world = registered()
    taint = Taint("readiness.k8s.io/net", "NoSchedule")
    world.node("n1", PROVIDER, registered="true", taints=(taint,))
    assert condition(world, "Initialized") == ("Unknown", "KnownEphemeralTaintsExist")
    assert problem_of(world.runtime.state, world.now).nodes[0].taints == ()


def test_l491_a_cordoned_node_is_initialized_and_keeps_its_taint_for_plans() -> None:
    cordon = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
    world = registered()
    world.node("n1", PROVIDER, registered="true", taints=(cordon,))
    assert problem_of(world.runtime.state, world.now).nodes[0].taints == (cordon,)
    assert [intent.node for _, intent in world.intents] == ["n1"]  # type: ignore[union-attr]
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(cordon,))
    assert claim_of(world).state == "initialized"


def test_l492_a_node_that_registers_and_is_never_ready_stays() -> None:
    world = launched()
    created = claim_of(world).created
    world.after(created + 14 * MINUTE + 59_000 - world.now)
    world.node("n1", PROVIDER, ready=False, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n1", PROVIDER, ready=False, registered="true")
    world.after(10 * 3_600_000)
    assert claim_of(world).state == "registered"


# ── the way out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_l498_the_deadline_is_the_deletion_and_the_grace_period_and_a_pod_is_left_its_own() -> None:
    world = serving(termination_grace_period=60 * MINUTE)
    put(world, "slow", grace=600, do_not_disrupt="true")
    begun = world.now
    drain(world)
    assert claim_of(world).deadline == begun + 60 * MINUTE
    world.after(50 * MINUTE)
    assert forced(world) == {}
    world.after(1)
    assert forced(world) == {"slow": 599}, "the pod has ten minutes, less the moment"


def test_l499_without_any_grace_pods_have_a_second() -> None:
    world = serving(termination_grace_period=0)
    put(world, "web", grace=30)
    drain(world)
    assert own(world).deadline == world.now
    assert (forced(world), evicted(world)) == ({"web": 1}, [])


def test_l501_a_protected_pod_holds_the_drain_for_ever() -> None:
    world = serving()
    put(world, "kept", do_not_disrupt="true")
    put(world, "web")
    drain(world)
    assert evicted(world) == ["web"]
    world.answer_all()
    world.see(Observation(ObjectGone("pod", "uid-web")))
    world.after(24 * 3_600_000)
    assert (own(world).state, own(world).drained, evicted(world), forced(world)) == ("draining", 0, [], {})


def test_l502_a_pod_that_tolerates_the_taint_stays_to_the_end() -> None:
    world = serving()
    put(world, "stays", tolerations=(Toleration("karpenter.sh/disrupted", "Exists"),))
    drain(world)
    assert not [intent for _, intent in world.intents if isinstance(intent, EvictPod)]
    world.after(5_000)
    assert [intent.instance for _, intent in world.intents if isinstance(intent, TerminateInstance)] == ["i-1"]


def test_l503_a_drain_takes_five_seconds_even_if_the_pods_are_gone_after_one() -> None:
    world = serving()
    put(world, "web")
    drain(world)
    begun = own(world).drain_started
    world.after(1_000)
    world.see(Observation(ObjectGone("pod", "uid-web")))
    world.after(3_999)
    assert condition(world, "Drained")[0] == "Unknown"
    world.after(1)
    assert condition(world, "Drained")[0] == "True"
    assert own(world).drained == begun + 5_000


def test_l504_repair_brings_a_deadline_that_is_ahead_forward() -> None:
    world = in_service(termination_grace_period=60 * MINUTE)
    world.see(Observation(SettingsSeen(Settings(node_repair=True))))
    for index in range(2, 7):
        node = replace(world.runtime.state.facts.nodes["n1"], name=f"n{index}", provider_id=f"aws:///z/{index}")
        world.see(Observation(node))
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, ready=False, ready_since=world.now)))
    claim_of(world).deadline = world.now + 60 * MINUTE
    world.after(30 * MINUTE)
    assert (claim_of(world).why, claim_of(world).deadline) == ("unhealthy", world.now)
