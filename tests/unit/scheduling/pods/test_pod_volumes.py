"""Volumes: S-152…S-159, by the examples of section 13.10. The judge passes every plan."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    NodeTerm,
    PodShape,
    Selector,
    SpreadConstraint,
    VolumeRef,
)
from kerf.engine.model.kubernetes.volumes import EBS, StorageClass, Volume, VolumeClaim, VolumeFacts
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.node_sets.node_set_search import NodeSetSearch
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_volumes import volumes_of_claims
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, problem, shape

CLASSES = {"gp3": StorageClass("gp3", EBS), "now": StorageClass("now", EBS, immediate=True)}


def zones(*names: str) -> NodeTerm:
    return NodeTerm((Expression("topology.ebs.csi.aws.com/zone", "In", names),))


def bound(name: str, *terms: NodeTerm, **fields: object) -> tuple[VolumeClaim, Volume]:
    volume = Volume(f"pv-{name}", EBS, terms, **fields)  # type: ignore[arg-type]
    return VolumeClaim("default", name, volume.name, phase="Bound", bind_completed=True), volume


def facts(*pairs: tuple[VolumeClaim, Volume | None], limits: dict[str, dict[str, int]] | None = None) -> VolumeFacts:
    return VolumeFacts(
        {f"{claim.namespace}/{claim.name}": claim for claim, _ in pairs},
        {volume.name: volume for _, volume in pairs if volume is not None},
        CLASSES,
        limits or {},
    )


def using(*claims: str, **fields: object) -> PodShape:
    volumes = tuple(VolumeRef(f"v{number}", claim) for number, claim in enumerate(claims))
    return shape(100, volumes=volumes, **fields)  # type: ignore[arg-type]


def planned(given: Problem) -> Plan:
    made = plan(given)
    assert faults(given, made) == []
    return made


def asked(known: VolumeFacts, work: Workloads, *nodes: NodeInput) -> Problem:
    return replace(problem(work, ladder(2, 4), nodes=nodes), volumes=known)


def zone_of(made: Plan, number: int = 0) -> tuple[str, ...]:
    return next(requirement.values for requirement in made.claims[number].requirements if requirement.key == lbl.ZONE)


def node(**labels: str) -> NodeInput:
    return NodeInput("n", "", {lbl.ZONE: "z1", **labels}, (), {"cpu": 64_000, "memory": 64 * GI, "pods": 200})


def test_s154_a_bound_volume_keeps_its_zone() -> None:
    made = planned(asked(facts(bound("a", zones("z2"))), Workloads().add("w", 1, using("a"))))
    assert zone_of(made) == ("z2",)


def test_s154_e114_alternatives_are_tried_in_their_order() -> None:
    known = facts(bound("a", zones("z1"), zones("z2")), bound("b", zones("z1"), zones("z2")))
    apart = {"labels": {"app": "w"}, "anti_affinity": (AffinityTerm(lbl.ZONE, Selector({"app": "w"})),)}
    work = Workloads().add("a", 1, using("a", **apart)).add("b", 1, using("b", **apart))
    made = planned(asked(known, work))
    assert [zone_of(made, 0), zone_of(made, 1)] == [("z1",), ("z2",)]


def test_s155_e115_only_the_combination_that_agrees() -> None:
    known = facts(bound("a", zones("z1"), zones("z2")), bound("b", zones("z2"), zones("z3")))
    assert [str(alternative) for alternative in volumes_of_claims(known, ("default/a", "default/b")).alternatives] == [
        f"{lbl.ZONE} In [z2]"
    ]
    assert zone_of(planned(asked(known, Workloads().add("w", 1, using("a", "b"))))) == ("z2",)


def test_s155_e116_volumes_in_two_zones() -> None:
    known = facts(bound("a", zones("z1")), bound("b", zones("z2")))
    made = planned(asked(known, Workloads().add("w", 1, using("a", "b"))))
    ((why,),) = [group.reasons for group in made.unplaced]
    assert why.code == SchedulingCode.VOLUMES_APART
    assert why.params["places"] == [f"{lbl.ZONE} In [z1]", f"{lbl.ZONE} In [z2]"]


def test_s155_volumes_in_two_zones_beside_a_node_in_one_of_them() -> None:
    known = facts(bound("a", zones("z1")), bound("b", zones("z2"), zones("z3")), bound("c", zones("z1")))
    made = planned(asked(known, Workloads().add("w", 1, using("a", "b", "c")), node()))
    ((why,),) = [group.reasons for group in made.unplaced]
    assert why.params["places"] == [f"{lbl.ZONE} In [z1]", f"{lbl.ZONE} In [z2] or {lbl.ZONE} In [z3]"]


@pytest.mark.parametrize(("local", "claims"), [(True, 1), (False, 0)])
def test_s154_e117_the_host_of_a_local_volume_is_not_asked_for(local: bool, claims: int) -> None:
    there = NodeTerm((Expression(lbl.HOSTNAME, "In", ("old",)),))
    made = planned(asked(facts(bound("a", there, local=local)), Workloads().add("w", 1, using("a"))))
    assert len(made.claims) == claims


def test_s154_kube_scheduler_asks_for_the_host_of_a_local_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan tells so, and makes no effort for nodes that bind every pod."""
    monkeypatch.setattr(NodeSetSearch, "whole", lambda *_: pytest.fail("there are no such nodes"))
    there = NodeTerm((Expression(lbl.HOSTNAME, "In", ("old",)),))
    known = facts(bound("a", there, local=True))
    work = Workloads().add("other", 2, shape(900), created=1).add("w", 1, using("a"), created=2)
    made = best_plan(asked(known, work), 100)
    assert made.rated
    assert made.unbound == ("w-0",)
    back = asked(known, work, replace(node(**{lbl.HOSTNAME: "old"}), name="old"))
    assert unbound_pods(back, Plan(placements=(Placement("old", "", ("w-0",)),))) == ()


