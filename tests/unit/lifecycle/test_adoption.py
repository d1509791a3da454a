"""NodeClaim objects without a record (design, idea 5): L-145, L-147, L-189; D-138."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.lifecycle.adoption import MAX_WAIT, awaited_instances
from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Offering
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DeleteNode, DeletePod, EvictPod, LaunchInstance, TaintNode, TerminateInstance
from kerf.engine.record.observations import (
    EffectAnswered,
    InstanceSeen,
    InstancesListed,
    InterruptionSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    ObjectGone,
    Observation,
    TaggedInstance,
)
from tests.support.lives import DISRUPTED, PROVIDER, claim_of, in_service
from tests.support.manifests.nodeclaim_objects import STEPS, claim
from tests.support.records import re_derived
from tests.support.world import NODE_CLASS, START, World
from tests.support.worlds.reservations import held, reserving


def world(*objects: NodeClaimObject) -> World:
    made = World()
    made.prepare()
    if any(manifest.node for manifest in objects):
        ready = any(len(manifest.conditions) == len(STEPS) for manifest in objects)
        made.node("n1", PROVIDER, ready=ready, registered="true", **({"initialized": "true"} if ready else {}))  # type: ignore[arg-type]
    made.see(*map(Observation, objects))
    return made


def adopted(made: World) -> list[ev.Adopted]:
    return [e.payload for e in made.store.entries if isinstance(e.payload, ev.Adopted)]


@pytest.mark.parametrize(("steps", "state"), [(1, "launched"), (2, "registered"), (3, "initialized")])
def test_an_object_with_an_instance_enters_the_state_that_it_shows(steps: int, state: str) -> None:
    made = world(claim(steps))
    found = claim_of(made)
    assert found.state == state
    assert (found.instance, found.provider_id, found.node) == ("i-1", PROVIDER, "n1" if steps > 1 else "")
    assert (found.instance_type, found.zone, found.price) == ("m5.large", "us-west-2a", 0.096)
    assert found.created == START - 120_000
    assert made.intents == []
    assert made.runtime.state.facts.found == {}
    assert re_derived(made.store) == made.store.entries


@pytest.mark.parametrize(
    ("version", "digest", "drift"),
    [
        pytest.param("kerf5", "old", "nodeclass-drift", id="another class than today's"),
        pytest.param("kerf5", "now", "", id="as today"),
        pytest.param("kerf4", "old", "", id="hashed by an older kerf"),
        pytest.param("v6", "old", "", id="hashed by another controller"),
    ],
)
@pytest.mark.parametrize("class_first", [True, False])
def test_a318_what_it_was_launched_by_outlives_the_record(
    version: str, digest: str, drift: str, class_first: bool
) -> None:
    terms = NodeClassTerms(hash="kerf5/now", static={"role": "new"})
    key = "karpenter.k8s.aws/ec2nodeclass-hash"
    now = {key: "now", f"{key}-version": "kerf5"}
    seen = NodeClassSeen("karpenter.k8s.aws", "EC2NodeClass", "default", ready=True, terms=terms, annotations=now)
    one = claim(annotations={key: digest, f"{key}-version": version})
    made = world()
    made.node("n1", PROVIDER, registered="true", initialized="true")
    for news in (seen, one) if class_first else (one, seen):
        made.see(Observation(news))
    assert adopted(made)
    found = claim_of(made).drift
    assert (found.code if found is not None else "") == drift
    assert re_derived(made.store) == made.store.entries


def test_its_node_and_its_pods_are_its_own_at_once() -> None:
    made = World()
    made.prepare()
    made.node("n1", PROVIDER, registered="true", initialized="true")
    made.see(Observation(claim()))
    assert made.runtime.state.indexes.claim_by_node == {"n1": "default-abcde"}
    made.pending("a")
    made.after(1_000)
    assert made.launches() == [], "there is room on the adopted node"


def test_it_is_adopted_once() -> None:
    made = world(claim(), claim())
    made.see(Observation(replace(claim(), annotations={"karpenter.sh/x": "y"})))
    assert len(adopted(made)) == 1


def test_it_expires_by_its_own_age() -> None:
    """It expires by its own age (D-131, L-240)."""
    made = world(claim(expire_after=120_000))
    assert claim_of(made).why == "expired"


def test_l159_one_whose_class_is_missing_is_asked_for_and_refused_although_there_is_no_class_at_all() -> None:
    """By the provider's kind; without it nobody would know whose the claim is."""
    made = World(node_classes=f"{NODE_CLASS.group}/{NODE_CLASS.kind}")
    made.see(Observation(claim(0)))
    made.after(MAX_WAIT)
    ((ref, order),) = made.launches()
    assert order.offers == ()
    refused = LaunchAnswered(ref, "default-abcde", kind="insufficient-capacity", message="no EC2NodeClass default")
    made.see(Observation(refused))
    assert not made.runtime.state.facts.claims
    nobodys = World()
    nobodys.see(Observation(claim(0)))
    assert not nobodys.after(MAX_WAIT)


