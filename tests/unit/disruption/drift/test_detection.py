"""Which NodeClaims have drifted, and in which fields (D-122…D-128, A-332…A-341, L-245, L-246)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.drift.detection import not_compared
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodeclass_terms import Image
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Decision
from kerf.engine.record.observations import CatalogueSeen, InstanceSeen, ObjectGone, Observation
from kerf.engine.state import snapshot
from kerf.projections.prose.drift import not_compared_words
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.lives import PODS, claim_of
from tests.support.world import CATALOGUE, NODE_CLASS, World
from tests.support.worlds.drift import HOUR, KEY, TERMS, change, found, in_service, node_class, pool_now


def catalogue(*names: str) -> Observation:
    made = Catalogue(tuple(t for t in CATALOGUE.types if t.name in names), source="test")
    digest, _ = content(made)
    return Observation(CatalogueSeen(KEY, digest), {digest: made})


def decisions(world: World) -> list[Decision]:
    made = [entry.payload for entry in world.store.entries if isinstance(entry.payload, Decision)]
    return [decision for decision in made if decision.decider == "drift"]


# ── NodePool ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_l141_a_claim_carries_the_hash_of_the_pool_it_was_made_from() -> None:
    world = in_service()
    annotations = claim_of(world).annotations
    assert annotations[lbl.NODEPOOL_HASH] == pool_now(world).hash
    assert annotations[lbl.NODEPOOL_HASH_VERSION] == "v3"


def test_d124_another_template_is_drift_and_the_verdict_names_the_fields() -> None:
    world = in_service(labels={"team": "a"}, termination_grace_period=60_000)
    world.after(5_000)
    changes: dict[str, Any] = {
        "labels": {"team": "b", "tier": "gold"}, "termination_grace_period": None,
        "taints": (Taint("k", "NoSchedule", "v"),), "expire_after": None,
    }  # fmt: skip
    claim = change(world, **changes)
    assert claim.drifted_since == world.now
    assert found(world) == (
        "nodepool-drifted",
        (
            Difference("expireAfter", "", "720h0m0s", "Never"),
            Difference("labels", "team", "a", "b"),
            Difference("labels", "tier", None, "gold"),
            Difference("taints/NoSchedule", "k", None, "v"),
            Difference("terminationGracePeriod", "", "1m0s", None),
        ),
    )
    (decision,) = decisions(world)
    (verdict,) = decision.result.verdicts  # type: ignore[union-attr]
    assert (verdict.method, verdict.action) == ("drifted", "drifted")


def test_d127_behaviour_does_not_drift() -> None:
    world = in_service()
    change(world, weight=7, limits={"cpu": 10_000}, consolidate_after=None, consolidation_policy="WhenEmpty")
    assert found(world) == ("", ())
    assert decisions(world) == []


def test_d123_only_an_evaluation_takes_drift_back() -> None:
    world = in_service()
    before = pool_now(world)
    assert change(world, labels={"team": "b"}).drifted_since
    world.after(HOUR // 2)
    assert claim_of(world).drifted_since
    world.see(Observation(before))
    assert (claim_of(world).drifted_since, found(world)) == (0, ("", ()))
    assert [d.result.verdicts[0].action for d in decisions(world)] == ["drifted", "not-drifted"]  # type: ignore[union-attr]


def test_d122_another_reason_does_not_move_the_time() -> None:
    world = in_service()
    first = change(world, labels={"team": "b"}).drifted_since
    world.after(60_000)
    assert change(world, labels={"team": "c"}).drifted_since == first
    assert found(world)[1] == (Difference("labels", "team", None, "c"),)


def test_d122_a_verdict_is_recorded_when_it_changes_and_not_per_look() -> None:
    world = in_service()
    change(world, labels={"team": "b"})
    for name in PODS:
        world.gone(name)
    world.after(60_000)
    assert len(decisions(world)) == 1


def test_d124_without_hashes_nothing_is_compared() -> None:
    world = in_service()
    world.see(Observation(replace(pool_now(world), labels={"team": "b"}, hash="")))
    assert found(world) == ("", ())


def test_a332_a_pool_that_is_gone_leaves_the_verdict() -> None:
    world = in_service()
    change(world, labels={"team": "b"})
    world.see(Observation(ObjectGone("nodepool", "default")))
    assert found(world)[0] == "nodepool-drifted"


@pytest.mark.parametrize(
    ("requirement", "drifted"),
    [
        (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("spot",)), True),
        (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("spot", "on-demand")), False),
        (RequirementSpec("team", "In", ("a",)), True),
        (RequirementSpec("team", "Exists"), True),
        (RequirementSpec("team", "Gt", ("1",)), True),
        (RequirementSpec("team", "NotIn", ("a",)), False),
        (RequirementSpec("team", "DoesNotExist"), False),
        (RequirementSpec(lbl.ZONE, "DoesNotExist"), True),
        (RequirementSpec("beta.kubernetes.io/arch", "In", ("amd64",)), False),
        (RequirementSpec("beta.kubernetes.io/arch", "In", ("arm64",)), True),
        (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand",), min_values=1), False),
    ],
)
def test_d125_requirements_are_compared_with_the_labels_strictly(requirement: RequirementSpec, drifted: bool) -> None:
    world = in_service()
    change(world, requirements=(requirement,))
    assert found(world)[0] == ("requirements-drifted" if drifted else "")


def test_d125_the_verdict_names_the_requirement() -> None:
    world = in_service()
    change(world, requirements=(RequirementSpec(lbl.CAPACITY_TYPE, "In", ("spot",)),))
    assert found(world)[1] == (Difference("requirements", lbl.CAPACITY_TYPE, "on-demand", "In [spot]"),)


def test_c2_the_object_carries_the_condition_and_is_written_when_it_changes() -> None:
    world = in_service()
    change(world, labels={"team": "b"})
    claim = claim_of(world)
    assert world.runtime.moved() == {claim.name: claim}
    shown = claim_conditions(claim, world.runtime.state, world.now)
    (condition,) = [other for other in shown if other.type == "Drifted"]
    assert (condition.status, condition.reason, condition.message) == (
        "True", "NodePoolDrifted", "NodePoolDrifted",
    )  # fmt: skip


# ── hash versions ──────────────────────────────────────────────────────────────────────────────────────────────────


def older(world: World, **known: Any) -> NodeClaim:
    """The claim's annotations are those that an older controller wrote."""
    claim = claim_of(world)
    claim.annotations = {lbl.NODEPOOL_HASH: "1", lbl.NODEPOOL_HASH_VERSION: "v2"} | known
    return claim


