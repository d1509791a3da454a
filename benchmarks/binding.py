"""Measure whether a real kube-scheduler binds plans whole, and how well kerf's model of it foresees that.

    python benchmarks/binding.py [NAME ...] [--effort 100] [--repeat 1] [--order age|file|name] [--planned-only]
        [--services] [--nominate] [--scenarios FILE] [--catalogues FILE] [--mutated SEEDS [--first 0]] [--still 3]
        [--each]

Each scenario is planned, and then set up on a control plane of etcd, API server and kube-scheduler (`make controlplane`
builds them): its nodes with their pods, the planned nodes, its volumes and classes. Last come the waiting pods, all at
once; nothing tells them of the plan. The plan binds whole if the scheduler binds every pod that the plan has a place
for, wherever. NAME is a scenario or a family (`i-mixed`); without names all are taken, which takes ten minutes.

`--mutated` takes as many scenarios made by random changes instead, one for each seed from `--first` on
(tests/conformance/mutations.py): cases that kerf has not been tried on. `--services` makes a Service for each set of
pod labels: kube-scheduler then spreads, softly, those pods without constraints of their own. `--nominate` plans
for pods that are told their nodes (status.nominatedNodeName). As in a cluster, the plan is made for the pods that the
scheduler has refused, and once more than foreseen where it has bound others to the nodes that were there. The new nodes
are closed until all are there and pods have been told them. `--order`: in which order the pods are made. By age is what
scenarios say; by file or name all come in the same second, and plans know their order or not.

Prints one JSON object:

- `scenarios`: those with a place for a pod. `whole`: those of them that bound whole.
- `launching`, `launching_whole`: those that launch nodes. `price`: what these nodes cost, USD per hour;
  `price_carried_out`: what those cost that came, in all runs.
- `rated`, `whole_by_model`: what the plans say of themselves. `foreseen`: the scenarios by both.
- `habits`: for each variant of the model (in the order of SCHEDULER_VARIANTS) how many scenarios it is `right` about,
  and the share of pods that it has on their real nodes (`seats`). Equal pods, and planned nodes of one kind, are
  interchangeable.
- `not_whole`: the pods left over, with the scheduler's last word on them, and those that the model left over (null if
  the plan was not rated).
- `obstacles`: scenarios that cannot be put on a cluster, with the reason.

`--each` adds every scenario. With `--repeat`, a scenario is whole if it bound whole each time: equal scores fall
differently each time.
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

from msgspec.structs import replace

from benchmarks.real_scheduler.cluster import Cluster, Refused, plane_in
from benchmarks.real_scheduler.objects import ORDERS, ComingNode, Key, Stage, coming_nodes, node_name, obstacle, stage
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.optimizer.alternative_plans import with_bound
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.partial_problems import problem_after_binding
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.pod_volumes import claim_names
from kerf.engine.scheduling.problem.problem import PendingPod, Problem
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import LARGE_SET
from tests.conformance.mutations import mutated
from tests.support.controlplane.plane import CONDITION, assets

Bindings = Mapping[str, str]
"""The node of each pod, by uid."""


class ModelForecast:
    """What the model of kube-scheduler says of a plan: for each variant the unbound pods, and the nodes of the
    others."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        daemon_sets = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        new = [planned_node(node_name(number), claim, daemon_sets, problem) for number, claim in enumerate(plan.claims)]
        scheduler = KubeScheduler(problem)
        self.left: list[tuple[str, ...]] = []
        self._bindings: list[Bindings] = []
        self._kinds = {node_info.name: _node_kind(node_info) for node_info in new}
        self._pods = {pod.uid: _pod_kind(pod) for pod in problem.pods}
        for variant in SCHEDULER_VARIANTS:
            binding, _ = scheduler.bind(new, plan.placed, variant=variant)
            assert binding is not None  # there is no end to the effort
            self.left.append(binding.unbound)
            self._bindings.append(binding.node_of)

    def agreement(self, real: Bindings) -> list[int]:
        """Count for each variant the pods that it has on their real nodes. Equal pods, and new nodes of one kind, are
        interchangeable."""
        return [_pods_in_common(self._contents(bindings), self._contents(real)) for bindings in self._bindings]

    def _contents(self, bindings: Bindings) -> dict[object, list[Counter[object]]]:
        """What is on the nodes of each kind."""
        nodes: dict[str, Counter[object]] = {}
        for uid, node in bindings.items():
            nodes.setdefault(node, Counter())[self._pods[uid]] += 1
        kinds: dict[object, list[Counter[object]]] = {}
        for node in sorted(nodes):
            kinds.setdefault(self._kinds.get(node, node), []).append(nodes[node])
        return kinds