def test_a20_l48_one_of_another_providers_class_is_left_alone() -> None:
    foreign = NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default")
    made = world(claim(1, node_class=foreign))
    assert made.runtime.next_due() is None
    made.after(3_600_000)
    assert made.runtime.state.facts.claims == {}
    assert made.runtime.listed([OURS]) == [], "nor is its instance ended"


@pytest.mark.parametrize(("instance", "found"), [("i-1", True), ("i-11", False), ("1", False), (PROVIDER, False)])
def test_a18_a354_a_claim_and_its_node_are_found_by_the_instance_in_their_provider_ids(
    instance: str, found: bool
) -> None:
    """Nothing else of the objects of an earlier controller names the instance."""
    made = world(claim())
    made.see(Observation(InterruptionSeen("m-1", "spot_interrupted", instance)))
    assert claim_of(made).why == ("interrupted" if found else "")
    assert [intent.node for _, intent in made.intents if isinstance(intent, TaintNode)] == ["n1"] * found


def test_its_node_is_waited_for_but_not_for_ever() -> None:
    """A claim whose Node is not there counts as one whose Node was deleted (L-193)."""
    made = World()
    made.prepare()
    made.see(Observation(claim()))
    assert adopted(made) == []
    made.node("n1", PROVIDER, registered="true", initialized="true")
    assert claim_of(made).state == "initialized"
    late = World()
    late.prepare()
    late.see(Observation(claim()))
    late.after(MAX_WAIT)
    assert claim_of(late).why == "deleted"


def test_one_that_registers_after_its_adoption_goes_on_as_any_other() -> None:
    made = world(claim(1))
    (order,) = made.node("n1", PROVIDER)
    assert type(order).__name__ == "RegisterNode"


def test_without_the_types_of_its_class_it_waits_but_not_for_ever() -> None:
    made = World()
    made.prepare()
    other = NodeClassRef(NODE_CLASS.group, NODE_CLASS.kind, "gone")
    made.see(Observation(claim(1, node_class=other)))
    assert adopted(made) == []
    assert made.runtime.next_due() == START + MAX_WAIT
    made.after(MAX_WAIT)
    assert [adopted_claim.price for adopted_claim in adopted(made)] == [0.0]
    assert made.runtime.next_due() != START + MAX_WAIT
    assert re_derived(made.store) == made.store.entries


# ── on its way out ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_that_is_being_deleted_goes_on_with_its_drain() -> None:
    made = World()
    made.prepare()
    made.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    made.pending("a")
    made.bind("a", "n1")
    made.see(Observation(claim(deleting=START)))
    assert (claim_of(made).state, claim_of(made).why) == ("draining", "deleted")
    assert [type(intent) for intent in made.see()] == []
    asked = [i for e in made.store.entries if e.type == "decision.made" for i in e.payload.intents]
    assert [type(intent) for intent in asked if not isinstance(intent, LaunchInstance)] == [EvictPod]


def test_one_that_never_registered_is_ended_without_a_drain() -> None:
    """One that never registered is ended without a drain (D-138, L-194)."""
    made = world(claim(1, deleting=START))
    (order,) = [i for e in made.store.entries if e.type == "decision.made" for i in e.payload.intents]
    assert isinstance(order, TerminateInstance)


def test_l189_the_deadline_that_was_promised_stands() -> None:
    annotations = {lbl.TERMINATION_TIMESTAMP: "2023-11-14T22:20:00Z"}
    made = world(claim(deleting=START, termination_grace_period=3_600_000, annotations=annotations))
    assert claim_of(made).deadline == 1_700_000_400_000
    bad = world(claim(deleting=START, termination_grace_period=3_600_000, annotations={lbl.TERMINATION_TIMESTAMP: "x"}))
    assert claim_of(bad).deadline == START + 3_600_000
    assert DeletePod is not None


