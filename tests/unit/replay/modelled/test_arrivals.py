"""Which pods are arrivals: what an eviction made is none, what was scaled away stays away, what ends by itself runs as
long as it ran."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape, Taint
from kerf.engine.record.decisions import Decision, DisruptResult, EvictPod
from kerf.engine.record.observations import ObjectGone
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State
from kerf.replay.modelled.arrivals import Arrivals, arrivals
from kerf.replay.modelled.pod_lives import PodLives
from kerf.replay.modelled.workload import Comes, Leaves, Replicas

SHAPE = PodShape(requests={"cpu": 500}, grace=30)
DIGEST = content(SHAPE)[0]
MINUTE = 60_000
BEGIN, END = 10 * MINUTE, 1_000 * MINUTE


def pod(name: str, kind: str = "apps/v1/ReplicaSet", owner: str = "web-1", **more: object) -> Pod:
    made = Pod(uid=f"uid-{name}", namespace="default", name=name, shape=DIGEST, node="n", started=1, phase="Running")
    return replace(made, owner=Owner(kind, owner, f"uid-{owner}") if owner else None, **more)


class History:
    """Tells `PodLives` what happened, and keeps the state as far as it is asked."""

    def __init__(self, *there: Pod) -> None:
        nodes = {"n": Node(name="n", ready=True)}
        facts = Facts(pods={known.uid: known for known in there}, nodes=nodes)
        self.state = State(facts, Blobs(lambda digest: msgspec.msgpack.encode(SHAPE)))
        self.lives = PodLives(self.state, BEGIN)

    def seen(self, at: int, given: Pod) -> None:
        self.lives.apply(given, at, self.state)
        self.state.facts.pods[given.uid] = given

    def gone(self, at: int, given: Pod) -> None:
        self.lives.apply(ObjectGone("pod", given.uid), at, self.state)
        self.state.facts.pods.pop(given.uid)

    def evicts(self, at: int, given: Pod) -> None:
        intent = EvictPod("claim", "n", given.uid, given.namespace, given.name)
        decision = Decision("drain", 1, at, 1, "", DisruptResult(), (intent,))
        self.lives.apply(decision, at, self.state)
        self.seen(at, replace(given, deleting=at + 30_000))

    def found(self) -> Arrivals:
        return arrivals(self.lives, BEGIN, END)

    def counts(self) -> list[tuple[int, int]]:
        return [(timed.at, timed.step.count) for timed in self.found().steps if isinstance(timed.step, Replicas)]


def test_a_replica_that_an_eviction_made_is_no_arrival() -> None:
    history = History(pod("a"), pod("b"))
    history.evicts(20 * MINUTE, pod("a"))
    history.seen(20 * MINUTE + 50, pod("c", created=20 * MINUTE + 50))

    assert history.counts() == [(BEGIN, 2)]


def test_a_replica_that_leaves_without_one_in_its_place_was_scaled_away() -> None:
    history = History(pod("a"), pod("b"))
    history.seen(20 * MINUTE, pod("a", deleting=20 * MINUTE + 30_000))
    history.gone(21 * MINUTE, pod("a"))

    assert history.counts() == [(BEGIN, 2), (20 * MINUTE, 1)]


def test_an_evicted_replica_for_which_none_comes_was_scaled_away_and_stays_away() -> None:
    history = History(pod("a"), pod("b"))
    history.evicts(20 * MINUTE, pod("a"))
    history.seen(60 * MINUTE, pod("c", created=60 * MINUTE))

    assert history.counts() == [(BEGIN, 2), (20 * MINUTE, 1), (60 * MINUTE, 2)]


def test_a_replica_of_a_lost_node_is_replaced_and_no_arrival() -> None:
    history = History(pod("a"))
    history.state.facts.nodes.clear()
    history.gone(20 * MINUTE, pod("a"))
    history.seen(20 * MINUTE + 10, pod("c", created=20 * MINUTE + 10))

    assert history.counts() == [(BEGIN, 1)]


def test_a_job_runs_as_long_as_it_ran_and_is_kept_as_long() -> None:
    history = History()
    job = pod("j", "batch/v1/Job", "job", created=20 * MINUTE, node="", phase="Pending", started=0, unschedulable=True)
    history.seen(20 * MINUTE, job)
    history.seen(25 * MINUTE, replace(job, node="n", phase="Running", started=25 * MINUTE))
    history.seen(32 * MINUTE, replace(job, node="n", phase="Succeeded", started=25 * MINUTE))
    history.gone(33 * MINUTE, job)

    (timed,) = history.found().steps

    assert timed.at == 20 * MINUTE
    assert isinstance(timed.step, Comes)
    assert (timed.step.runs, timed.step.kept, timed.step.again) == (7 * MINUTE, MINUTE, True)


def test_a_job_that_was_evicted_comes_once() -> None:
    history = History()
    job = pod("j-1", "batch/v1/Job", "job", started=20 * MINUTE)
    history.seen(20 * MINUTE, job)
    history.evicts(30 * MINUTE, job)
    second = pod("j-2", "batch/v1/Job", "job", started=31 * MINUTE)
    history.seen(30 * MINUTE + 100, second)
    history.seen(41 * MINUTE, replace(second, phase="Succeeded"))

    (timed,) = history.found().steps

    assert isinstance(timed.step, Comes)
    assert timed.step.runs == 10 * MINUTE


def test_a_pod_of_its_own_that_is_evicted_is_not_taken_away_by_the_record() -> None:
    history = History(pod("bare", owner=""), pod("other", owner=""))
    history.evicts(20 * MINUTE, pod("bare", owner=""))
    history.gone(30 * MINUTE, pod("other", owner=""))

    steps = [timed.step for timed in history.found().steps]

    assert [type(step) for step in steps] == [Comes, Comes, Leaves]
    assert isinstance(steps[-1], Leaves)
    assert "other" in steps[-1].slot


def test_a_pod_behind_a_scheduling_gate_comes_when_the_scheduler_looks_at_it() -> None:
    history = History()
    gated = pod("g", node="", phase="Pending", started=0, created=20 * MINUTE)
    history.seen(20 * MINUTE, gated)
    history.seen(50 * MINUTE, replace(gated, unschedulable=True))
    history.seen(20 * MINUTE, pod("never", node="", phase="Pending", started=0, created=20 * MINUTE))

    assert history.counts() == [(50 * MINUTE, 1)]
    assert history.found().left_out == {"pods at which no scheduler looked": 1}


def test_beside_another_controller_pods_of_a_node_that_it_takes_away_are_displaced() -> None:
    history = History(pod("a"))
    facts = history.state.facts
    facts.settings = replace(facts.settings, observe=True)
    facts.nodes["n"] = replace(facts.nodes["n"], taints=(Taint("karpenter.sh/disrupted", "NoSchedule"),))
    history.seen(20 * MINUTE, pod("a", deleting=20 * MINUTE + 30_000))
    history.seen(20 * MINUTE + 50, pod("c", created=20 * MINUTE + 50))

    assert history.counts() == [(BEGIN, 1)]
