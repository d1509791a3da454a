"""Whether a real kube-scheduler carries plans out whole, and how well kerf's model of it foresees that.

    python benchmarks/binding.py [NAME ...] [--effort 100] [--repeat 1] [--order age|file|name] [--planned-only]
        [--services] [--scenarios FILE] [--catalogues FILE] [--mutated SEEDS [--first 0]] [--still 3] [--each]

Each scenario is planned. On a control plane of etcd, API server and kube-scheduler (`make controlplane` builds them)
are then made its nodes with their pods, the planned nodes, its volumes and classes, and at last, all at once, the pods
that wait, whom nothing tells of the plan. A plan is carried out whole when the scheduler binds every pod that the plan
has a place for, wherever. Names are of scenarios or of families (`i-mixed`); without any, all are taken: ten minutes.
`--mutated` takes, in the place of the scenarios, so many that are made of them by random changes, one of each seed from
`--first` on (tests/conformance/mutations.py): what kerf has not been tried on.
`--services` makes a Service for each set of labels that pods have: kube-scheduler then spreads, softly, those without
constraints of their own.

Prints one JSON object: `whole` of `scenarios` (those with a place for a pod; `launching`, `launching_whole`: those that
launch nodes, `price` what these cost in USD per hour), `rated` and `whole_by_model` what the plans say of themselves,
`foreseen` the scenarios by both, and for each habit of the model (its place in HABITS) how many scenarios it is right
about (`right`), and the part of the pods that it has on the nodes on which they came to be (`seats`; like pods, and
planned nodes of one kind, are one as good as the other). `not_whole` has the pods left over, with the scheduler's last
word on them, and those that the model left over (null: not rated). `obstacles` are scenarios that cannot be put on a
cluster, with the reason. `--each` adds every scenario. With `--repeat` a scenario is whole if it was so each time;
equal scores fall differently each time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.binding_cluster import Cluster, Refused, plane_in
from benchmarks.binding_objects import ORDERS, Stage, node_name, obstacle, stage
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import LARGE_SET
from tests.conformance.mutations import mutated
from tests.support.controlplane.plane import CONDITION, assets

Seats = Mapping[str, str]
"""The node of each pod, by uid."""


class Foreseen:
    """What the model says of a plan: for each habit the pods that are left over, and the seats of the others."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        new = [planned_node(node_name(number), each, given, problem) for number, each in enumerate(plan.claims)]
        scheduler = KubeScheduler(problem)
        self.left: list[tuple[str, ...]] = []
        self._seats: list[Seats] = []
        self._kinds = {each.name: _kind(each) for each in new}
        self._pods = {each.uid: _like(each) for each in problem.pods}
        for habit in SCHEDULER_VARIANTS:
            found, _ = scheduler.bind(new, plan.placed, variant=habit)
            assert found is not None  # there is no end to the effort
            self.left.append(found.unbound)
            self._seats.append(found.node_of)

    def agreement(self, real: Seats) -> list[int]:
        """For each habit the pods that are on the node on which they came to be, but for what makes no difference."""
        return [_shared(self._contents(each), self._contents(real)) for each in self._seats]

    def _contents(self, seats: Seats) -> dict[object, list[Counter[object]]]:
        """What is on the nodes of each kind."""
        nodes: dict[str, Counter[object]] = {}
        for uid, node in seats.items():
            nodes.setdefault(node, Counter())[self._pods[uid]] += 1
        kinds: dict[object, list[Counter[object]]] = {}
        for node in sorted(nodes):
            kinds.setdefault(self._kinds.get(node, node), []).append(nodes[node])
        return kinds


def _kind(seat: NodeInfo) -> object:
    return tuple(sorted(seat.labels.items())), seat.taints, tuple(sorted(seat.free.items()))


def _shared(one: Mapping[object, list[Counter[object]]], other: Mapping[object, list[Counter[object]]]) -> int:
    """The pods that are on the same nodes, nodes of one kind being matched so that they have most in common first."""
    shared = 0
    for kind, nodes in one.items():
        left = list(other.get(kind, ()))
        pairs = sorted(
            ((-(a & b).total(), i, j) for i, a in enumerate(nodes) for j, b in enumerate(left)),
        )
        taken: set[tuple[str, int]] = set()
        for common, i, j in pairs:
            if not taken & {("one", i), ("other", j)}:
                taken |= {("one", i), ("other", j)}
                shared -= common
    return shared


def carried_out(cluster: Cluster, made: Stage, problem: Problem, plan: Plan) -> tuple[Seats, dict[str, str]]:
    """The nodes of pods that were bound, and the scheduler's words on those of the plan that were left over, both by
    uid. A pod that the plan has no place for is as good as one like it that it has a place for."""
    pods = {(each.namespace, each.name): each for each in problem.pods}
    found = cluster.carried_out(made, [key for key, each in pods.items() if each.uid in plan.placed])
    others = Counter(_like(pods[key]) for key in found.seats if pods[key].uid not in plan.placed)
    left = {}
    for key, word in sorted(found.words.items()):
        if pods[key].uid in plan.placed:
            if others[_like(pods[key])]:
                others[_like(pods[key])] -= 1
            else:
                left[pods[key].uid] = word
    return {pods[key].uid: node for key, node in found.seats.items()}, left


def _like(pod: PendingPod) -> tuple[str, str]:
    return pod.namespace, pod.shape