# ── never launched ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_l145_one_without_an_instance_is_launched_but_looked_for_first() -> None:
    made = world(claim(0))
    ((_, order),) = made.launches()
    assert order.look
    assert order.claim == "default-abcde"
    assert {offer.instance_type for offer in order.offers} == {"m5.large", "r5.large"}
    (found,) = [e.payload for e in made.store.entries if isinstance(e.payload, ev.Requested)]
    assert made.store.entries[found.decision - 1].payload.intents == (order,)
    assert re_derived(made.store) == made.store.entries


def test_a_launch_by_hand_needs_no_pool() -> None:
    """A launch by hand needs no pool (L-145)."""
    made = world(claim(0, labels={"team": "a"}))
    ((ref, order),) = made.launches()
    made.answer_launch(ref, order)
    assert (claim_of(made).state, claim_of(made).node_pool) == ("launched", "")


FUSE = "smarter-devices/fuse"


def with_overlay(*, gate: bool = True) -> World:
    """An overlay gives m5.xlarge a resource and a price."""
    made = World(node_overlays=gate)
    only = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.xlarge",))
    made.see(Observation(NodeOverlay("o", requirements=(only,), price=0.001, capacity={FUSE: 1000})))
    made.prepare()
    return made


def test_a218_node_overlays_count_for_a_launch_by_hand_that_names_its_pool() -> None:
    made = with_overlay()
    made.see(Observation(claim(0, requirements=(), requests={FUSE: 1000})))
    ((ref, order),) = made.launches()
    assert {(offer.instance_type, offer.price) for offer in order.offers} == {("m5.xlarge", 0.001)}
    assert order.by_price
    made.answer_launch(ref, order)
    assert (claim_of(made).price, claim_of(made).capacity[FUSE]) == (0.001, 1000)


@pytest.mark.parametrize("gate", [True, False])
def test_a218_overlays_change_nothing_without_the_gate_or_a_pool(gate: bool) -> None:
    made = with_overlay(gate=gate)
    made.see(Observation(claim(0, requirements=(), labels={"team": "a"} if gate else {lbl.NODEPOOL: "default"})))
    ((_, order),) = made.launches()
    assert (order.offers[0].instance_type, order.by_price) != ("m5.xlarge", True)
    assert min(offer.price for offer in order.offers) > 0.001


@pytest.mark.parametrize("wanted", [lbl.DEDICATED, lbl.DEFAULT_TENANCY])
def test_a230_a_launch_by_hand_on_dedicated_hardware_uses_no_reservation_of_shared_hardware(wanted: str) -> None:
    made = World()
    shared = reserving(held("cr-1"))
    own = Offering("us-west-2a", lbl.ON_DEMAND, 0.2, tenancy=lbl.DEDICATED)
    tenancies = {lbl.TENANCY: (lbl.DEFAULT_TENANCY, lbl.DEDICATED)}
    kinds = (
        replace(kind, offerings=(*kind.offerings, own), requirements={**kind.requirements, **tenancies})
        for kind in shared.types
    )
    made.prepare(catalogue=replace(shared, types=tuple(kinds)))
    made.see(Observation(claim(0, requirements=(RequirementSpec(lbl.TENANCY, "In", (wanted,)),))))
    ((_, order),) = made.launches()
    found = order.tenancy, order.capacity_type, order.reservation
    assert found == ((wanted, lbl.ON_DEMAND, "") if wanted == lbl.DEDICATED else (wanted, lbl.RESERVED, "cr-1"))


def test_one_that_is_deleted_before_launch_is_given_up() -> None:
    made = world(claim(0, deleting=START))
    assert made.launches() == []
    assert [e.type for e in made.store.entries][-2:] == ["claim.requested", "claim.cancelled"]
    assert made.runtime.state.facts.claims == {}


# ── objects of the record's own claims ─────────────────────────────────────────────────────────────────────────────


def test_an_object_of_a_known_claim_tells_only_its_deletion() -> None:
    made = in_service()
    name = claim_of(made).name
    shown = replace(claim(), name=name)
    assert not made.runtime.is_news(shown)
    assert made.see(Observation(shown)) == []
    gone = replace(shown, deleting=START)
    assert made.runtime.is_news(gone)
    made.see(Observation(gone))
    assert (claim_of(made).state, claim_of(made).why) == ("tainted", "deleted")
    assert re_derived(made.store) == made.store.entries


