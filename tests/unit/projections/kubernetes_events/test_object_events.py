"""Events about conditions, finalizers, annotations and taints (L-440, L-455 to L-460; EV-4, EV-24, EV-25)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels
from kerf.engine.model.content_digest import content
from kerf.engine.model.disruption_reasons import karpenter_spelling
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, PlannedClaim
from kerf.engine.record.observations import (
    CatalogueSeen,
    ClocksAgree,
    ClocksDiffer,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from kerf.engine.state.state import Facts, State
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent
from kerf.projections.kubernetes_events.object_events import ObjectEvents
from tests.support import lives
from tests.support.lives import PROVIDER, claim_of
from tests.support.records import whole_life
from tests.support.world import NODE_CLASS, World


def told(world: World) -> list[KubernetesEvent]:
    """Of the whole record, by the state as it is now."""
    events = ObjectEvents(State(Facts(), world.runtime.state.indexes.blobs))
    events._state = world.runtime.state
    return [event for entry in world.store.entries for event in events.apply(entry)]


def latest(world: World, events: ObjectEvents) -> list[KubernetesEvent]:
    return [event for entry in world.runtime.new_entries for event in events.apply(entry)]


def test_l459_l460_a_claim_tells_its_conditions_and_its_end() -> None:
    found = [event.reason for event in told(whole_life()) if event.about.kind == "NodeClaim"]
    assert found == [
        "Launched", "Registered", "Initialized", "Ready", "DisruptionReason", "Drained", "VolumesDetached", "Finalized",
    ]  # fmt: skip


def test_l459_a_claim_is_told_once_that_it_has_drifted_and_what_it_goes_for() -> None:
    """That more of it has drifted by now is no change of its condition."""
    only = RequirementSpec(labels.INSTANCE_TYPE, "In", ("c5.large",))
    world = lives.in_service(budgets=(Budget("0"),))
    events, pool = ObjectEvents(world.runtime.state), world.runtime.state.facts.pools["default"]
    drifted = replace(pool, requirements=(*pool.requirements, only))
    world.see(Observation(drifted))
    (event,) = [event for event in latest(world, events) if event.reason == "Drifted"]
    assert (event.type, event.about.kind, event.about.name) == (NORMAL, "NodeClaim", claim_of(world).name)
    told_of = "Status condition transitioned, Type: {}, Status: Unknown -> True, Reason: {}, Message: {}"
    assert event.message == told_of.format("Drifted", "RequirementsDrifted", "RequirementsDrifted")
    before, zone = claim_of(world).differences, RequirementSpec(labels.ZONE, "In", ("nowhere-1a",))
    world.after(1_000)
    world.see(Observation(replace(drifted, requirements=(*drifted.requirements, zone))))
    assert len(claim_of(world).differences) > len(before)
    assert "Drifted" not in [event.reason for event in latest(world, events)]
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    (event,) = [event for event in latest(world, events) if event.reason == "DisruptionReason"]
    claim = claim_of(world)
    assert event.message == told_of.format("DisruptionReason", karpenter_spelling(claim.why), claim.detail)


def test_l459_a_node_pool_tells_its_conditions_when_they_change() -> None:
    world = World()
    world.prepare()
    pool: NodePool = world.runtime.state.facts.pools["default"]
    events = ObjectEvents(world.runtime.state)
    world.see(Observation(replace(pool, weight=7)))
    assert latest(world, events) == []
    world.see(Observation(replace(pool, labels={"bad key!": "x"})))
    found = {event.reason: event.message for event in latest(world, events)}
    assert set(found) == {"ValidationSucceeded", "Ready"}
    told_of = found["ValidationSucceeded"]
    assert "Status: True -> False, Reason: NodePoolValidationFailed, Message: " in told_of
    assert "bad key!" in told_of, "what is wrong, and not only that something is"


def test_l459_l253_a_node_pool_tells_that_its_node_class_is_gone() -> None:
    world = World()
    world.prepare()
    events = ObjectEvents(world.runtime.state)
    world.see(Observation(ObjectGone("nodeclass", NODE_CLASS.key)))
    found = {event.reason: event.message for event in latest(world, events)}
    assert set(found) == {"NodeClassReady", "Ready"}
    assert found["NodeClassReady"].endswith("Reason: NodeClassNotFound, Message: NodeClass default is not there")


@pytest.mark.parametrize(("kind", "told_of"), [("AKSNodeClass", set()), ("EC2NodeClass", {"NodeClassReady", "Ready"})])
def test_l48_the_node_pool_of_another_controller_is_told_nothing(kind: str, told_of: set[str]) -> None:
    """kerf does not write its conditions either."""
    world = World(node_classes="karpenter.k8s.aws/EC2NodeClass")
    world.prepare()
    events = ObjectEvents(world.runtime.state)
    ref = NodeClassRef("karpenter.k8s.aws", kind, "elsewhere")
    pool = replace(world.runtime.state.facts.pools["default"], name="others", node_class=ref)
    world.see(Observation(pool))
    found = {event.reason for event in latest(world, events) if event.about.name == "others"}
    assert found - {"ValidationSucceeded"} == told_of
    world.see(Observation(replace(pool, labels={"bad key!": "x"})))
    assert bool(latest(world, events)) is bool(told_of)


def test_l459_a_node_class_tells_which_of_its_conditions_changed() -> None:
    """Where the user looks who has changed it (A-63)."""
    world = World()
    world.prepare()
    events = ObjectEvents(world.runtime.state)
    status = EC2NodeClassStatus(
        conditions=(
            Condition("Ready", "False", "UnhealthyDependents", "SubnetsReady=False"),
            Condition("SecurityGroupsReady", "True", "SecurityGroupsReady"),
            Condition("SubnetsReady", "False", "SubnetsNotFound", "no subnet has these tags"),
        )
    )
    made = EC2NodeClass(NODE_CLASS.name, EC2NodeClassSpec(), status)
    seen = replace(
        world.runtime.state.facts.node_classes[NODE_CLASS.key], ready=False, uid="uid-class", digest=content(made)[0]
    )
    world.see(Observation(seen, {seen.digest: made}))
    found = [event for event in latest(world, events) if event.about.kind == "EC2NodeClass"]
    assert {event.about.api_version for event in found} == {"karpenter.k8s.aws/v1"}
    assert {event.about.uid for event in found} == {"uid-class"}
    told_of = {event.reason: event.message.partition("Status: ")[2] for event in found}
    assert told_of == {
        "Ready": "True -> False, Reason: UnhealthyDependents, Message: SubnetsReady=False",
        "SecurityGroupsReady": "Unknown -> True, Reason: SecurityGroupsReady",
        "SubnetsReady": "Unknown -> False, Reason: SubnetsNotFound, Message: no subnet has these tags",
    }
    world.see(Observation(replace(seen, generation=2)))
    assert latest(world, events) == []
    world.see(Observation(replace(seen, group="karpenter.kwok.sh", kind="KWOKNodeClass", digest="")))
    latest(world, events)
    world.see(Observation(replace(seen, generation=3)))
    assert latest(world, events) == [], "another class of the same name is another"


def test_l459_a_message_that_is_too_long_for_an_event_is_cut() -> None:
    world = World()
    world.prepare()
    pool: NodePool = world.runtime.state.facts.pools["default"]
    events = ObjectEvents(world.runtime.state)
    world.see(Observation(replace(pool, labels={f"bad key {number}!": "x" for number in range(100)})))
    (event,) = [event for event in latest(world, events) if event.reason == "ValidationSucceeded"]
    assert len(event.message) == 1024


def test_l82_a_node_pool_tells_that_its_nodes_register() -> None:
    world = lives.launched()
    events = ObjectEvents(world.runtime.state)
    world.node("n1", PROVIDER, taints=(lives.UNREGISTERED,))
    assert latest(world, events) == []
    world.answer_all()
    found = latest(world, events)
    world.node("n1", PROVIDER, registered="true")
    found += latest(world, events)
    (event,) = [of_pool for of_pool in found if of_pool.about.kind == "NodePool"]
    assert (event.reason, "Unknown -> True" in event.message) == ("NodeRegistrationHealthy", True)


def test_l455_a_node_that_joins_without_the_unregistered_taint() -> None:
    world = lives.launched()
    events = ObjectEvents(world.runtime.state)
    world.node("n1", PROVIDER)
    (event,) = latest(world, events)
    assert (event.type, event.reason, event.about.name) == (WARNING, "UnregisteredTaintMissing", claim_of(world).name)
    world = lives.launched()
    events = ObjectEvents(world.runtime.state)
    world.node("n1", PROVIDER, taints=(lives.UNREGISTERED,))
    assert latest(world, events) == []


@pytest.mark.parametrize("text", ["tomorrow", "-1h", "0s"])
def test_ev24_a_do_not_disrupt_that_counts_for_nothing_is_told_once(text: str) -> None:
    world = lives.in_service()
    events, pod = ObjectEvents(world.runtime.state), world.pods["a"]
    world.see(Observation(replace(pod, do_not_disrupt=text)))
    (event,) = latest(world, events)
    assert (event.type, event.reason, event.about.uid) == (WARNING, "InvalidDoNotDisruptAnnotation", pod.uid)
    world.see(Observation(replace(pod, do_not_disrupt=text, ready=True)))
    assert latest(world, events) == []


def test_ev25_a_do_not_disrupt_of_a_duration_tells_its_end() -> None:
    world = lives.in_service()
    events, pod = ObjectEvents(world.runtime.state), replace(world.pods["a"], started=world.now)
    world.see(Observation(replace(pod, do_not_disrupt="1h")))
    (event,) = latest(world, events)
    assert (event.type, event.reason) == (NORMAL, "DoNotDisruptUntil")
    assert event.key == (pod.uid, str(world.now + 3_600_000))
    world.see(Observation(replace(pod, do_not_disrupt="true")))
    assert latest(world, events) == []


def test_ev26_d12_the_end_of_a_do_not_disrupt_is_told_when_it_comes() -> None:
    world = lives.in_service()
    events, pod = ObjectEvents(world.runtime.state), replace(world.pods["a"], started=world.now)
    world.see(Observation(replace(pod, do_not_disrupt="30s")))
    latest(world, events)
    world.after(29_000)
    world.see(Observation(world.pods["b"]))
    assert latest(world, events) == []
    world.after(1_000)
    world.see(Observation(replace(world.pods["b"], ready=False)))
    (event,) = latest(world, events)
    assert (event.type, event.reason, event.key) == (NORMAL, "DoNotDisruptGracePeriodElapsed", (pod.uid,))
    assert "for 30s" in event.message


@pytest.mark.parametrize(
    ("later", "told_of"),
    [({}, True), ({"do_not_disrupt": "1h"}, False), ({"deleting": 1}, False), ({"phase": "Succeeded"}, False)],
)
def test_ev26_d12_a_process_that_begins_later_tells_the_end_if_it_still_is_one(
    later: dict[str, object], told_of: bool
) -> None:
    """An annotation that was changed since has another end; a pod that goes or is over has none."""
    world = lives.in_service()
    pod = replace(world.pods["a"], started=world.now, do_not_disrupt="30s")
    world.see(Observation(pod))
    events = ObjectEvents(world.runtime.state)
    if later:
        world.see(Observation(replace(pod, **later)))
        latest(world, events)
    world.after(30_000)
    world.see(Observation(replace(world.pods["b"], ready=False)))
    reasons = [event.reason for event in latest(world, events)]
    assert ("DoNotDisruptGracePeriodElapsed" in reasons) == told_of


def test_ev26_d12_in_a_still_cluster_the_end_is_told_without_an_entry() -> None:
    """None comes for hours: whoever looks at what has ended finds it, once."""
    world = lives.in_service()
    world.see(Observation(replace(world.pods["a"], started=world.now, do_not_disrupt="30s")))
    events = ObjectEvents(world.runtime.state)
    assert [event.reason for event in events.lasting(world.now + 29_000)] == ["DoNotDisruptUntil"]
    assert events.elapsed(world.now + 29_000) == []
    assert [event.reason for event in events.elapsed(world.now + 30_000)] == ["DoNotDisruptGracePeriodElapsed"]
    assert (events.elapsed(world.now + 60_000), events.lasting(world.now + 60_000)) == ([], [])


def test_ev24_ev26_what_was_told_is_not_told_again_by_the_next_process() -> None:
    """An end that came since its latest entry is."""
    world = lives.in_service()
    over, wrong, late = (
        replace(world.pods[name], started=world.now, do_not_disrupt=text)
        for name, text in (("a", "30s"), ("b", "tomorrow"), ("c", "40s"))
    )
    world.see(Observation(over), Observation(wrong), Observation(late))
    world.after(30_000)
    world.see(Observation(replace(world.pods["d"], ready=False)))
    world.now += 10_000
    world.runtime = world.start()
    events = ObjectEvents(world.runtime.state)
    events.recall(world.store.scan())
    world.see(Observation(replace(over, ready=False)), Observation(replace(wrong, ready=False)))
    (event,) = latest(world, events)
    assert (event.reason, event.about.uid) == ("DoNotDisruptGracePeriodElapsed", late.uid)


def test_ev25_ev26_a_pod_on_a_node_that_is_not_kerfs_holds_none_of_its_nodes() -> None:
    """Such as one of a managed node group. A text that counts for nothing is told all the same (EV-24)."""
    world = lives.in_service()
    events, pod = ObjectEvents(world.runtime.state), replace(world.pods["a"], started=world.now, node="other")
    world.see(Observation(replace(pod, do_not_disrupt="30s")))
    assert latest(world, events) == []
    assert events.lasting(world.now) == []
    world.after(30_000)
    world.see(Observation(replace(world.pods["b"], ready=False)))
    assert latest(world, events) == []
    world.see(Observation(replace(pod, do_not_disrupt="tomorrow")))
    assert [event.reason for event in latest(world, events)] == ["InvalidDoNotDisruptAnnotation"]


def test_ev26_d12_while_the_clocks_differ_no_do_not_disrupt_is_over() -> None:
    """The drain does not evict the pod then."""
    world = lives.in_service()
    world.see(Observation(replace(world.pods["a"], started=world.now, do_not_disrupt="30s")))
    events = ObjectEvents(world.runtime.state)
    world.see(Observation(ClocksDiffer(jump=0, skew=3_600_000)))
    world.after(30_000)
    world.see(Observation(replace(world.pods["b"], ready=False)))
    assert "DoNotDisruptGracePeriodElapsed" not in [event.reason for event in latest(world, events)]
    world.see(Observation(ClocksAgree()))
    assert "DoNotDisruptGracePeriodElapsed" in [event.reason for event in latest(world, events)]


def test_ev4_a_replacement_is_waited_for_from_its_launch_on() -> None:
    """L-440; what is no replacement is not."""
    world = whole_life()
    decided = next(entry for entry in world.store.entries if isinstance(entry.payload, Decision))
    launched = next(entry for entry in world.store.entries if entry.type == "claim.launched")
    planned = PlannedClaim(launched.payload.claim, "default", (), (), (), {}, 0.0, ())
    begun = MoveStepResult("7.0", "started", Reason("x"), begun=Move("drifted", ("old",), (planned,)))
    events = ObjectEvents(State(Facts(), world.runtime.state.indexes.blobs))
    assert {event.reason for event in events.apply(launched)} == {"Launched"}
    assert events.apply(replace(decided, payload=replace(decided.payload, result=begun, intents=()))) == []
    assert {event.reason for event in events.apply(launched)} == {"Launched", "DisruptionWaitingReadiness"}


def test_l463_a376_a481_node_pools_that_allow_a_shifted_zone_are_told_and_told_when_it_is_over() -> None:
    world = World()
    world.prepare()
    facts = world.runtime.state.facts
    pool, (key, digest) = facts.pools["default"], next(iter(facts.catalogues.items()))
    elsewhere = replace(pool, name="elsewhere", requirements=(RequirementSpec(labels.ZONE, "In", ("nowhere-1a",)),))
    world.see(Observation(elsewhere))
    events = ObjectEvents(world.runtime.state)
    catalogue = world.runtime.state.indexes.blobs.catalogue(digest)
    zone = catalogue.types[0].offerings[0].zone
    named = [replace(o, zone_id="z1") if o.zone == zone else o for o in catalogue.types[0].offerings]
    shifted = replace(catalogue, types=(replace(catalogue.types[0], offerings=tuple(named)),), shifted=("z1",))
    see_catalogue(world, key, shifted)
    (active,) = latest(world, events)
    assert (active.about.name, active.type, active.reason) == ("default", WARNING, "ZonalShiftActive")
    assert f"zone {zone} (z1)" in active.message
    see_catalogue(world, key, replace(shifted, shifted=()))
    (cleared,) = latest(world, events)
    assert (cleared.about.name, cleared.type, cleared.reason) == ("default", NORMAL, "ZonalShiftCleared")


def see_catalogue(world: World, node_class: str, catalogue: Catalogue) -> None:
    digest, _ = content(catalogue)
    world.see(Observation(CatalogueSeen(node_class, digest), {digest: catalogue}))
