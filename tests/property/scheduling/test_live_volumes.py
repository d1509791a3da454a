"""S-152…S-159 from the state: what a pass makes of any cluster with volumes is valid, pods stay out exactly for claims
that are not in order, and the order in which the watches told of it changes nothing."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Pod, PodShape, VolumeRef
from kerf.engine.model.kubernetes.volumes import EBS, CSINode, StorageClass, Volume, VolumeClaim
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.state import snapshot
from tests.support.judges.plans import faults
from tests.support.lives import in_service
from tests.support.strategies.examples import examples
from tests.support.world import World

ZONES = ("us-west-2a", "us-west-2b")
WAITS, AT_ONCE = StorageClass("waits", EBS), StorageClass("at-once", EBS, immediate=True)
CLAIMS = tuple("abcdef")


def zonal(zone: str) -> tuple[NodeTerm, ...]:
    return (NodeTerm((Expression("topology.ebs.csi.aws.com/zone", "In", (zone,)),)),)


@st.composite
def storage(draw: st.DrawFn) -> list[Struct]:
    """Claims a to f: some missing, some bound (to volumes that may be missing), some waiting."""
    found: list[Struct] = [WAITS, AT_ONCE, CSINode("n1", {EBS: draw(st.integers(0, 3))})]
    for name in CLAIMS:
        kind = draw(st.sampled_from(["missing", "waits", "at-once", "nowhere", "bound", "bound", "lost", "going"]))
        if kind == "bound" or (kind == "lost" and draw(st.booleans())):
            found.append(VolumeClaim("default", name, f"pv-{name}", "waits", "Bound", bind_completed=True))
        elif kind != "missing":
            found.append(VolumeClaim("default", name, storage_class=kind if kind != "going" else "waits",
                                     deleting=int(kind == "going")))  # fmt: skip
        if kind == "bound":
            found.append(Volume(f"pv-{name}", EBS, zonal(draw(st.sampled_from(ZONES)))))
    return found


def told(facts: list[Struct], uses: list[tuple[str, ...]], on_n1: tuple[str, ...]) -> World:
    """`n1` runs a pod with the volumes `on_n1`; a pod for each of `uses` waits."""
    world = in_service()
    world.see(*(Observation(fact) for fact in facts))
    for number, claims in enumerate((on_n1, *uses)):
        shape = PodShape(requests={"cpu": 100}, volumes=tuple(VolumeRef(f"v-{c}", claim=c) for c in claims))
        digest, _ = content(shape)
        pod = Pod(f"uid-{number}", "default", f"p{number}", digest, node="" if number else "n1",
                  phase="Pending" if number else "Running", unschedulable=bool(number))  # fmt: skip
        world.see(Observation(pod, {digest: shape}))
    return world


def in_order(facts: list[Struct], name: str) -> bool:
    """S-153, in other words than the planner's."""
    claim = next((fact for fact in facts if isinstance(fact, VolumeClaim) and fact.name == name), None)
    if claim is None or claim.deleting:
        return False
    if claim.volume:
        return any(isinstance(fact, Volume) and fact.name == claim.volume for fact in facts)
    return claim.storage_class == "waits"


some = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique=True).map(tuple)


@settings(max_examples=examples(60), deadline=None)
@given(facts=storage(), uses=st.lists(some, min_size=1, max_size=4), on_n1=some, seed=st.integers(0, 99))
def test_plans_over_live_volumes_are_valid_and_explain_who_stays_out(
    facts: list[Struct], uses: list[tuple[str, ...]], on_n1: tuple[str, ...], seed: int
) -> None:
    world = told(facts, uses, on_n1)
    problem = problem_of(world.runtime.state, world.now)
    made = plan(problem)
    assert faults(problem, made) == []
    ignored = {uid for group in made.ignored for uid in group.pods}
    wrong = {f"uid-{n}" for n, claims in enumerate(uses, 1) if not all(in_order(facts, c) for c in claims)}
    assert ignored == wrong
    assert all(reason.code == "volume" for group in made.ignored for reason in group.reasons)
    shuffled = list(facts)
    random.Random(seed).shuffle(shuffled)
    assert problem_of(told(shuffled, uses, on_n1).runtime.state, world.now).volumes == problem.volumes


@settings(max_examples=examples(30), deadline=None)
@given(facts=storage(), gone=st.sets(st.sampled_from(CLAIMS)))
def test_the_state_of_volumes_survives_a_snapshot(facts: list[Struct], gone: set[str]) -> None:
    world = told(facts, [("a",)], ("b",))
    world.see(*(Observation(ObjectGone("pvc", f"default/{name}")) for name in sorted(gone)))
    state = world.runtime.state
    data, _ = snapshot.encode(state)
    again = snapshot.decode(data, state.indexes.blobs)
    assert problem_of(again, world.now).volumes == problem_of(state, world.now).volumes
    assert not {f"default/{name}" for name in gone} & set(again.facts.volume_claims)