def test_an_object_that_is_taken_away_is_a_deletion() -> None:
    made = in_service()
    made.see(Observation(ObjectGone("nodeclaim", claim_of(made).name)))
    assert claim_of(made).why == "deleted"


def test_the_object_of_a_claim_that_is_over_is_not_adopted() -> None:
    made = world(claim(0))
    made.see(Observation(NodeClaimDeletionSeen("default-abcde", "kubectl")))
    made.after(600_000)
    assert made.runtime.state.facts.claims == {}
    assert not made.runtime.is_news(claim())
    made.see(Observation(claim()))
    assert made.runtime.state.facts.claims == {}


# ── the cloud's listing ────────────────────────────────────────────────────────────────────────────────────────────


def listed(made: World, *instances: TaggedInstance) -> list[object]:
    return list(made.see(*made.runtime.listed(instances)))


OURS = TaggedInstance("i-1", "default-abcde", START)


def test_a_listing_that_says_nothing_new_is_not_recorded() -> None:
    made = in_service()
    assert made.runtime.listed([replace(OURS, claim=claim_of(made).name)]) == []


def test_l238_an_instance_without_a_claim_is_ended_when_it_is_30_s_old() -> None:
    made = world()
    stray = TaggedInstance("i-9", "default-lost", made.now - 10_000)
    assert listed(made, stray) == []
    assert made.runtime.listed([stray]) == [], "it is known by now"
    assert made.runtime.next_due() == made.now + 20_000
    (order,) = made.after(20_000)
    assert order == TerminateInstance("default-lost", "i-9")
    made.answer_all()
    assert made.runtime.state.facts.orphans == {}
    assert re_derived(made.store) == made.store.entries


def test_l238_its_node_goes_with_it() -> None:
    made = world()
    made.node("n9", "aws:///us-west-2a/i-9", registered="true")
    orders = listed(made, TaggedInstance("i-9", "default-lost", made.now - 60_000))
    assert [type(order).__name__ for order in orders] == ["TerminateInstance", "DeleteNode"]


@pytest.mark.parametrize("gone", [True, False], ids=["and the instance is seen to be gone", "and nobody looks at it"])
def test_l238_a_node_that_could_not_be_deleted_is_asked_for_again(gone: bool) -> None:
    """Else it would keep kerf's finalizer for ever: there is no NodeClaim whose drain would take it off."""
    made = world()
    made.node("n9", "aws:///us-west-2a/i-9", registered="true")
    listed(made, TaggedInstance("i-9", "default-lost", made.now - 60_000))
    (ended, _), (deleted, _) = made.intents
    made.see(Observation(EffectAnswered(ended, True, "200")), Observation(EffectAnswered(deleted, False, "500")))
    if gone:
        made.see(Observation(InstanceSeen("i-9", "gone")))
    orders = made.after(60_000)
    assert DeleteNode("default-lost", "n9") in orders
    answers = [Observation(EffectAnswered(ref, True, "200")) for ref, _ in made.intents]
    made.see(Observation(ObjectGone("node", "n9")), *answers)
    assert made.runtime.state.facts.orphans == {}
    assert made.after(3_600_000) == []
    assert re_derived(made.store) == made.store.entries


def test_a374_a_reserved_claim_whose_instance_is_on_demand_becomes_that() -> None:
    """A reservation that is over leaves its instances running. It never goes the other way."""
    held = {lbl.RESERVATION_ID: "cr-1", lbl.RESERVATION_TYPE: "default", lbl.RESERVATION_INTERRUPTIBLE: "true"}
    made = world(claim(labels={**claim().labels, lbl.CAPACITY_TYPE: lbl.RESERVED, **held}))
    plain = TaggedInstance("i-1", "default-abcde", START, lbl.ON_DEMAND)
    assert made.runtime.listed([replace(plain, capacity_type=lbl.RESERVED)]) == []
    listed(made, plain)
    found = claim_of(made)
    assert (found.capacity_type, found.labels[lbl.CAPACITY_TYPE]) == (lbl.ON_DEMAND, lbl.ON_DEMAND)
    assert not held.keys() & found.labels.keys(), "A-70: also that it may be interrupted"
    assert made.runtime.listed([replace(plain, capacity_type=lbl.RESERVED)]) == []
    assert re_derived(made.store) == made.store.entries


