"""Clusters made of the reference's by random changes, and what is wrong with the moves that `kerf disrupt` makes: by a
judge that shares no code with what decides (`judge_commands`), and by what a second look at the cluster says.

`python -m tests.conformance.disruption_mutations --seeds 1000 --first 0` tries so many and prints what it finds.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Sequence

from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import read_catalogues, read_scenarios
from tests.conformance import changes_of_fleets as fleets
from tests.conformance import changes_of_pods as pods
from tests.conformance.changes_of_fleets import MOST_NODES
from tests.conformance.changes_of_pods import Dice, Scenario
from tests.conformance.large_set import LARGE_SET
from tests.support.judges.commands import TOLERANCE, Court
from tests.support.scenarios.carried_out import carried_out

LARGE = 40
"""Nodes of a tenth of the clusters."""
LOOKS = 5
"""So many times a cluster is asked, with the moves of the time before carried out."""

CHANGES: tuple[Callable[[Scenario, Dice], None], ...] = (
    pods.fewer_pods, pods.fewer_pods, pods.other_sizes, pods.other_sizes, pods.pods_change_places,
    pods.protected_pods, pods.pod_costs, pods.pods_on_their_way, pods.unready_pods, pods.pending_pods,
    pods.tolerations, pods.selectors, pods.spreads, pods.affinities, pods.host_ports, pods.pod_budgets,
    pods.pod_budgets, fleets.fewer_nodes, fleets.more_nodes, fleets.more_nodes, fleets.more_nodes,
    fleets.other_capacity_types, fleets.protected_nodes, fleets.nodes_on_their_way, fleets.quiet_times,
    fleets.drifted_nodes, fleets.policies, fleets.unequal_nodes, fleets.unequal_nodes, fleets.budgets, fleets.budgets,
    fleets.other_pools, fleets.further_pool, fleets.pool_gone, fleets.capacity, fleets.fewer_types,
    fleets.reservation, fleets.gates,
)  # fmt: skip


def mutated(scenarios: Sequence[Scenario], seed: int) -> Scenario:
    """One cluster with up to six changes; the same for the same seed."""
    dice = Dice(seed)
    made: Scenario = copy.deepcopy(dice.choice(scenarios))
    made["name"] = f"{made['name']}~{seed}"
    most = LARGE if dice.random() < 0.1 else MOST_NODES
    for _ in range(3 if most == LARGE else 0):
        fleets.more_nodes(made, dice, most)
    for _ in range(dice.randint(1, 6)):
        dice.choice(CHANGES)(made, dice)
    made["nodes"] = made["nodes"][:most]
    return made


def wrong(scenario: Scenario, catalogues: Catalogues) -> list[str]:
    """What is wrong with the answer to a scenario, and with those to what its moves make of it: each look begins where
    the one before ended, and no look undoes the one before, for every one ends cheaper."""
    wrong: list[str] = []
    end = 0.0
    for turn in range(LOOKS):
        result = disrupt_scenario(scenario, catalogues)["result"]
        if "error" in result:
            return [*wrong, f"look {turn}: refused: {result['error']}"]
        court = Court(scenario, result, catalogues)
        wrong += [f"look {turn}: {fault}" for fault in court.faults()]
        if turn and abs(court.price() - end) > TOLERANCE:
            wrong.append(f"look {turn}: the cluster costs {court.price()}, and was to cost {end}")
        commands, end = result["kerf"]["commands"], result["kerf"]["endPrice"]
        if (
            commands
            and end >= court.price() - TOLERANCE
            and any(command["estimatedSavings"] > TOLERANCE for command in commands)
        ):
            wrong.append(f"look {turn}: moves that save nothing")
        if wrong or not commands:
            break
        scenario = carried_out(court, commands, turn)
    return wrong


def found(first: int, count: int) -> Iterator[tuple[str, list[str]]]:
    """(name, what is wrong) of each scenario of these seeds."""
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    scenarios = list(read_scenarios(LARGE_SET / "consolidation-scenarios.jsonl"))
    for seed in range(first, first + count):
        scenario = mutated(scenarios, seed)
        yield scenario["name"], wrong(scenario, catalogues)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    bad = 0
    for name, faults in found(given.first, given.seeds):
        bad += bool(faults)
        if faults:
            print(name, *faults[:4], sep="\n  ", flush=True)
    print(f"{given.seeds} scenarios, {bad} with faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