def measured(cluster: Cluster, scenario: dict[str, Any], problem: Problem, asked: argparse.Namespace) -> dict[str, Any]:
    """One scenario; with an `obstacle` if it cannot be put on the cluster."""
    plan = best_plan(problem, asked.effort)
    told = {"name": scenario["name"], "family": scenario.get("family", ""), "pods": len(plan.placed)}
    why = obstacle(scenario, problem) or ("" if plan.placed else "its plan has a place for no pod")
    if why:
        return {**told, "obstacle": why}
    made = stage(scenario, problem, plan, asked.order, planned_only=asked.planned_only, services=asked.services)
    foreseen = Foreseen(problem, plan)
    runs = []
    for _ in range(asked.repeat):
        try:
            seats, left = carried_out(cluster, made, problem, plan)
        except Refused as error:
            return {**told, "obstacle": str(error)}
        runs.append({"left": left, "agreement": foreseen.agreement(seats)})
    return {
        **told,
        "claims": len(plan.claims),
        "price": round(math.fsum(each.price for each in plan.claims), 6),
        "rated": plan.rated,
        "left_by_plan": sorted(plan.unbound) if plan.rated else None,
        "left_by_habit": [len(each) for each in foreseen.left],
        "runs": runs,
    }


def summary(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all."""
    run = [each for each in found if "runs" in each]
    launching = [each for each in run if each["claims"]]
    rated = [each for each in run if each["rated"]]
    foreseen = Counter(f"model {_word(not each['left_by_plan'])}, real {_word(_whole(each))}" for each in rated)
    pods = sum(each["pods"] * len(each["runs"]) for each in run)
    return {
        "scenarios": len(run),
        "whole": sum(map(_whole, run)),
        "launching": len(launching),
        "launching_whole": sum(map(_whole, launching)),
        "price": round(math.fsum(each["price"] for each in launching), 4),
        "rated": len(rated),
        "whole_by_model": sum(not each["left_by_plan"] for each in rated),
        "foreseen": dict(sorted(foreseen.items())),
        "habits": [
            {
                "right": sum(_whole(each) == (not each["left_by_habit"][habit]) for each in run),
                "seats": round(sum(r["agreement"][habit] for each in run for r in each["runs"]) / max(1, pods), 4),
            }
            for habit in range(len(SCHEDULER_VARIANTS))
        ],
        "not_whole": {
            each["name"]: {"left": [run["left"] for run in each["runs"]], "model": each["left_by_plan"]}
            for each in run
            if not _whole(each)
        },
        "obstacles": {each["name"]: each["obstacle"] for each in found if "obstacle" in each},
    }


def _whole(each: Mapping[str, Any]) -> bool:
    return not any(run["left"] for run in each["runs"])


def _word(whole: bool) -> str:
    return "whole" if whole else "not whole"


def given(asked: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """The scenarios of the file, or those that are made of them."""
    found = list(read_scenarios(asked.scenarios))
    if asked.mutated is None:
        return found
    return (mutated(found, seed) for seed in range(asked.first, asked.first + asked.mutated))


def chosen(names: Sequence[str], scenarios: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those of these names or families; all if there are none."""
    for each in scenarios:
        if not names or each.get("name") in names or each.get("family") in names:
            yield each


def main() -> int:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text.partition("\n")[0],
        epilog=text.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios, or families of them")
    parser.add_argument("--effort", type=int, default=EFFORT, help=f"search steps of each plan ({EFFORT})")
    parser.add_argument("--repeat", type=int, default=1, help="how often each plan is carried out")
    parser.add_argument("--order", choices=ORDERS, default=ORDERS[0], help="in which pods are made")
    parser.add_argument("--planned-only", action="store_true", help="without the pods that the plan has no place for")
    parser.add_argument("--services", action="store_true", help="with a Service for each set of labels of pods")
    parser.add_argument("--scenarios", type=Path, default=LARGE_SET / "scenarios.jsonl", help="as for `kerf plan`")
    parser.add_argument("--catalogues", type=Path, default=LARGE_SET / "catalogues.json", help="as for `kerf plan`")
    parser.add_argument("--mutated", type=int, metavar="SEEDS", help="so many that are made of the scenarios")
    parser.add_argument("--first", type=int, default=0, help="the first seed of those")
    parser.add_argument("--still", type=float, default=3.0, help="seconds without a binding that are the end")
    parser.add_argument("--each", action="store_true", help="every scenario's figures, too")
    asked = parser.parse_args()
    binaries = assets()
    if binaries is None:
        parser.error(CONDITION)
    if asked.effort < 0 or asked.repeat < 1 or asked.still <= 0:
        parser.error("--effort is at least 0, --repeat at least 1, --still more than 0")
    missing = [each for each in (asked.scenarios, asked.catalogues) if not each.is_file()]
    if missing:
        parser.error(f"there is no {missing[0]}")
    catalogues = read_catalogues(asked.catalogues)
    scenarios = list(chosen(asked.names, given(asked)))
    if not scenarios:
        parser.error(f"no scenario is named {' or '.join(asked.names)}")
    found = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kerf-binding-") as folder:
        plane = plane_in(binaries, Path(folder) / "plane")
        try:
            plane.start_scheduling()
            with closing(Cluster(plane, asked.still)) as cluster:
                for number, each in enumerate(scenarios, start=1):
                    made = measured(cluster, each, problem_of(each, catalogues), asked)
                    found.append(made)
                    print(f"{number}/{len(scenarios)} {_line(made)}", file=sys.stderr, flush=True)
        finally:
            plane.stop()
    figures = {"effort": asked.effort, "order": asked.order, "repeat": asked.repeat, **summary(found)}
    figures["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps({**figures, "each": found} if asked.each else figures, indent=2))
    return 0


def _line(made: Mapping[str, Any]) -> str:
    if "obstacle" in made:
        return f"{made['name']}: {made['obstacle']}"
    left = [len(run["left"]) for run in made["runs"]]
    return f"{made['name']}: {made['pods']} pods, left over {left}, by habit {made['left_by_habit']}"


if __name__ == "__main__":
    raise SystemExit(main())
