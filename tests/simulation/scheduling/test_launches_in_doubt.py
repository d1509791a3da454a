"""The cloud sells nothing of what a plan needs, for hours: nothing is launched in vain, and little is asked for.

Karpenter counts on a refused offering again after three minutes (A-290). So it opened nodes for pods that a hard spread
then kept pending, and offered nodes replacements that did not come, each time.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

from kerf.adapters.simulation.build import START
from kerf.engine.model.labels import CAPACITY_TYPE, ZONE
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.explain.refused_offerings import RefusedZones
from kerf.engine.scheduling.launches_in_doubt import ANSWERED_WITHIN
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from kerf.engine.state.load import load
from kerf.engine.state.moves import ABANDONED
from kerf.projections.cluster_status.cluster_status import cluster_status
from kerf.projections.cluster_status.waiting_pods import NO_PLACE
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.prose.amounts import moment
from kerf.replay.explain.pod import explain_pod
from kerf.replay.verify.verify import verify
from tests.support.simulation.manifests import of_cpu
from tests.support.simulation.run import HOUR, ZONES, Run, documents, scale

MINUTE = 60_000
LACKING = ZONES[2]


def no_capacity(at: str, **offerings: str) -> dict[str, Any]:
    return {"at": at, "action": "capacity", **offerings}


def run(*given: dict[str, Any], actions: list[dict[str, Any]], until: int, kinds: tuple[str, ...]) -> Run:
    manifests = documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml")
    for requirement in manifests[0]["spec"]["template"]["spec"]["requirements"]:
        if requirement["key"] == CAPACITY_TYPE:
            requirement["values"] = list(kinds)
    timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "t"},
                "spec": {"actions": actions}}  # fmt: skip
    return Run([*manifests, *given, timeline], until=until)


@cache
def spread_over_zones() -> Run:
    """Pods spread over three zones. Six more come when one zone has ceased to sell; it sells again after an hour."""
    spread = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "inflate"}}}  # fmt: skip
    return run(
        of_cpu("inflate", 3, 1000, topologySpreadConstraints=[spread]),
        actions=[no_capacity("5m", zone=LACKING), scale("5m", 9), {"at": "67m", "action": "restore-capacity"}],
        until=2 * HOUR,
        kinds=("on-demand",),
    )


def times(run: Run, kind: str) -> list[int]:
    """When entries of this type were recorded, in ms since the start."""
    return [entry.at - START for entry in run.entries(kind)]


def test_a290_a_zone_that_refuses_again_brings_no_nodes_elsewhere() -> None:
    """76 nodes came and went as empty in two hours."""
    launched = times(spread_over_zones(), "claim.launched")
    assert not [at for at in launched if 6 * MINUTE < at < 67 * MINUTE]


def test_a290_one_launch_asks_again_for_each_set_of_offerings() -> None:
    refused = times(spread_over_zones(), "claim.launch-failed")
    retries = Counter(at // (3 * MINUTE) for at in refused if 6 * MINUTE < at < 66 * MINUTE)
    assert max(retries.values()) <= 3
    assert len(retries) >= 18, "the zone is asked every three minutes all the same"


def test_a290_pods_get_their_nodes_with_the_first_try_that_succeeds() -> None:
    lived = spread_over_zones()
    api = lived.simulation.cluster.api
    assert Counter(api.nodes[pod.node].labels[ZONE] for pod in api.pods.values()) == dict.fromkeys(ZONES, 3)
    late = [at for at in times(lived, "claim.launched") if at > 67 * MINUTE]
    assert late[0] < (67 + 3) * MINUTE + ANSWERED_WITHIN
    assert late[-1] - late[0] <= ANSWERED_WITHIN


def test_a290_pods_that_wait_for_the_answer_are_told_so() -> None:
    plans = [e.payload.result for e in spread_over_zones().entries("decision.made") if e.payload.decider == "provision"]
    why = [reason for plan in plans for group in plan.unplaced for reason in group.reasons]
    found = {sentence(reason) for reason in why if reason.code == SchedulingCode.IN_DOUBT}
    assert len(found) == 1
    assert f"a node in {LACKING} is launched first" in found.pop()


def first_plan(code: SchedulingCode) -> Entry:
    """The first plan with this reason."""
    plans = (
        e for e in spread_over_zones().store.scan() if e.type == "decision.made" and e.payload.decider == "provision"
    )
    return next(e for e in plans if any(r.code == code for group in e.payload.result.unplaced for r in group.reasons))


def test_a290_a_spread_without_a_place_names_the_zone_without_capacity_and_when_it_is_asked_again() -> None:
    """In `kerf status`, `kerf explain` and the Event: each said that the spread leaves no place."""
    store, entry = spread_over_zones().store, first_plan(SchedulingCode.TOPOLOGY)
    state = load(store, entry.position)
    again = min(state.facts.unavailable.values())
    said = f"; there was no capacity in {LACKING} when last asked for: tried again at {moment(again)}"
    waiting = next(w for w in cluster_status(state, plan=entry.payload.result).waiting if w.outlook == NO_PLACE)
    assert (waiting.refused_zones, waiting.again) == ((LACKING,), again)
    assert waiting.why.endswith(said)
    explained = explain_pod(store, waiting.pods[0], entry.position)
    assert explained.refused == (RefusedZones((LACKING,), again),)
    events = [e for e in DecisionEvents(state).apply(entry) if e.reason == "FailedScheduling"]
    assert {event.about.name for event in events} == {key.partition("/")[2] for key in waiting.pods}
    assert all(event.message == event.lasting + said for event in events)


def test_a290_pods_that_wait_for_the_answer_are_told_until_when() -> None:
    entry = first_plan(SchedulingCode.IN_DOUBT)
    state = load(spread_over_zones().store, entry.position)
    events = [event.message for event in DecisionEvents(state).apply(entry) if "is launched first" in event.message]
    assert events
    assert all(text.endswith(f"planned again at {moment(state.facts.retry_at)} at the latest") for text in events)


def test_the_record_verifies() -> None:
    assert verify(spread_over_zones().store).exit_code == 0


def test_d66_replacements_that_the_cloud_refuses_are_offered_ever_more_seldom() -> None:
    """254 times in seven hours a node was tainted for a replacement that did not come."""
    lived = run(
        *(of_cpu(f"d{number}", 1, 1500) for number in range(9)),
        actions=[no_capacity("1s", capacityType="spot")],
        until=7 * HOUR,
        kinds=("spot", "on-demand"),
    )
    steps = (e.payload.result for e in lived.entries("decision.made") if e.payload.decider == "move")
    abandoned = [e for e in steps if e.step == ABANDONED]
    assert 5 <= len(abandoned) <= 2 * 9 + 2
    tainted = times(lived, "claim.tainted")
    assert max(after - before for before, after in pairwise(tainted)) <= HOUR + 5 * MINUTE