def test_an_instance_of_an_object_that_was_found_is_none() -> None:
    made = World()
    other = NodeClassRef(NODE_CLASS.group, NODE_CLASS.kind, "later")
    made.see(Observation(claim(node_class=other)))
    assert made.runtime.listed([OURS]) == []
    made.see(Observation(InstancesListed(strays=(OURS,))))
    assert made.runtime.state.facts.orphans == {}


def test_a354_the_instance_of_an_object_is_awaited_until_it_is_adopted() -> None:
    """Messages about it wait in the queue. That of another controller's object is none of kerf's."""
    made = world()
    other = NodeClassRef("other.io", "OtherClass", "default")
    later = NodeClassRef(NODE_CLASS.group, NODE_CLASS.kind, "later")
    made.see(Observation(claim(node_class=later)))
    assert awaited_instances(made.runtime.state) == {"i-1"}
    made.after(60_000)
    assert "i-1" in made.runtime.state.indexes.claim_by_instance
    assert awaited_instances(made.runtime.state) == set()
    foreign = world()
    foreign.see(Observation(claim(node_class=other)))
    assert awaited_instances(foreign.runtime.state) == set()


def test_an_instance_whose_launch_waits_for_its_answer_is_none() -> None:
    made = world(claim(0))
    assert made.runtime.listed([OURS]) == []


def test_an_instance_that_is_adopted_after_the_listing_is_not_ended() -> None:
    made = world()
    made.see(Observation(InstancesListed(strays=(replace(OURS, launched=made.now),))))
    made.see(Observation(claim(1)))
    assert made.after(60_000) == []
    assert claim_of(made).state == "launched"


def test_l237_d133_w88_a_registered_claim_that_the_cloud_does_not_list_goes_unless_its_node_is_ready() -> None:
    made = in_service()
    assert listed(made) == []
    assert claim_of(made).state == "initialized"
    (order,) = made.node("n1", PROVIDER, ready=False, registered="true", initialized="true")
    assert type(order).__name__ == "DeleteNode"
    made.answer_all()
    made.see(Observation(ObjectGone("node", "n1")))
    assert made.runtime.state.facts.claims == {}
    (gone,) = [e.payload for e in made.store.entries if isinstance(e.payload, ev.InstanceVanished)]
    assert gone.status == "unlisted"
    assert re_derived(made.store) == made.store.entries


@pytest.mark.parametrize("code", ["200", "UnauthorizedOperation"])
def test_l237_l191_what_is_not_listed_may_run_on_and_is_ended_after_its_claim(code: str) -> None:
    """Somebody took its tags off, and perhaps with them the right to end it. It ran on, and nothing named it any more.
    Its claim does not wait for that."""
    made = in_service()
    listed(made)
    made.node("n1", PROVIDER, ready=False, registered="true", initialized="true")
    made.answer_all()
    (order,) = made.see(Observation(ObjectGone("node", "n1")))
    assert isinstance(order, TerminateInstance)
    assert order.instance == "i-1"
    assert made.runtime.state.facts.claims == {}
    made.answer_all(ok=code == "200", code=code)
    assert ("i-1" in made.runtime.state.facts.orphans) == (code != "200")
    again = made.after(2_000)
    assert [type(order) for order in again] == ([] if code == "200" else [TerminateInstance])
    assert re_derived(made.store) == made.store.entries


def test_l237_one_that_the_cloud_says_is_gone_is_not_ended_again() -> None:
    made = in_service()
    listed(made)
    (order,) = made.instance("i-1", "gone")
    assert type(order).__name__ == "DeleteNode"
    made.answer_all()
    assert made.see(Observation(ObjectGone("node", "n1"))) == []


def test_l237_one_that_is_listed_again_stays() -> None:
    made = in_service()
    listed(made)
    listed(made, replace(OURS, claim=claim_of(made).name))
    assert claim_of(made).unlisted == 0
    assert made.node("n1", PROVIDER, ready=False, registered="true", initialized="true") == []


def test_l237_one_that_has_not_registered_is_left_to_its_limit() -> None:
    made = world(claim(1))
    assert made.runtime.listed([]) == []
    assert isinstance(claim_of(made), NodeClaim)