def test_d124_hashes_of_other_versions_are_not_compared() -> None:
    world = in_service()
    older(world)
    world.see(Observation(replace(pool_now(world), weight=1, hash_version="v3")))
    assert found(world) == ("", ())
    assert claim_of(world).annotations[lbl.NODEPOOL_HASH] == "1"


def test_d128_claims_follow_a_pool_whose_hash_is_made_anew() -> None:
    world = in_service()
    older(world)
    world.see(Observation(replace(pool_now(world), hash_version="v2")))
    assert claim_of(world).annotations == {lbl.NODEPOOL_HASH: pool_now(world).hash, lbl.NODEPOOL_HASH_VERSION: "v3"}
    assert list(world.runtime.moved()) == [claim_of(world).name], "its object is to be written"
    assert found(world) == ("", ())


def test_d128_a_drifted_claim_keeps_its_hash_and_stays_drifted() -> None:
    world = in_service()
    change(world, labels={"team": "b"})
    since = older(world).drifted_since
    world.see(Observation(replace(pool_now(world), hash_version="v2")))
    claim = claim_of(world)
    assert claim.annotations == {lbl.NODEPOOL_HASH: "1", lbl.NODEPOOL_HASH_VERSION: "v3"}
    assert (claim.drifted_since, found(world)) == (since, ("nodepool-drifted", ()))


# ── instance types ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_d126_a_type_that_is_not_sold_any_more_is_found_after_an_hour() -> None:
    world = in_service()
    assert claim_of(world).instance_type == "m5.large"
    world.see(catalogue("c5.large"))
    assert found(world) == ("", ())
    due = claim_of(world).created + HOUR
    world.after(due - 1 - world.now)
    assert found(world) == ("", ())
    world.after(1)
    assert found(world) == ("instance-type-not-found", (Difference("instanceType", "", "m5.large", None),))
    world.see(catalogue("m5.large"))
    assert found(world) == ("", ())


def test_d126_a_catalogue_without_types_says_nothing() -> None:
    world = in_service()
    world.after(2 * HOUR)
    world.see(catalogue())
    assert found(world) == ("", ())


def test_d126_a_zone_in_which_the_type_is_no_longer_sold() -> None:
    world = in_service()
    world.after(2 * HOUR)
    kind = next(t for t in CATALOGUE.types if t.name == "m5.large")
    moved = Catalogue((replace(kind, offerings=tuple(o for o in kind.offerings if o.zone != "us-west-2a")),))
    digest, _ = content(moved)
    world.see(Observation(CatalogueSeen(KEY, digest), {digest: moved}))
    assert found(world)[0] == "instance-type-not-found"


