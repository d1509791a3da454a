"""L-202…L-205, D-142…D-152 on random pods: who may be asked to leave when, and that a deadline ends every drain."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Owner, Pod, PodShape, Toleration
from kerf.engine.record.decisions import DeletePod, EvictPod, Intent, TerminateInstance
from kerf.engine.record.observations import EffectAnswered, NodeClaimDeletionSeen, ObjectGone, Observation
from tests.support.lives import PODS, in_service, show_taint
from tests.support.strategies.examples import examples
from tests.support.world import World

PERIOD = 300_000


class Case(Struct, frozen=True):
    """A pod on the node, and what the cluster does with it: `evictable` is whether its budget ever lets it go, `ends`
    whether its kubelet ends it."""

    critical: bool
    daemon: bool
    mirror: bool
    tolerates: bool
    protected: str
    grace: int
    evictable: bool
    ends: bool

    @property
    def group(self) -> tuple[bool, bool]:
        return self.critical, self.daemon

    @property
    def stays(self) -> bool:
        return self.mirror or self.tolerates


cases = st.builds(
    Case, critical=st.booleans(), daemon=st.booleans(), mirror=st.sampled_from([False, False, False, True]),
    tolerates=st.sampled_from([False, False, False, True]), protected=st.sampled_from(["", "", "true", "2m", "1h"]),
    grace=st.sampled_from([0, 30, 290, 900]), evictable=st.booleans(),
    ends=st.sampled_from([True, True, True, False]),
)  # fmt: skip


def put(world: World, name: str, case: Case) -> Pod:
    shape = PodShape(
        priority_class="system-node-critical" if case.critical else "",
        tolerations=(Toleration(operator="Exists"),) if case.tolerates else (),
        grace=case.grace,
    )
    digest, _ = content(shape)
    owner = Owner(NODE_OWNER, "n1") if case.mirror else Owner(DAEMONSET, "d") if case.daemon else None
    pod = Pod(f"uid-{name}", "default", name, digest, node="n1", phase="Running", ready=True, started=world.now,
              owner=owner, do_not_disrupt=case.protected)  # fmt: skip
    world.see(Observation(pod, {digest: shape}))
    return pod


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(cases, min_size=1, max_size=5))
def test_groups_leave_in_order_and_the_deadline_ends_every_drain(given_cases: list[Case]) -> None:
    world = in_service(termination_grace_period=PERIOD)
    for name in PODS:
        world.gone(name)
    by_name = {f"p{number}": case for number, case in enumerate(given_cases)}
    there = {name: put(world, name, case) for name, case in by_name.items()}
    world.see(Observation(NodeClaimDeletionSeen(next(iter(world.runtime.state.facts.claims)), "kubectl")))
    begun = world.now
    world.answer_all()
    show_taint(world)
    for _ in range(500):
        orders = [(ref, intent) for ref, intent in world.intents if isinstance(intent, EvictPod | DeletePod)]
        if any(isinstance(intent, TerminateInstance) for _, intent in world.intents):
            break
        for _, order in orders:
            check(order, by_name, there, world.now - begun)
        answered = [carry_out(world, ref, order, by_name, there) for ref, order in orders]
        if answered:
            world.see(*(observation for observations in answered for observation in observations))
            continue
        ended = [name for name, pod in there.items() if 0 < pod.deleting <= world.now and by_name[name].ends]
        if ended:
            world.see(*(Observation(ObjectGone("pod", there.pop(name).uid)) for name in ended))
            continue
        times = [pod.deleting for name, pod in there.items() if pod.deleting > world.now and by_name[name].ends]
        due = world.runtime.next_due()
        world.after(min([*times, due if due is not None else world.now + PERIOD]) - world.now)
    else:
        raise AssertionError("the drain does not end")
    assert world.now - begun <= PERIOD + 60_000 + 2_000  # the last grace is a second, the last wait a minute
    assert all(by_name[name].stays or not by_name[name].ends for name in there)


def check(order: Intent, by_name: dict[str, Case], there: dict[str, Pod], since: int) -> None:
    assert isinstance(order, EvictPod | DeletePod)
    case = by_name[order.name]
    assert not case.stays
    if isinstance(order, DeletePod):
        assert 1 <= order.grace <= PERIOD // 1_000
        assert since > PERIOD - case.grace * 1_000 or there[order.name].deleting
        return
    assert case.protected != "true"
    assert case.protected != "2m" or since >= 120_000
    assert case.protected != "1h"
    before = [by_name[name] for name in there if not by_name[name].stays and by_name[name].group < case.group]
    # Only one that is stuck, or goes by force (D-143), is not waited for.
    assert all(not drained.ends or since > PERIOD - drained.grace * 1_000 for drained in before)


def carry_out(
    world: World, ref: str, order: EvictPod | DeletePod, by_name: dict[str, Case], there: dict[str, Pod]
) -> list[Observation]:
    """What the API server answers, and what the watch then shows."""
    case, pod = by_name[order.name], there[order.name]
    if isinstance(order, EvictPod) and not case.evictable:
        return [Observation(EffectAnswered(ref, False, "429"))]
    grace = order.grace if isinstance(order, DeletePod) else case.grace
    ends = world.now + grace * 1_000
    there[order.name] = replace(pod, deleting=min(pod.deleting or ends, ends))
    return [Observation(EffectAnswered(ref, True, "200")), Observation(there[order.name])]