@pytest.mark.parametrize(
    ("hosts", "problem_told"),
    [
        ((), "volume pv-a is on node old or older, which is gone"),
        (("other",), "volume pv-a is on node old or older, which is gone"),
        (("older",), ""),
        (None, ""),
    ],
)
def test_s154_no_node_for_a_local_volume_whose_node_is_gone(hosts: tuple[str, ...] | None, problem_told: str) -> None:
    """No other node can have it. Where its node is there, perhaps on its way out, the rule holds."""
    terms = [NodeTerm((Expression(lbl.HOSTNAME, "In", (name,)),)) for name in ("old", "older")]
    known = replace(facts(bound("a", *terms, local=True)), hosts=None if hosts is None else frozenset(hosts))
    made = planned(asked(known, Workloads().add("w", 1, using("a")).add("o", 1, shape(100))))
    assert [pod for claim in made.claims for pod in claim.pods] == (["o-0"] if problem_told else ["o-0", "w-0"])
    assert [why.params for group in made.ignored for why in group.reasons] == (
        [{"claim": "default/a", "problem": problem_told}] if problem_told else []
    )


def test_s154_a_local_volume_that_does_not_name_its_node_has_none_that_is_gone() -> None:
    terms = [NodeTerm((Expression(lbl.HOSTNAME, "In", ("old",)),)), zones("z2")]
    known = replace(facts(bound("a", *terms, local=True)), hosts=frozenset())
    assert len(planned(asked(known, Workloads().add("w", 1, using("a")))).claims) == 1


CLAIM = VolumeClaim("default", "a", storage_class="gp3")
GONE = VolumeClaim("default", "a", "pv-a", phase="Bound", bind_completed=True)