def _node_kind(node: NodeInfo) -> object:
    return tuple(sorted(node.labels.items())), node.taints, tuple(sorted(node.free.items()))


def _pods_in_common(one: Mapping[object, list[Counter[object]]], other: Mapping[object, list[Counter[object]]]) -> int:
    """Count the pods on the same nodes. Nodes of one kind are matched so that they have most pods in common first."""
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


class Told:
    """The plan for pods that are told their nodes, as `kerf run` makes it: once kube-scheduler has refused them and has
    bound what it could to the nodes that are there. `made` is the latest one, with all pods."""

    def __init__(self, scenario: Mapping[str, Any], problem: Problem, plan: Plan, effort: int) -> None:
        self.made = plan
        self._scenario, self._problem, self._foreseen, self._effort = scenario, problem, plan, effort
        self._claims = {
            pod.uid: frozenset(claim_names(pod.namespace, pod.name, problem.shapes[pod.shape])) for pod in problem.pods
        }

    def coming(self, bindings: Mapping[Key, str]) -> Sequence[ComingNode]:
        """The new nodes for the pods that are left."""
        node_of = {pod.uid: node for pod in self._problem.pods if (node := bindings.get((pod.namespace, pod.name)))}
        rest, planned = self._problem, self._foreseen
        left = frozenset(pod.uid for pod in rest.pods if pod.uid not in node_of)
        chosen = frozenset().union(*(self._claims[uid] for uid in node_of))
        # Where volumes are that the scheduler has chosen is not in the problem.
        if node_of and chosen.isdisjoint(frozenset().union(*(self._claims[uid] for uid in left))):
            rest = problem_after_binding(rest, node_of, left)
            planned = best_plan(rest, self._effort)
            self.made = with_bound(self._problem, planned, node_of)
        return coming_nodes(self._scenario, rest, planned)


def carried_out(
    cluster: Cluster, staged: Stage, problem: Problem, plan: Plan, told: Told | None = None
) -> tuple[Bindings, dict[str, str]]:
    """Return the nodes of the pods that were bound, and the scheduler's words on those of the plan that were not, both
    by uid. A pod without a place in the plan stands for an equal one that has a place. Pods that are `told` their nodes
    have the plan that is made for them on the way."""
    pods = {(pod.namespace, pod.name): pod for pod in problem.pods}

    def expected() -> list[Key]:
        placed = (told.made if told else plan).placed
        return [key for key, pod in pods.items() if pod.uid in placed]

    outcome = cluster.carried_out(staged, expected, told.coming if told else None)
    plan = told.made if told else plan
    others = Counter(_pod_kind(pods[key]) for key in outcome.bindings if pods[key].uid not in plan.placed)
    left = {}
    for key, word in sorted(outcome.words.items()):
        if pods[key].uid in plan.placed:
            if others[_pod_kind(pods[key])]:
                others[_pod_kind(pods[key])] -= 1
            else:
                left[pods[key].uid] = word
    return {pods[key].uid: node for key, node in outcome.bindings.items()}, left


def _pod_kind(pod: PendingPod) -> tuple[str, str]:
    return pod.namespace, pod.shape


def as_made(problem: Problem, order: str) -> Problem:
    """The problem with the pods as the API server tells of them, if they are made in this order."""
    if order == "age":
        return problem
    pods = [replace(pod, created=0, arrival=pod.arrival if order == "file" else 0) for pod in problem.pods]
    return replace(problem, pods=tuple(pods))


def measure_scenario(
    cluster: Cluster, scenario: dict[str, Any], problem: Problem, asked: argparse.Namespace
) -> dict[str, Any]:
    """Plan one scenario and carry it out. With an `obstacle` if it cannot be put on the cluster."""
    plan = best_plan(problem, asked.effort)
    identity = {"name": scenario["name"], "family": scenario.get("family", ""), "pods": len(plan.placed)}
    reason = obstacle(scenario, problem) or ("" if plan.placed else "its plan has a place for no pod")
    if reason:
        return {**identity, "obstacle": reason}
    choices = {"planned_only": asked.planned_only, "services": asked.services, "nominate": asked.nominate}
    staged = stage(scenario, problem, plan, asked.order, **choices)
    foreseen = ModelForecast(problem, plan)
    runs = []
    for _ in range(asked.repeat):
        told = Told(scenario, problem, plan, asked.effort) if asked.nominate else None
        try:
            bindings, left = carried_out(cluster, staged, problem, plan, told)
        except Refused as error:
            return {**identity, "obstacle": str(error)}
        runs.append(
            {"left": left, "agreement": foreseen.agreement(bindings), "price": _price(told.made if told else plan)}
        )
    return {
        **identity,
        "claims": len(plan.claims),
        "price": _price(plan),
        "rated": plan.rated,
        "left_by_plan": sorted(plan.unbound) if plan.rated else None,
        "left_by_habit": [len(uids) for uids in foreseen.left],
        "runs": runs,
    }