# ── NodeClass ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a334_a_changed_nodeclass_is_drift_with_its_fields() -> None:
    world = in_service()
    assert claim_of(world).class_hash == "h1"
    world.see(node_class(replace(TERMS, hash="h2", static={"role": "new", "tags team": "a", "userData": "x"})))
    assert found(world) == (
        "nodeclass-drift",
        (Difference("role", "", "old", "new"), Difference("userData", "", None, "x")),
    )


def test_a334_another_controllers_hashes_are_compared_where_both_are_there() -> None:
    world = in_service()
    key = f"{NODE_CLASS.group}/ec2nodeclass-hash"
    claim = claim_of(world)
    claim.annotations = {**claim.annotations, key: "1", f"{key}-version": "v6"}
    world.see(node_class(annotations={key: "2", f"{key}-version": "v5"}))
    assert found(world) == ("", ())
    world.see(node_class(annotations={key: "2", f"{key}-version": "v6"}))
    assert found(world) == ("nodeclass-drift", ())


def test_a66_an_upgrade_that_hashes_classes_another_way_drifts_nothing_and_takes_nothing_back() -> None:
    world = in_service()
    world.see(node_class(replace(TERMS, hash="next/h9")))
    assert (claim_of(world).class_hash, found(world)) == ("next/h9", ("", ()))
    world.see(node_class(replace(TERMS, hash="next/h10", static={"role": "new", "tags team": "a"})))
    assert found(world) == ("nodeclass-drift", (Difference("role", "", "old", "new"),))
    world.see(node_class(replace(TERMS, hash="third/h11", static={"role": "new"})))
    assert (claim_of(world).class_hash, found(world)) == ("third/h9", ("nodeclass-drift", ()))


@pytest.mark.parametrize(
    ("changes", "code", "difference"),
    [
        ({"images": (Image("ami-2"), Image("ami-1"))}, "ami-drift", Difference("image", "", "ami-1", "ami-2")),
        ({"security_groups": ("sg-2",)}, "security-group-drift", Difference("securityGroups", "", "sg-1", None)),
        ({"subnets": ("subnet-2",)}, "subnet-drift", Difference("subnets", "", "subnet-1", None)),
    ],
)
def test_a335_what_the_nodeclass_selects_now(changes: dict[str, Any], code: str, difference: Difference) -> None:
    world = in_service()
    world.see(node_class(replace(TERMS, **changes)))
    reason, fields = found(world)
    assert (reason, fields[0]) == (code, difference)


def test_a335_an_image_for_other_types_does_not_count() -> None:
    world = in_service()
    arm = Image("ami-2", (RequirementSpec(lbl.ARCH, "In", ("arm64",)),))
    world.see(node_class(replace(TERMS, images=(arm, Image("ami-1")))))
    assert found(world) == ("", ())


def test_a333_the_order_of_reasons() -> None:
    world = in_service()
    world.see(node_class(replace(TERMS, subnets=("subnet-2",), security_groups=("sg-2",))))
    assert found(world)[0] == "security-group-drift"
    world.see(node_class(replace(TERMS, hash="h2", static={}, subnets=("subnet-2",))))
    assert found(world)[0] == "nodeclass-drift"
    change(world, labels={"team": "b"})
    assert found(world)[0] == "nodepool-drifted"


def test_d122_what_cannot_be_judged_now_leaves_the_verdict_and_hides_no_other() -> None:
    world = in_service()
    world.see(node_class(replace(TERMS, images=(Image("ami-2"),))))
    assert found(world)[0] == "ami-drift"
    world.see(node_class(replace(TERMS, images=())))
    assert found(world)[0] == "ami-drift"
    world.see(node_class(replace(TERMS, images=(), subnets=("subnet-2",))))
    assert found(world)[0] == "subnet-drift"
    world.see(node_class())
    assert found(world) == ("", ())


def reserved() -> World:
    """The node runs on the reservation cr-1, which its NodeClass selects."""
    world = in_service()
    claim = claim_of(world)
    claim.labels = {**claim.labels, lbl.CAPACITY_TYPE: lbl.RESERVED, lbl.RESERVATION_ID: "cr-1"}
    claim.capacity_type = lbl.RESERVED
    change(world, requirements=())
    world.see(node_class(replace(TERMS, reservations=("cr-1",))))
    return world