@pytest.mark.parametrize(
    ("claim", "volume", "fine"),
    [
        (CLAIM, None, True),
        (replace(CLAIM, deleting=1), None, False),
        (replace(CLAIM, phase="Lost"), None, False),
        (replace(CLAIM, storage_class=""), None, False),
        (replace(CLAIM, storage_class="none"), None, False),
        (replace(CLAIM, storage_class="now"), None, False),
        (replace(CLAIM, name="other"), None, False),
        (GONE, Volume("pv-a"), True),
        (GONE, Volume("pv-a", deleting=1), False),
        (GONE, None, False),
        (replace(GONE, bind_completed=False), Volume("pv-a"), False),
    ],
)
def test_s153_e118_e119_volumes_that_are_not_in_order(claim: VolumeClaim, volume: Volume | None, fine: bool) -> None:
    made = planned(asked(facts((claim, volume)), Workloads().add("w", 1, using("a"))))
    assert (not made.ignored) == fine
    assert all(reason.code == SchedulingCode.VOLUME for group in made.ignored for reason in group.reasons)


def test_s159_e112_a_driver_limit_counts_claims() -> None:
    pairs = [bound(f"c{number}", zones("z1")) for number in range(12)]
    work = Workloads()
    for number in range(6):
        work.add(f"w{number}", 1, using(f"c{2 * number}", f"c{2 * number + 1}"))
    made = planned(asked(facts(*pairs, limits={"n": {EBS: 10}}), work, node()))
    assert [len(placement.pods) for placement in made.placements] == [5]
    assert len(made.claims) == 1


def test_s159_e113_a_claim_that_is_there_already_counts_once() -> None:
    work = Workloads().add("w", 100, using("a"))
    made = planned(asked(facts(bound("a", zones("z1")), limits={"n": {EBS: 1}}), work, node()))
    assert [len(placement.pods) for placement in made.placements] == [100]


def test_s159_volumes_of_bound_pods_take_their_part() -> None:
    known = facts(bound("a", zones("z1")), bound("b", zones("z1")), limits={"n": {EBS: 1}})
    work = Workloads().add("w", 1, using("a"))
    there = problem(work, ladder(2), nodes=[node()], bound=[(using("b"), "n")])
    assert planned(replace(there, volumes=known)).placements == ()


def test_s152_an_ephemeral_volume_is_named_after_its_pod() -> None:
    known = facts((VolumeClaim("default", "w-0-data", storage_class="gp3"), None))
    own = shape(100, volumes=(VolumeRef("data", storage_class="gp3"),))
    made = planned(asked(known, Workloads().add("w", 2, own)))
    assert [group.pods for group in made.ignored] == [("w-1",)]


def test_s156_e120_volumes_do_not_change_the_minimum_of_a_spread() -> None:
    web = {"labels": {"app": "web"}, "spread": (SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"})),)}
    nodes = [NodeInput(z, "", {lbl.ZONE: z}, (), {"cpu": 9000, "memory": GI, "pods": 9}) for z in ("z1", "z2", "z3")]
    work = Workloads().add("w", 1, using("a", **web))
    there = problem(work, ladder(2), nodes=nodes, bound=[(shape(labels={"app": "web"}), z) for z in ("z1", "z2", "z3")])
    made = planned(replace(there, volumes=facts(bound("a", zones("z1")))))
    assert [(placement.node, placement.pods) for placement in made.placements] == [("z1", ("w-0",))]


def test_without_facts_pods_with_volumes_are_left_over_by_name_of_the_feature() -> None:
    given = problem(Workloads().add("w", 1, using("a")), ladder(2))
    ((why,),) = [group.reasons for group in plan(given).unplaced]
    assert why.code == SchedulingCode.NOT_SUPPORTED_YET


@pytest.mark.parametrize(("narrowed", "new"), [(("z1",), 0), (("z1", "z2"), 1)])
def test_a_claim_not_launched_yet_takes_a_volume_if_every_zone_left_to_it_will_do(
    narrowed: tuple[str, ...], new: int
) -> None:
    """Else the pod of a drained node, whose replacement is on its way, would get a second one."""
    known = facts(bound("data", zones("z1")))
    room = {"cpu": 64_000, "memory": 64 * GI, "pods": 200}
    coming = NodeInput("c", "c", {}, (), room, False, requirements=(RequirementSpec(lbl.ZONE, "In", narrowed),))
    assert len(planned(asked(known, Workloads().add("p", 1, using("data")), coming)).claims) == new
