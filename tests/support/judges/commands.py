"""A judge of `kerf disrupt`: what it says of a scenario against the rules, from the JSON of both, sharing no code with
what decides. Where pods go is judged as a plan is, by kube-scheduler's rules (`judge.faults`)."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.plan_scenarios import problem_of
from tests.support.judges.candidates import CAPACITY_TYPE, TYPE, ZONE, Document, Rules
from tests.support.judges.labels import of_offer
from tests.support.judges.plans import faults

METHODS = ("emptiness", "multiNode", "singleNode")
LAUNCH_ORDER = ("reserved", "spot", "on-demand")
LABELS = (ZONE, CAPACITY_TYPE, "topology.k8s.aws/zone-id", "karpenter.k8s.aws/capacity-reservation-id")
TOLERANCE = 1e-9
SPOT_OPTIONS = 15


class Court:
    """One scenario, and what was answered."""

    def __init__(self, scenario: Document, result: Document, catalogues: Catalogues) -> None:
        self.scenario, self.result, self.catalogues = scenario, result, catalogues
        problem = problem_of(scenario, catalogues)
        pools = {pool.pool.name: pool.pool for pool in problem.pools}
        given = {pool.pool.name: problem.catalogues[pool.catalogue] for pool in problem.pools}
        self.rules = Rules(scenario, pools, given)
        self.gate = bool(((scenario.get("options") or {}).get("featureGates") or {}).get("SpotToSpotConsolidation"))

    def faults(self) -> list[str]:
        found = []
        for name in METHODS:
            found += [f"{name}: {command}" for command in self._commands(self._launchable(name))]
        return [*found, *(f"kerf: {fault}" for fault in self._own())]

    def _launchable(self, method: str) -> list[Document]:
        """A method's command, unless the reference asks for spot that there is none of: a launch that can only fail, at
        a price of nothing (D-100)."""
        made: list[Document] = self.result[method]["commands"]
        return [
            command for command in made if all(new["launchCapacityTypes"] for new in command.get("replacements", []))
        ]

    # ── what every set of commands must keep ───────────────────────────────────────────────────────────────────────

    def _commands(self, commands: Sequence[Document]) -> Iterator[str]:
        """Commands that all run at once."""
        for command in commands:
            yield from self._candidates(command)
            yield from self._prices(command)
        yield from self._room(commands)
        yield from self._fits_together(commands)
        yield from self._places(commands)

    def _candidates(self, command: Document) -> Iterator[str]:
        for name in command["candidates"]:
            if name not in self.rules.nodes:
                yield f"takes {name}, which there is not"
                continue
            why = self.rules.refused(name, command["reason"])
            if why:
                yield f"takes {name} ({command['reason']}), which {why} excludes"
        if command["reason"] == "Underutilized":
            pools = list(self.rules.worth_it(command["candidates"], command["estimatedSavings"]))
            if pools:
                yield f"{command['candidates']} is not worth it for {pools}"

    def _room(self, commands: Sequence[Document]) -> Iterator[str]:
        """D-51: in some order every command found room in the budgets, which all reasons share (D-50). Empty nodes that
        are not ready use up their part already."""
        taken: dict[str, Counter[str]] = {}
        empty = [name for command in commands if command["reason"] == "Empty" for name in command["candidates"]]
        for command in commands:
            for name in command["candidates"]:
                taken.setdefault(self.rules.nodes[name].pool, Counter())[command["reason"]] += 1
        for pool, counts in sorted(taken.items()):
            gone = 0
            for room, reason in sorted((self.rules.room(pool, count, empty), count) for count in counts):
                gone += counts[reason]
                if gone > room:
                    yield f"{gone} nodes of {pool} go, {room} may ({reason})"

    def _fits_together(self, commands: Sequence[Document]) -> Iterator[str]:
        removed = Counter(name for command in commands for name in command["candidates"])
        targets = [(place["name"], command) for command in commands for place in command.get("podsToExistingNodes", [])]
        for name, times in removed.items():
            if times > 1:
                yield f"{name} goes {times} times"
        for name in sorted({name for name, _ in targets}):
            if name in removed:
                yield f"{name} goes and takes pods"
            elif name in self.rules.nodes and self.rules.nodes[name].marked:
                yield f"{name} is going and takes pods"
        for name, target in targets:
            own = {pod.name for node in target["candidates"] for pod in self.rules.nodes[node].pods}
            moved = [
                pod
                for place in target["podsToExistingNodes"]
                if place["name"] == name
                for pod in place["pods"]
                if pod in own
            ]
            if not moved or name not in self.rules.nodes:
                continue
            if self.rules.settling(name):
                yield f"{name} is under consolidateAfter and takes {moved[0]} (D-93)"
            if not self.rules.nodes[name].initialized:
                yield f"{name} is not initialized and takes {moved[0]} (D-95)"

    # ── prices ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _prices(self, command: Document) -> Iterator[str]:
        total = math.fsum(map(self.rules.price, command["candidates"]))
        news = command.get("replacements", [])
        cost = math.fsum(new["cheapestPrice"] for new in news)
        if abs(command["estimatedSavings"] - (total - cost)) > TOLERANCE:
            yield f"{command['candidates']} saves {command['estimatedSavings']}, not {total - cost}"
        if len(news) > 1:
            yield f"{command['candidates']}: {len(news)} replacements"
        for new in news:
            yield from (f"{command['candidates']}: {fault}" for fault in self._replacement(new, command, total))

    def _replacement(self, new: Document, command: Document, total: float) -> Iterator[str]:
        names = new["instanceTypes"]
        types = {instance_type.name: instance_type for instance_type in self.rules.catalogues[new["nodePool"]].types}
        cheapest = min((offer.price for offer in offers(types[names[0]], new)), default=0.0)
        if abs(cheapest - new["cheapestPrice"]) > TOLERANCE or new["cheapestInstanceType"] != names[0]:
            yield f"{names[0]} costs {cheapest}, not {new['cheapestPrice']}"
        for name in names:
            if _launch_price(offers(types[name], new)) >= total:
                yield f"{name} is not cheaper (D-98)"
        candidates = [self.rules.nodes[name] for name in command["candidates"]]
        if len(candidates) > 1:
            yield from self._same_type(new, command, types)
        kinds = new["requirements"].get(CAPACITY_TYPE, {"operator": "Exists"})
        if all(candidate.labels.get(CAPACITY_TYPE) == "spot" for candidate in candidates) and _admits(kinds, "spot"):
            if not self.gate:
                yield "spot is replaced by spot, and the gate is off (D-102)"
            elif len(candidates) == 1 and len(names) < SPOT_OPTIONS:
                yield f"one spot node is replaced with {len(names)} options (D-102)"
        for key, requirement in new["requirements"].items():
            least = requirement.get("minValues")
            values = {value for name in names for value in _values(types[name], key)}
            if least and len(values) < least:
                yield f"minValues of {key}: {len(values)} of {least} (D-104)"

    def _same_type(self, new: Document, command: Document, types: Mapping[str, InstanceType]) -> Iterator[str]:
        """What breaks the rule that a replacement of a type that goes must be cheaper than it (D-74)."""
        here: dict[str, float] = {}
        for name in command["candidates"]:
            node = self.rules.nodes[name]
            own = types.get(node.labels.get(TYPE, ""))
            if own is not None:
                here[own.name] = min(self.rules.price(name), here.get(own.name, math.inf))
        limit = min((here[name] for name in new["instanceTypes"] if name in here), default=math.inf)
        for name in new["instanceTypes"]:
            if _launch_price(offers(types[name], new)) >= limit:
                yield f"{name} is no cheaper than what goes (D-74)"

    # ── places ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _places(self, commands: Sequence[Document]) -> Iterator[str]:
        """Every pod that has to move has a place, and kube-scheduler can bind it there."""
        if not commands:
            return
        problem = problem_of(self.without(commands), self.catalogues)
        uids = {pod.name: pod.uid for pod in problem.pods}
        placed: Counter[str] = Counter()
        claims, there = [], []
        for command in commands:
            for new in command.get("replacements", []):
                placed.update(uids[name] for name in new["pods"])
                claims.append(_claim(new, tuple(uids[name] for name in new["pods"])))
            for place in command.get("podsToExistingNodes", []):
                known = tuple(uids[name] for name in place["pods"] if name in uids)
                placed.update(known)
                there.append(Placement(place["name"], "", known))
        yield from (f"{uid} has {times} places" for uid, times in placed.items() if times > 1)
        homeless = sorted(pod.name for pod in self._to_move(commands) if uids[pod.name] not in placed)
        if homeless:
            yield f"nowhere to go: {homeless}"
        over = tuple(pod.uid for pod in problem.pods if pod.uid not in placed)
        made = Plan(tuple(claims), _merged(there), (Unplaced(over, ()),) if over else ())
        for fault in faults(problem, made):
            if not (over and "cannot be bound" in fault):  # those that wait may be what its affinity asks for
                yield fault

    def _to_move(self, commands: Iterable[Document]) -> list[Any]:
        """The pods that need another place; those of an empty node cost nothing (D-35)."""
        names = [name for command in commands if command["reason"] != "Empty" for name in command["candidates"]]
        return [pod for name in names for pod in self.rules.nodes[name].pods if self.rules.moves(pod)]

    def without(self, commands: Sequence[Document]) -> Document:
        """The scenario without the nodes that go, and their pods waiting for a place."""
        gone = {name for command in commands for name in command["candidates"]}
        moving = {pod.name for name in gone for pod in self.rules.nodes[name].pods if self.rules.moves(pod)}
        made = copy.deepcopy(self.scenario)
        stays = []
        views = list(self.rules.nodes)
        for name, entry in zip(views, made["nodes"], strict=True):
            if name in gone:
                made.setdefault("pods", []).extend(
                    waiting(pod) for pod in entry.get("pods") or [] if pod["metadata"]["name"] in moving
                )
            else:
                stays.append(entry)
        made["nodes"] = stays
        return made

    def price(self) -> float:
        """Of the nodes that are not on their way out, USD per hour."""
        return math.fsum(self.rules.price(name) for name, node in self.rules.nodes.items() if not node.marked)

    # ── kerf's own moves ───────────────────────────────────────────────────────────────────────────────────────────

    def _own(self) -> Iterator[str]:
        own, rules = self.result["kerf"], self.rules
        commands = own["commands"]
        yield from self._commands(commands)
        gone = {name for command in commands for name in command["candidates"]}
        staying = [name for name, node in rules.nodes.items() if name not in gone and not node.marked]
        news = [new["cheapestPrice"] for command in commands for new in command.get("replacements", [])]
        end = math.fsum([*map(rules.price, staying), *news])
        if abs(end - own["endPrice"]) > TOLERANCE:
            yield f"endPrice is {own['endPrice']}, and should be {end}"
        start = self.price()
        best = max((command["estimatedSavings"] for name in METHODS for command in self._launchable(name)), default=0.0)
        if end > start - best + TOLERANCE:
            yield f"ends at {end}; a single method at {start - best}"
        moved = sum(pod.reschedulable for name in gone for pod in rules.nodes[name].pods)
        if own["evictions"] != moved:
            yield f"evictions are {own['evictions']}, and should be {moved}"
        yield from self._kept(own["kept"], gone, commands)

    def _kept(self, kept: Mapping[str, Document], gone: set[str], commands: Sequence[Document]) -> Iterator[str]:
        """Every node that stays has a reason, and those that can be looked up are true."""
        yield from (f"{name} neither goes nor stays" for name in sorted(self.rules.nodes.keys() - kept.keys() - gone))
        yield from (f"{name} goes and stays" for name in sorted(kept.keys() & gone))
        targets = {place["name"] for command in commands for place in command.get("podsToExistingNodes", [])}
        for name in sorted(kept.keys() & self.rules.nodes.keys() - gone):
            code = kept[name]["code"]
            true = {self.rules.refused(name, "Empty"), self.rules.refused(name, "Underutilized")}
            true = {"pod-budget-exhausted", "several-pod-budgets"} if true == {"pod-budgets"} else true
            if code == "takes-pods" and name not in targets:
                yield f"{name} stays: takes-pods, and takes none"
            elif code == "budget" and "" in true and not self._spent(name, gone):
                yield f"{name} stays: budget, and there is room"
            elif code in CHECKED and code not in true:
                yield f"{name} stays: {code}, and it is {sorted(true)}"
            elif "" not in true and code not in true:
                yield f"{name} stays: {code}, and {sorted(true)} excludes it"

    def _spent(self, name: str, gone: set[str]) -> bool:
        pool = self.rules.nodes[name].pool
        reason = "Underutilized" if self.rules.refused(name, "Empty") else "Empty"
        return sum(self.rules.nodes[node_name].pool == pool for node_name in gone) >= self.rules.room(pool, reason)


CHECKED = frozenset(
    ["not-managed", "no-node", "not-initialized", "going", "nominated", "do-not-disrupt", "no-nodepool-label",
     "no-nodepool", "no-instance-types", "pod-do-not-disrupt", "pod-budget-exhausted", "several-pod-budgets",
     "static-nodepool", "unknown-instance-type", "missing-label", "consolidate-after-never", "policy-when-empty",
     "not-consolidatable"]
)  # fmt: skip
"""Codes of `kept` that the rules alone answer."""


def waiting(pod: Document) -> Document:
    """A pod as it comes back when it was evicted: pending, without a node."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "metadata": metadata, "spec": spec, "status": {}}