def runs_as(world: World, capacity_type: str) -> None:
    """The cloud is asked again what the instance runs as."""
    world.see(Observation(InstanceSeen("i-1", "running", claim_of(world).name, capacity_type)))


def test_a338_a_reserved_instance_whose_reservation_is_not_selected_any_more() -> None:
    world = reserved()
    assert world.runtime.instances_in_question() == []
    world.see(node_class())
    assert found(world) == ("", ())
    unknown = not_compared(claim_of(world), world.runtime.state, world.now)
    assert not_compared_words(unknown) == "capacity reservation"
    assert world.runtime.instances_in_question() == ["i-1"]
    runs_as(world, lbl.RESERVED)
    assert found(world)[0] == "capacity-reservation-drift"
    assert world.runtime.instances_in_question() == []
    world.see(node_class(replace(TERMS, reservations=("cr-1",))))
    assert found(world) == ("", ())


def test_a443_a_reservation_that_has_ended_is_no_drift_before_its_node_counts_as_on_demand() -> None:
    """A-338: what is selected no longer may be over; the cloud is asked before a healthy node is replaced."""
    world = reserved()
    world.see(node_class())
    world.after(HOUR)
    assert found(world) == ("", ())
    runs_as(world, lbl.ON_DEMAND)
    assert world.runtime.moved().keys() == {claim_of(world).name}
    assert claim_of(world).capacity_type == lbl.ON_DEMAND
    assert lbl.RESERVATION_ID not in claim_of(world).labels
    assert decisions(world) == []


def test_a338_what_was_said_of_a_reservation_counts_until_it_is_selected_again() -> None:
    world = reserved()
    runs_as(world, lbl.RESERVED)  # nobody had asked: it says nothing of later
    world.see(node_class())
    assert found(world) == ("", ())
    runs_as(world, lbl.RESERVED)
    world.see(node_class(replace(TERMS, reservations=("cr-1",))))
    world.see(node_class())
    assert found(world) == ("", ())
    assert world.runtime.instances_in_question() == ["i-1"]


def test_a338_drift_that_was_found_stays_while_it_is_asked_again() -> None:
    """D-122: a check that cannot be made leaves its former result."""
    world = reserved()
    world.see(node_class())
    runs_as(world, lbl.RESERVED)
    world.see(node_class(replace(TERMS, reservations=("cr-2",))))
    assert found(world)[0] == "capacity-reservation-drift"


def test_a339_another_placement_group_and_one_that_is_not_known() -> None:
    world = in_service()
    claim = claim_of(world)
    claim.labels = {**claim.labels, lbl.PLACEMENT_GROUP: "pg-1"}
    world.see(node_class(replace(TERMS, placement_group="pg-2")))
    assert found(world)[0] == "placement-group-drift"
    world.see(node_class(replace(TERMS, placement_group="pg-1")))
    assert found(world) == ("", ())
    world.see(node_class(replace(TERMS, placement_group="")))
    assert found(world) == ("", ())


def test_a332_a_nodeclass_that_is_being_deleted_drifts_nothing() -> None:
    world = in_service()
    world.see(node_class(replace(TERMS, subnets=("subnet-2",)), ready=False, reason="Deleting"))
    assert found(world) == ("", ())


# ── the state ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_templates_are_kept_as_long_as_a_claim_is_made_from_one() -> None:
    world = in_service()
    first = pool_now(world).hash
    change(world, labels={"team": "b"})
    between = pool_now(world).hash
    change(world, labels={"team": "c"})
    templates = world.runtime.state.facts.made_from
    assert templates.keys() == {first, pool_now(world).hash, "h1"}
    assert between not in templates


def test_a_state_from_a_snapshot_judges_the_same() -> None:
    world = in_service()
    change(world, labels={"team": "b"})
    state = world.runtime.state
    data, digest = snapshot.encode(state)
    assert snapshot.digest(snapshot.decode(data, state.indexes.blobs)) == digest
    world.runtime = world.start()
    assert len(decisions(world)) == 1


def test_a335_what_nobody_knows_is_not_compared_and_told_so() -> None:
    """A claim without drift is as it was asked for only as far as both sides are known."""

    def unknown(world: World) -> tuple[str, ...]:
        return not_compared(claim_of(world), world.runtime.state, world.runtime.state.facts.at)

    assert unknown(in_service()) == ()
    assert unknown(in_service({"image": "", "subnet": ""})) == ("ami-drift", "subnet-drift")
    assert not_compared_words(("ami-drift", "subnet-drift")) == "image, subnet"