def _price(plan: Plan) -> float:
    return round(math.fsum(claim.price for claim in plan.claims), 6)


def summary(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up the results of all scenarios."""
    with_runs = [result for result in results if "runs" in result]
    launching = [with_run for with_run in with_runs if with_run["claims"]]
    rated = [with_run for with_run in with_runs if with_run["rated"]]
    foreseen = Counter(
        f"model {_word(not rating['left_by_plan'])}, real {_word(_is_whole(rating))}" for rating in rated
    )
    pods = sum(with_run["pods"] * len(with_run["runs"]) for with_run in with_runs)
    return {
        "scenarios": len(with_runs),
        "whole": sum(map(_is_whole, with_runs)),
        "launching": len(launching),
        "launching_whole": sum(map(_is_whole, launching)),
        "price": round(math.fsum(launch["price"] for launch in launching), 4),
        "price_carried_out": round(math.fsum(run["price"] for launch in launching for run in launch["runs"]), 4),
        "rated": len(rated),
        "whole_by_model": sum(not rating["left_by_plan"] for rating in rated),
        "foreseen": dict(sorted(foreseen.items())),
        "habits": [
            {
                "right": sum(_is_whole(with_run) == (not with_run["left_by_habit"][variant]) for with_run in with_runs),
                "seats": round(
                    sum(r["agreement"][variant] for with_run in with_runs for r in with_run["runs"]) / max(1, pods), 4
                ),
            }
            for variant in range(len(SCHEDULER_VARIANTS))
        ],
        "not_whole": {
            with_run["name"]: {"left": [run["left"] for run in with_run["runs"]], "model": with_run["left_by_plan"]}
            for with_run in with_runs
            if not _is_whole(with_run)
        },
        "obstacles": {result["name"]: result["obstacle"] for result in results if "obstacle" in result},
    }


def _is_whole(result: Mapping[str, Any]) -> bool:
    return not any(run["left"] for run in result["runs"])


def _word(whole: bool) -> str:
    return "whole" if whole else "not whole"


def scenarios_asked_for(asked: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Return the scenarios of the file, or those made of them by random changes."""
    scenarios = list(read_scenarios(asked.scenarios))
    if asked.mutated is None:
        return scenarios
    return (mutated(scenarios, seed) for seed in range(asked.first, asked.first + asked.mutated))


def scenarios_named(names: Sequence[str], scenarios: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Pick the scenarios of these names or families; all if there are none."""
    for scenario in scenarios:
        if not names or scenario.get("name") in names or scenario.get("family") in names:
            yield scenario


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
    parser.add_argument("--nominate", action="store_true", help="pods are told their planned nodes")
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
    missing = [path for path in (asked.scenarios, asked.catalogues) if not path.is_file()]
    if missing:
        parser.error(f"there is no {missing[0]}")
    catalogues = read_catalogues(asked.catalogues)
    scenarios = list(scenarios_named(asked.names, scenarios_asked_for(asked)))
    if not scenarios:
        parser.error(f"no scenario is named {' or '.join(asked.names)}")
    settings = Settings(nominations=asked.nominate)
    results = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kerf-binding-") as folder:
        plane = plane_in(binaries, Path(folder) / "plane")
        try:
            plane.start_scheduling()
            with closing(Cluster(plane, asked.still)) as cluster:
                for number, scenario in enumerate(scenarios, start=1):
                    problem = as_made(problem_of(scenario, catalogues, settings), asked.order)
                    result = measure_scenario(cluster, scenario, problem, asked)
                    results.append(result)
                    print(f"{number}/{len(scenarios)} {_progress_line(result)}", file=sys.stderr, flush=True)
        finally:
            plane.stop()
    figures = {
        "effort": asked.effort,
        "order": asked.order,
        "nominated": asked.nominate,
        "repeat": asked.repeat,
        **summary(results),
    }
    figures["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps({**figures, "each": results} if asked.each else figures, indent=2))
    return 0


def _progress_line(result: Mapping[str, Any]) -> str:
    if "obstacle" in result:
        return f"{result['name']}: {result['obstacle']}"
    left = [len(run["left"]) for run in result["runs"]]
    return f"{result['name']}: {result['pods']} pods, left over {left}, by habit {result['left_by_habit']}"


if __name__ == "__main__":
    raise SystemExit(main())
