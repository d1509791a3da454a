"""What a NodePool can launch, and what a launched claim says (S-64, S-65, S-84, S-163 to S-167)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.nodeclaim_documents import claim_document
from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape, Selector, SpreadConstraint, Taint, Toleration
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.launchable.templates import template_of
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.scenarios.planned import codes, node
from tests.support.scenarios.problems import Workloads, instance_type, ladder, preferred, problem, shape, spec, term
from tests.support.scenarios.problems import pool as made_pool
from tests.support.world import NODE_CLASS, World, pool

MINUTE = 60_000


# ── instance types ──────────────────────────────────────


def test_s64_a_nodepool_whose_types_are_not_known_contributes_none_and_the_others_go_on() -> None:
    work = Workloads().add("a", 1, shape())
    given = problem(work, ladder(2), made_pool("heavy", weight=9), made_pool("light"))
    unknown = replace(given.pools[0], catalogue="")
    assert [claim.node_pool for claim in plan(given).claims] == ["heavy"]
    assert [claim.node_pool for claim in plan(replace(given, pools=(unknown, given.pools[1]))).claims] == ["light"]
    alone = plan(replace(given, pools=(unknown,)))
    assert codes(alone) == {"a-0": [SchedulingCode.NO_INSTANCE_TYPES]}


def test_s64_nor_does_it_contribute_domains() -> None:
    """Its requirements name a zone where there are no pods: that keeps none of the others waiting."""
    apart = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "a"}))
    work = Workloads().add("a", 4, shape(labels={"app": "a"}, spread=(apart,)))
    here = made_pool("here", spec(lbl.ZONE, "In", "z1", "z2"))
    given = problem(work, ladder(2), here, made_pool("there", spec(lbl.ZONE, "In", "z9")))
    unknown = replace(given.pools[1], catalogue="")
    planned = plan(replace(given, pools=(given.pools[0], unknown)))
    assert not planned.unplaced
    assert len(planned.placed) == 4


def test_s204_types_that_a_question_leaves_out_of_itself_change_no_order_of_prices() -> None:
    given = problem(Workloads(), ladder(2, 4, 8))
    fewer = replace(given, unavailable=frozenset([("", "t02", ""), ("", "t08", "")]))
    scarce = replace(given, unavailable=frozenset([("on-demand", "t02", "z1")]))
    whole, cut, lacking = (template_of(asked.pools[0], asked, (), strict=True) for asked in (given, fewer, scarce))
    assert cut.by_price(cut.base) is whole.by_price(whole.base)
    assert cut.cheapest(cut.base, cut.types) > whole.cheapest(whole.base, whole.types)
    assert cut.left_out().bit_count() == 2
    assert cut.types.bit_count() == whole.types.bit_count() - 2
    assert lacking.by_price(lacking.base) is not whole.by_price(whole.base)


def test_each_variant_orders_domains_of_equal_rank_by_itself() -> None:
    """Variants that order zones alike for every claim would be planned for nothing."""
    given = problem(Workloads(), ladder(2))
    orders = set()
    for variant in range(1, 9):
        template = template_of(given.pools[0], given, (), strict=True, variant=variant)
        zones = {zone: template.pin(template.base, lbl.ZONE, (zone,)) for zone in ("z1", "z2", "z3")}
        orders.add(
            tuple(
                tuple(sorted(zones, key=lambda zone: template.precedence(claim, zones[zone], template.types)))
                for claim in range(3)
            )
        )
    assert len(orders) == 8


def test_s64_each_nodepool_has_its_own_types() -> None:
    work = Workloads().add("a", 1, shape(3_000))
    given = problem(work, ladder(2), made_pool("small", weight=9), made_pool("large"))
    other = problem(work, ladder(4), made_pool("large"))
    both = replace(
        given,
        pools=(given.pools[0], other.pools[0]),
        catalogues={**given.catalogues, **other.catalogues},
    )
    assert [claim.node_pool for claim in plan(both).claims] == ["large"]
    assert codes(plan(given)).keys() == {"a-0"}


# ── labels, annotations, requirements ──────────────────────────────────────


def claimed(given: NodePool, **shape_of: Any) -> tuple[World, NodeClaim]:
    world = World()
    world.prepare(given)
    world.pending("a", **shape_of)
    world.after(1_000)
    (claim,) = world.runtime.state.facts.claims.values()
    return world, claim


def full() -> NodePool:
    return pool(
        labels={"team": "red"},
        annotations={"example.com/note": "x"},
        taints=(Taint("dedicated", "NoSchedule", "red"),),
        startup_taints=(Taint("booting", "NoExecute"),),
        expire_after=7 * 24 * 60 * MINUTE,
        termination_grace_period=5 * MINUTE,
        uid="pool-uid",
        hash="17",
        hash_version="v3",
    )


HASHED = {"karpenter.sh/nodepool-hash": "17", "karpenter.sh/nodepool-hash-version": "v3"}
TOLERANT = (Toleration(operator="Exists"),)


def test_s65_what_a_template_gives_its_claims() -> None:
    given = full()
    _, claim = claimed(given, tolerations=TOLERANT)
    assert claim.labels == {"team": "red", lbl.NODEPOOL: "default", "karpenter.k8s.aws/ec2nodeclass": "default"}
    assert claim.annotations.items() >= {"example.com/note": "x", **HASHED}.items()
    assert claim.taints == given.taints
    assert claim.startup_taints == given.startup_taints
    assert claim.expire_after == given.expire_after
    assert claim.termination_grace_period == given.termination_grace_period
    assert claim.node_class == given.node_class
    found = {requirement.key: requirement.values for requirement in claim.requirements}
    assert found["team"] == ("red",)
    assert found[lbl.NODEPOOL] == ("default",)
    assert found["karpenter.k8s.aws/ec2nodeclass"] == ("default",)
    assert found[lbl.CAPACITY_TYPE] == ("on-demand",)


def test_s65_s166_registered_and_initialized_hold_while_planning_and_reach_no_claim() -> None:
    """A DaemonSet that selects them runs on the node; neither requirements nor labels of the claim have them."""
    work = Workloads().add("a", 1, shape(1000))
    for key in (lbl.REGISTERED, lbl.INITIALIZED):
        (claim,) = plan(problem(work, ladder(4), daemons=[shape(500, node_selector={key: "true"})])).claims
        assert claim.requests["pods"] == 2
        (claim,) = plan(problem(work, ladder(4), daemons=[shape(500, node_selector={key: "false"})])).claims
        assert claim.requests["pods"] == 1
        assert key not in {requirement.key for requirement in claim.requirements}
        assert key not in claim.labels


def test_s65_e122_the_hash_is_that_of_the_nodepool_which_the_plan_has_seen() -> None:
    world, claim = claimed(full(), tolerations=TOLERANT)
    world.see(Observation(replace(full(), labels={"team": "blue"}, hash="18")))
    assert claim.annotations.items() >= HASHED.items()


def test_s163_the_object_of_a_claim() -> None:
    _, claim = claimed(full(), tolerations=TOLERANT)
    document = claim_document(claim, "pool-uid")
    metadata, said = document["metadata"], document["spec"]
    prefix, _, letters = metadata["name"].rpartition("-")
    assert (prefix, len(letters)) == ("default", 5)
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "pool-uid",
            "blockOwnerDeletion": True,
        }
    ]  # fmt: skip
    assert metadata["labels"] == claim.labels
    assert metadata["annotations"].items() >= {"example.com/note": "x"}.items()
    assert said["nodeClassRef"] == {"group": NODE_CLASS.group, "kind": "EC2NodeClass", "name": "default"}
    assert said["resources"] == {"requests": {"memory": "1Gi", "pods": "1"}}
    assert (said["expireAfter"], said["terminationGracePeriod"]) == ("168h", "5m")
    assert said["taints"] == [{"key": "dedicated", "value": "red", "effect": "NoSchedule"}]
    assert said["startupTaints"] == [{"key": "booting", "effect": "NoExecute"}]


def test_s163_without_a_grace_period_in_the_nodepool_there_is_none() -> None:
    _, claim = claimed(pool())
    assert "terminationGracePeriod" not in claim_document(claim, "u")["spec"]


def test_s166_values_are_in_the_order_of_the_alphabet_and_not_of_prices() -> None:
    """Entries are too: by key. The plan itself has the types cheapest first."""
    types = tuple(instance_type(f"t{i}", 2, price=price) for i, price in ((1, 3.0), (2, 2.0), (3, 1.0)))
    (claim,) = plan(problem(Workloads().add("a", 1, shape()), Catalogue(types))).claims
    assert claim.instance_types == ("t3", "t2", "t1")
    by_key = {requirement.key: requirement.values for requirement in claim.requirements}
    assert by_key[lbl.INSTANCE_TYPE] == ("t1", "t2", "t3")
    assert [requirement.key for requirement in claim.requirements] == sorted(
        requirement.key for requirement in claim.requirements
    )


def test_s164_types_and_capacity_types_are_named_and_minvalues_kept() -> None:
    """Capacity types are those that an available offering of one of the types has."""
    only_od = instance_type("t2", 2, capacity_types=("on-demand",))
    types = Catalogue((instance_type("t1", 1), only_od, instance_type("t4", 4, labels={lbl.ARCH: ("arm64",)})))
    two = made_pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=1), spec(lbl.ARCH, "In", "amd64"))
    (claim,) = plan(problem(Workloads().add("a", 1, shape(500)), types, two)).claims
    by_key = {requirement.key: requirement for requirement in claim.requirements}
    assert (by_key[lbl.INSTANCE_TYPE].values, by_key[lbl.INSTANCE_TYPE].min_values) == (("t1", "t2"), 1)
    assert by_key[lbl.CAPACITY_TYPE].values == ("on-demand", "spot")
    (claim,) = plan(problem(Workloads().add("a", 1, shape(1_500)), types, two)).claims
    assert {requirement.values for requirement in claim.requirements if requirement.key == lbl.CAPACITY_TYPE} == {
        ("on-demand",)
    }


# ── DaemonSets on nodes that exist ──────────────────────────────────────


def fits_beside(daemon: PodShape, cpu: int = 3_600, **fields: Any) -> bool:
    """Whether a pod has room on a node of 4 cores beside what is kept for a daemon of 500m."""
    planned = plan(
        problem(Workloads().add("a", 1, shape(cpu)), ladder(8), nodes=[node("n", **fields)], daemons=[daemon])
    )
    return bool(planned.placements)


def test_s84_a_daemon_is_expected_where_it_tolerates_and_the_labels_are_there() -> None:
    assert not fits_beside(shape(500))
    assert not fits_beside(shape(500, node_selector={lbl.ZONE: "z1"}))
    assert fits_beside(shape(500, node_selector={lbl.ZONE: "z2"}))


def test_s84_e54_no_label_may_be_undefined_not_even_a_well_known_one() -> None:
    """On a new claim it may: there the daemon counts."""
    for key, value in ((lbl.ARCH, "amd64"), ("team", "red")):
        assert fits_beside(shape(500, node_selector={key: value}))
    absent = shape(500, required_terms=(term((lbl.ARCH, "NotIn", ("arm64",))),))
    assert not fits_beside(absent), "a label that must not have a value need not be there"


def test_s84_taints_count_as_for_pods_but_soft_ones() -> None:
    hard = Taint("dedicated", "NoSchedule")
    tolerant = (Toleration("dedicated", "Exists"),)
    work = Workloads().add("a", 1, shape(3_600, tolerations=tolerant))

    def room(daemon: PodShape, taint: Taint) -> bool:
        given = problem(work, ladder(8), nodes=[node("n", taints=(taint,))], daemons=[daemon])
        return bool(plan(given).placements)

    assert room(shape(500), hard)
    assert not room(shape(500, tolerations=tolerant), hard)
    assert not room(shape(500), Taint("dedicated", "PreferNoSchedule"))


def test_s84_what_daemons_prefer_does_not_count() -> None:
    assert not fits_beside(shape(500, preferred_terms=(preferred(1, (lbl.ZONE, "In", ("z9",))),)))


# ── limits, at the moment of creation ──────────────────────────────────────


@pytest.mark.parametrize(("limit", "opened"), [(3_000, 1), (8_000, 2)])
def test_s167_a_plan_is_made_of_what_is_used_now_and_creates_no_more_than_that_leaves(limit: int, opened: int) -> None:
    """No second look is needed: nothing comes between a plan and its claims."""
    world = World()
    world.prepare(pool(limits={"cpu": limit}))
    world.pending("a", memory=6_000 * 2**20)
    world.after(1_000)
    world.pending("b", memory=6_000 * 2**20)
    world.after(1_000)
    assert len(world.runtime.state.facts.claims) == opened


# ── domains of equal rank ──────────────────────────────────────


def taken(variant: int, pool_name: str, key: str, values: tuple[str, ...]) -> list[int]:
    """The place of the domain that each claim takes, of these values of a key, if pods are spread over them."""
    apart = SpreadConstraint(key, selector=Selector({"app": "a"}))
    work = Workloads().add("a", 3, shape(labels={"app": "a"}, spread=(apart,)))
    given = problem(work, ladder(2), made_pool(pool_name, spec(key, "In", *values)))
    claims = plan(replace(given, variant=variant), told=False).claims
    return [values.index(next(c for c in claim.constraints if c.key == key).any_value()) for claim in claims]


@pytest.mark.parametrize("variant", range(4))
def test_s140_which_domain_a_variant_takes_first_does_not_depend_on_names(variant: int) -> None:
    """So that it takes the same under pseudonyms, which keep the order of keys and of values."""
    first = taken(variant, "default", "acme.example/rack", ("a", "b", "c"))
    assert sorted(first) == [0, 1, 2]
    assert taken(variant, "nodepool-1", "a-key-7.example/x", ("value-1", "value-2", "value-3")) == first


def test_s140_variants_take_other_domains_first() -> None:
    orders = {tuple(taken(variant, "default", "acme.example/rack", ("a", "b", "c"))) for variant in range(8)}
    assert len(orders) > 3