def offers(given: InstanceType, new: Document) -> list[Offering]:
    """The available offerings of a type that a replacement's requirements admit."""
    wanted = {key: requirement for key, requirement in new["requirements"].items() if key in LABELS}
    return [
        offering
        for offering in given.offerings
        if offering.available
        and all(key not in of_offer(offering) or _admits(rule, of_offer(offering)[key]) for key, rule in wanted.items())
    ]


def _admits(rule: Document, value: str) -> bool:
    if rule["operator"] in ("In", "NotIn"):
        return bool((value in rule["values"]) == (rule["operator"] == "In"))
    return bool(rule["operator"] == "Exists")


def _launch_price(offers: Sequence[Offering]) -> float:
    """The dearest offering of the capacity type that a launch would take, infinite if none (D-99)."""
    for kind in LAUNCH_ORDER:
        prices = [offer.price for offer in offers if offer.capacity_type == kind]
        if prices:
            return max(prices)
    return math.inf


def _values(given: InstanceType, key: str) -> tuple[str, ...]:
    return (given.name,) if key == TYPE else given.requirements.get(key, ())


def _claim(new: Document, pods: tuple[str, ...]) -> OpenedClaim:
    specs = tuple(
        RequirementSpec(key, requirement["operator"], tuple(requirement.get("values") or ()))
        for key, requirement in new["requirements"].items()
    )
    labels = {spec.key: spec.values[0] for spec in specs if spec.operator == "In" and len(spec.values) == 1}
    reserved = new["requirements"].get("karpenter.k8s.aws/capacity-reservation-id", {}).get("values") or ()
    return OpenedClaim(
        new["nodePool"],
        pods,
        tuple(new["instanceTypes"]),
        specs,
        {},
        new["cheapestPrice"],
        tuple(new["launchCapacityTypes"]),
        labels,
        reservations=tuple(reserved),
    )


def _merged(there: Iterable[Placement]) -> tuple[Placement, ...]:
    found: dict[str, tuple[str, ...]] = {}
    for placement in there:
        found[placement.node] = (*found.get(placement.node, ()), *placement.pods)
    return tuple(Placement(name, "", pods) for name, pods in sorted(found.items()))
