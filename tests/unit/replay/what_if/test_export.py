"""A moment that is written as a scenario is planned as kerf planned it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from kerf.adapters.store.files.golden import GoldenStore
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Selector, SpreadConstraint
from kerf.engine.record.decisions import Decision, ProposedMovesResult, ProvisionResult
from kerf.engine.record.observations import Observation
from kerf.engine.record.store import Store
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.state.load import load
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import plan_scenario
from kerf.replay.what_if.export.scenario import scenario_of
from tests.support.repository import ROOT
from tests.support.world import Mi, World, pool

GOLDEN = ROOT / "tests" / "golden"
CASES = ["workshop-scale-up-and-down", "no-capacity", "pools-weights-limits", "volumes", "expired-under-a-budget"]


def plans(store: Store) -> Iterator[Decision]:
    """The provisioning decisions that launch something."""
    for entry in store.scan():
        decision = entry.payload
        if isinstance(decision, Decision) and isinstance(decision.result, ProvisionResult) and decision.result.claims:
            yield decision


@pytest.mark.parametrize("case", CASES)
def test_plan_makes_of_it_what_kerf_decided_then(case: str) -> None:
    store = GoldenStore(GOLDEN / case)
    decisions = list(plans(store))
    assert decisions
    for decision in decisions:
        state = load(store, decision.looked_at)
        exported = scenario_of(state, decision.now, case)
        planned = plan_scenario(exported.scenario, {}, nominate=state.facts.settings.nominations)
        assert "error" not in planned["result"], planned["result"]
        claims = planned["result"]["newNodeClaims"]
        assert isinstance(decision.result, ProvisionResult)
        assert sorted((c["nodePool"], c["cheapestInstanceType"], len(c["pods"])) for c in claims) == sorted(
            (claim.node_pool, claim.instance_types[0], len(claim.pods)) for claim in decision.result.claims
        )
        placed = sum(len(placement.pods) for placement in decision.result.placements)
        assert planned["summary"]["podsOnExistingNodes"] == placed


def seats(pods_of: Iterable[Iterable[str]]) -> list[list[str]]:
    return sorted(sorted(pods) for pods in pods_of)


def test_pods_of_one_second_keep_the_order_of_their_arrival() -> None:
    """A spread of pods that are told in turn gets the same seats. Of those that came in no known order web-10 is after
    web-9."""
    world = World(nominations=True)
    world.prepare(pool())
    spread = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"}))
    web = PodShape(requests={"cpu": 900, "memory": 1024 * Mi}, labels={"app": "web"}, spread=(spread,))
    other = PodShape(requests={"cpu": 400, "memory": 1024 * Mi})
    for shape, names in ((web, [f"web-{n}" for n in (0, 2, 4, 6, 1, 3, 5)]), (other, ["other-9", "other-10"])):
        digest, _ = content(shape)
        for number, name in enumerate(names, start=1):
            pod = Pod(name, "default", name, digest, created=world.now, unschedulable=True)
            arrival = number if shape is web else 0
            world.see(Observation(replace(pod, arrival=arrival), {digest: shape}))
    state = world.runtime.state
    exported = scenario_of(state, world.now, "one-second").scenario
    names = [document["metadata"]["name"] for document in exported["pods"]]
    assert names == ["other-9", "other-10", *(f"web-{n}" for n in (0, 2, 4, 6, 1, 3, 5))]
    planned = plan_scenario(exported, {}, nominate=True)["result"]["newNodeClaims"]
    live = best_plan(problem_of(state, world.now), state.facts.settings.effort)
    assert seats(claim["pods"] for claim in planned) == seats(claim.pods for claim in live.claims)


@pytest.mark.parametrize("case", CASES)
def test_disrupt_can_read_it(case: str) -> None:
    store = GoldenStore(GOLDEN / case)
    state = load(store)
    decided = disrupt_scenario(scenario_of(state, state.facts.at, case).scenario, {})
    assert "error" not in decided["result"], decided["result"]
    assert {*decided["result"]} >= {"emptiness", "multiNode", "singleNode", "kerf"}


def test_a290_disrupt_replaces_nothing_by_what_is_in_doubt() -> None:
    """The node was launched because a cheaper type was refused. That one may be tried again, and is in doubt."""
    store = GoldenStore(GOLDEN / "no-capacity")
    decisions = (entry.payload for entry in store.scan() if isinstance(entry.payload, Decision))
    passes = ((made, made.result) for made in decisions if isinstance(made.result, ProposedMovesResult))
    tried = next(made for made, told in passes if any(said.reason.code == "moved-lately" for said in told.verdicts))
    state = load(store, tried.looked_at)  # the type is in doubt no more when that pass would replace the node by it
    now = max(state.facts.unavailable.values())
    scenario = scenario_of(state, now, "no-capacity").scenario
    source = scenario["instanceTypes"]
    zones = sorted(offers["zones"] for offers in source["inDoubt"] if offers["types"] == ["m5.large"])
    assert zones == [["us-west-2a"], ["us-west-2b"], ["us-west-2c"]]
    assert disrupt_scenario(scenario, {})["result"]["kerf"]["commands"] == []
    sure = {**scenario, "instanceTypes": {**source, "inDoubt": []}}
    assert len(disrupt_scenario(sure, {})["result"]["kerf"]["commands"]) == 1
