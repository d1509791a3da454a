"""One seed, one scenario: a cluster, an hour in which everything goes wrong, hours in which nothing does, the end."""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.model.kubernetes.devices import ResourceSlice
from kerf.engine.model.settings import Settings
from tests.dst import beginning, refusals, wrong_clocks
from tests.dst.beginning import NAMESPACE, STATIC, Document
from tests.support.simulation.run import ZONES

MINUTE = 60_000
STORM = 60 * MINUTE
"""How long things go wrong."""
CALM = 5 * 60 * MINUTE
"""How long they do not, after that, with work to do."""
END = 60 * MINUTE
"""How long after that all work is taken away."""
REFUSING = 2 * 60 * MINUTE
"""How long into the calm zones refuse that do so for hours. What is in doubt then is so for an hour at most."""
TRAITS = 0.35
LITTLE_EFFORT = 10
"""Steps of each plan's search where nearly every node comes in vain."""
OPEN = "open budgets"
"""A trait: see `_open_budgets`."""


@dataclass
class Scenario:
    """`documents` are the manifests, `actions` those of a Timeline; `forgets`: each death of the process loses its
    record. `outages`: from when until when the store cannot be written (ms since the start). `traits` says what is in
    it."""

    seed: int
    documents: list[Document]
    actions: list[Document] = field(default_factory=list)
    faults: FaultPlan = field(default_factory=FaultPlan)
    settings: Settings = field(default_factory=Settings)
    forgets: bool = False
    reservations: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    slices: dict[str, tuple[ResourceSlice, ...]] = field(default_factory=dict)
    outages: tuple[tuple[int, int], ...] = ()
    ahead: int = 0
    """By how much (ms) an older kerf, which believed its clock, has put the record ahead when a process dies."""
    traits: Counter[str] = field(default_factory=Counter)

    @property
    def timeline(self) -> Document:
        metadata = {"name": f"seed-{self.seed}"}
        return {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": metadata,
                "spec": {"actions": self.actions}}  # fmt: skip


def scenario(seed: int, *, forgets: bool | None = None) -> Scenario:
    """The scenario of a seed. `forgets` is drawn unless it is given."""
    dice = random.Random(seed)
    pools = [f"p{i}" for i in range(dice.randint(1, 3))]
    manifests = [beginning.node_class(), copy.deepcopy(beginning.STORAGE_CLASS)]
    manifests += [beginning.node_pool(name, dice) for name in pools]
    static = dice.random() < TRAITS
    if static:
        manifests.append(beginning.node_pool(STATIC, dice, replicas=dice.randint(1, 4)))
    names = [f"w{i}" for i in range(dice.randint(1, 5))]
    manifests += [beginning.workload(name, pools, dice) for name in names]
    manifests += [beginning.disruption_budget(name, dice) for name in names if dice.random() < TRAITS]
    if dice.random() < TRAITS:
        manifests.append(beginning.daemon_set(dice))
    if dice.random() < 0.15:
        manifests.append(beginning.giant())
    if dice.random() < TRAITS:
        manifests += copy.deepcopy(dice.sample(beginning.BAD, 2))
    overlays, buffers = dice.random() < TRAITS, dice.random() < TRAITS
    if dice.random() < TRAITS + overlays:
        manifests.append(beginning.overlay(dice))
    if dice.random() < TRAITS * buffers:
        manifests += beginning.buffer(dice)
    repair = dice.random() < 0.5
    forgets = dice.random() < 0.2 if forgets is None else forgets
    drawn = Scenario(
        seed,
        manifests,
        faults=_faults(dice, repair=repair, rivals=not forgets),
        settings=Settings(
            node_repair=repair,
            static_capacity=static,
            spot_to_spot=dice.random() < 0.5,
            node_overlays=overlays,
            capacity_buffers=buffers,
        ),
        forgets=forgets,
    )
    dice.shuffle(manifests)
    begins = [dice.randrange(MINUTE, STORM) for _ in range(dice.choice([0, 0, 1, 3]))]
    drawn.outages = tuple((begin, begin + dice.choice([2_000, 30_000, 4 * MINUTE])) for begin in begins)
    if dice.random() < TRAITS:
        kinds = [(dice.choice(beginning.TYPES), dice.choice(ZONES), dice.randint(1, 3)) for _ in range(2)]
        drawn.reservations = {f"cr-{number}": kind for number, kind in enumerate(kinds)}
    _add_devices(drawn)
    _ask_in_vain(drawn)
    _taint_nodes(drawn)
    _tell_nodes(drawn)
    _open_budgets(drawn)
    _Storm(drawn, dice).draw()
    _refuse_for_hours(drawn)
    _wrong_clocks(drawn)
    return drawn


def _refuse_for_hours(drawn: Scenario) -> None:
    restored = [_second(action) for action in drawn.actions if action["action"] == "restore-capacity"]
    found = refusals.draw(drawn.seed, restored, STORM // 1000, (STORM + REFUSING) // 1000, (STORM + CALM) // 1000)
    drawn.traits["zones that refuse for hours"] += bool(found.actions)
    drawn.documents += found.documents
    drawn.actions += found.actions
    drawn.actions.sort(key=_second)  # stable: what is given back is refused again in the same second


def _second(action: Document) -> int:
    return int(str(action["at"])[:-1])


def _wrong_clocks(drawn: Scenario) -> None:
    clocks = wrong_clocks.draw(drawn.seed, STORM // 1000)
    drawn.traits += clocks.traits
    drawn.actions += clocks.actions
    drawn.actions.sort(key=_second)
    drawn.faults = replace(drawn.faults, host_clocks=clocks.host_clocks)
    drawn.ahead = 0 if drawn.forgets else clocks.ahead


def _tell_nodes(drawn: Scenario) -> None:
    """In every second scenario pods are told their nodes (KEP-5278), as kerf run does by default."""
    if random.Random(f"nominations {drawn.seed}").random() < 0.5:
        drawn.settings = replace(drawn.settings, nominations=True)
        drawn.traits["pods are told their nodes"] += 1


def _add_devices(drawn: Scenario) -> None:
    """A workload whose pods ask for devices, in some of the scenarios; the others are what they were without."""
    dice = random.Random(f"devices {drawn.seed}")
    if dice.random() < TRAITS:
        drawn.documents += beginning.devices(dice)
        drawn.slices = beginning.slices()
        drawn.settings = replace(drawn.settings, ignore_dra_requests=False)


def _ask_in_vain(drawn: Scenario) -> None:
    """In some of the scenarios a NodePool or its pods ask for what no launch gives; the others are what they were."""
    dice = random.Random(f"labels {drawn.seed}")
    if dice.random() < TRAITS:
        drawn.traits["labels that no launch gives"] += 1
        drawn.documents += beginning.odd(dice)


def _taint_nodes(drawn: Scenario) -> None:
    """In some of the scenarios somebody else taints some or all new nodes during the storm."""
    dice = random.Random(f"taints {drawn.seed}")
    if dice.random() < TRAITS:
        drawn.traits["nodes that somebody else taints"] += 1
        drawn.faults = replace(drawn.faults, tainted=dice.choice([0.2, 1.0]))
        if drawn.faults.tainted == 1:  # thousands of plans follow, and what is bound of them is not why they are made
            drawn.settings = replace(drawn.settings, effort=LITTLE_EFFORT)


def _open_budgets(drawn: Scenario) -> None:
    """In some of the scenarios all nodes may go at once, until a budget is edited and again in the calm, and there is
    much to move: large pods among many small ones. The others are what they were."""
    dice = random.Random(f"budgets {drawn.seed}")
    if dice.random() >= TRAITS:
        return
    drawn.traits[OPEN] += 1
    drawn.documents += [beginning.crowd(f"crowd-{number}", dice) for number in range(dice.randint(1, 3))]
    for pool in _named("NodePool", drawn.documents).values():
        if "disruption" in pool["spec"]:
            pool["spec"]["disruption"] |= {"budgets": beginning.open_budgets()}
            if "replicas" not in pool["spec"] and dice.random() < 0.7:
                pool["spec"]["disruption"] |= {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
                pool["spec"]["disruption"] |= {"consolidateAfter": dice.choice(["0s", "30s", "5m"])}


def _faults(dice: random.Random, *, repair: bool, rivals: bool) -> FaultPlan:
    """Each kind of fault is in about every third plan. A node that never becomes ready is ended by nothing but
    repair; a rival has the same record, or nothing tells who is in office."""

    def maybe(chance: float) -> float:
        return dice.choice([0.0, 0.0, chance])

    points = list(KillPoint)
    kills = tuple(Kill(i, dice.choice(points)) for i in sorted(dice.sample(range(1, 120), dice.randint(0, 4))))
    usurped = tuple(dice.randrange(MINUTE, STORM) for _ in range(dice.choice([0, 0, 1, 2]) if rivals else 0))
    return FaultPlan(
        watch_late=maybe(0.1), watch_twice=maybe(0.1), watch_gap=maybe(0.03), no_capacity=maybe(0.2),
        launch_error=maybe(0.2), throttled=maybe(0.1), answer_lost=maybe(0.3), never_join=maybe(0.1),
        slow_join=maybe(0.2), never_ready=maybe(0.1) if repair else 0.0, message_twice=maybe(0.3),
        message_late=maybe(0.3), write_refused=maybe(0.1), write_lost=maybe(0.1), kills=kills,
        restart=dice.choice([3_000, 15_000, 60_000]), rivals=usurped, until=STORM,
    )  # fmt: skip


def _named(kind: str, documents: list[Document]) -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in documents if document.get("kind") == kind}


class _Storm:
    """Draws the actions of a scenario."""

    def __init__(self, drawn: Scenario, dice: random.Random) -> None:
        self._scenario, self._dice = drawn, dice
        good = [copy.deepcopy(document) for document in drawn.documents if document not in beginning.BAD]
        self._pools = _named("NodePool", good)
        self._workloads = _named("Deployment", good) | _named("StatefulSet", good)
        self._workloads.pop("giant", None)
        self._budgets = _named("PodDisruptionBudget", good)
        self._buffers = _named("CapacityBuffer", good)

    def draw(self) -> None:
        dice = self._dice
        step = dice.choice([60, 120, 240])  # seconds
        kinds = [kind for kind, weight in self._kinds().items() for _ in range(weight)]
        last = STORM // 1000 - 1  # what an action does ten minutes later comes before the calm
        for second in range(30, STORM // 1000, step):
            act = getattr(self, "_" + dice.choice(kinds).replace("-", "_"))
            act(min(second + dice.randrange(step), last))
        if self._scenario.settings.node_repair:  # early enough for what is tolerated for half an hour
            self._add(dice.randint(240, 1200), "node-notready", zone=dice.choice(ZONES))
            for _ in range(dice.choice([0, 1, 2])):
                self._illness(dice.randint(240, 1200))
        self._calm(STORM // 1000)
        self._end((STORM + CALM) // 1000)
        self._scenario.actions.sort(key=_second)

    def _kinds(self) -> dict[str, int]:
        found = {
            "scale": 8, "wave": 2, "interrupt": 2, "notice": 1, "vanish": 1, "reclaim": 1, "capacity": 2,
            "restore-capacity": 1, "price": 1, "silence": 1, "cordon": 1, "delete-claim": 1, "delete-node": 1,
            "delete-pod": 1, "edit-template": 2,
            "edit-budgets": 1, "class-unready": 1, "throttle": 1, "lose-answer": 1, "bad-message": 1, "rollout": 1,
            "bad-manifest": 1, "delete-pool": 1, "illness": 2,
        }  # fmt: skip
        if self._budgets:
            found["budget-gone"] = 1
        if STATIC in self._pools:
            found["resize"] = 2
        if self._scenario.reservations:
            found["end-reservation"] = 1
        return found

    def _add(self, second: int, action: str, **fields: Any) -> None:
        self._scenario.actions.append({"at": f"{second}s", "action": action, **fields})

    def _apply(self, second: int, document: Document) -> None:
        self._add(second, "apply", object=copy.deepcopy(document))

    def _count(self, trait: str) -> None:
        self._scenario.traits[trait] += 1

    # ── workloads ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _scale_to(self, second: int, name: str, replicas: int) -> None:
        kind = self._workloads[name]["kind"]
        self._add(second, "scale", namespace=NAMESPACE, name=name, kind=kind, replicas=replicas)

    def _scale(self, second: int) -> None:
        self._scale_to(second, self._dice.choice(sorted(self._workloads)), self._dice.randint(0, 10))

    def _wave(self, second: int) -> None:
        """All workloads together, up or down."""
        self._count("wave")
        up = self._dice.random() < 0.5
        for name in sorted(self._workloads):
            self._scale_to(second, name, self._dice.randint(5, 12) if up else self._dice.randint(0, 2))

    def _rollout(self, second: int) -> None:
        self._count("rollout")
        document = copy.deepcopy(self._workloads[self._dice.choice(sorted(self._workloads))])
        requests = document["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = f"{self._dice.choice([150, 450, 700])}m"
        self._apply(second, document)

    def _budget_gone(self, second: int) -> None:
        """A PodDisruptionBudget is deleted, and comes back."""
        self._count("pdb deleted")
        name = self._dice.choice(sorted(self._budgets))
        self._add(second, "delete", kind="PodDisruptionBudget", namespace=NAMESPACE, name=name)
        self._apply(second + 300, self._budgets[name])

    # ── instances ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _interrupt(self, second: int) -> None:
        self._add(second, "interrupt", capacityType="spot", count=self._dice.randint(1, 2))

    def _notice(self, second: int) -> None:
        self._add(second, self._dice.choice(["rebalance", "maintenance"]))

    def _vanish(self, second: int) -> None:
        self._add(second, "vanish", zone=self._dice.choice(ZONES))

    def _reclaim(self, second: int) -> None:
        self._add(second, "reclaim", zone=self._dice.choice(ZONES))

    def _silence(self, second: int) -> None:
        length = self._dice.choice(["20s", "2m", "10m", ""])
        self._add(second, "node-notready", zone=self._dice.choice(ZONES), **({"for": length} if length else {}))

    def _illness(self, second: int) -> None:
        """An agent finds something wrong with a node, or with so many that it is rather the cluster (D-135)."""
        condition = self._dice.choice(["AcceleratedHardwareReady", "AcceleratedHardwareReady", "StorageReady"])
        length = self._dice.choice(["5m", "", ""])
        self._add(
            second,
            "node-condition",
            condition=condition,
            count=self._dice.choice([1, 1, 0]),
            **({"zone": self._dice.choice(ZONES)} if self._dice.random() < 0.5 else {}),
            **({"for": length} if length else {}),
        )

    def _end_reservation(self, second: int) -> None:
        self._add(second, "end-reservation", capacityType="reserved")

    def _cordon(self, second: int) -> None:
        self._add(second, "cordon", zone=self._dice.choice(ZONES))

    def _delete_claim(self, second: int) -> None:
        self._add(second, "delete", kind="NodeClaim", zone=self._dice.choice(ZONES))

    def _delete_node(self, second: int) -> None:
        """The n-th that has joined, if it is still there."""
        self._add(second, "delete", kind="Node", name=f"ip-10-0-0-{self._dice.randint(4, 20)}")

    def _delete_pod(self, second: int) -> None:
        """Of a StatefulSet: the names of other pods are not known beforehand."""
        name = f"{self._dice.choice(sorted(self._workloads))}-{self._dice.randint(0, 2)}"
        self._add(second, "delete", kind="Pod", namespace=NAMESPACE, name=name)

    # ── the cloud ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _capacity(self, second: int) -> None:
        kind = self._dice.choice([{"capacityType": "spot"}, {"instanceType": self._dice.choice(beginning.TYPES)}, {}])
        self._add(second, "capacity", zone=self._dice.choice(ZONES), **kind)

    def _restore_capacity(self, second: int) -> None:
        self._add(second, "restore-capacity")

    def _price(self, second: int) -> None:
        factor = self._dice.choice([0.5, 2.0])
        self._add(second, "price", instanceType=self._dice.choice(beginning.TYPES), factor=factor)

    def _class_unready(self, second: int) -> None:
        self._add(second, "nodeclass-ready", name="default", ready=False, reason="no subnets")
        self._add(second + self._dice.choice([30, 300]), "nodeclass-ready", name="default")

    def _throttle(self, second: int) -> None:
        self._add(second, "throttle", **{"for": self._dice.choice(["10s", "2m", "8m"])})

    def _lose_answer(self, second: int) -> None:
        self._add(second, "lose-answer")

    def _bad_message(self, second: int) -> None:
        self._add(second, "bad-message", body="{")

    # ── manifests ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _bad_manifest(self, second: int) -> None:
        self._apply(second, self._dice.choice(beginning.BAD))

    def _edit_template(self, second: int) -> None:
        """Its nodes drift."""
        self._count("template edited")
        pool = self._pools[self._dice.choice(sorted(self._pools))]
        pool["spec"]["template"]["metadata"]["labels"]["generation"] = f"g{second}"
        self._apply(second, pool)

    def _edit_budgets(self, second: int) -> None:
        self._count("budgets edited")
        pool = self._pools[self._dice.choice(sorted(self._pools))]
        pool["spec"]["disruption"]["budgets"] = beginning.budgets(self._dice)
        self._apply(second, pool)

    def _delete_pool(self, second: int) -> None:
        """A NodePool is deleted, and comes back."""
        name = self._dice.choice(sorted(self._pools))
        self._add(second, "delete", kind="NodePool", name=name)
        self._apply(second + self._dice.choice([60, 600]), self._pools[name])

    def _resize(self, second: int) -> None:
        self._count("static resized")
        pool = self._pools[STATIC]
        pool["spec"]["replicas"] = self._dice.randint(0, 5)
        self._apply(second, pool)

    # ── calm, and the end ──────────────────────────────────────────────────────────────────────────────────────────

    def _calm(self, second: int) -> None:
        """Capacity is back, no node expires any more, and each workload has its last size. (What the Timeline does a
        while after an action of the storm is over by then.)"""
        second += 600
        self._add(second, "restore-capacity")
        self._add(second, "nodeclass-ready", name="default")
        for pool in self._pools.values():
            pool["spec"]["template"]["spec"]["expireAfter"] = "Never"
            if self._scenario.traits[OPEN]:
                pool["spec"]["disruption"]["budgets"] = beginning.open_budgets()
            self._apply(second, pool)
        for name in sorted(self._workloads):
            self._scale_to(second, name, self._dice.randint(0, 8))

    def _end(self, second: int) -> None:
        for name in sorted(self._workloads):
            self._scale_to(second, name, 0)
        self._add(second, "delete", kind="Deployment", namespace=NAMESPACE, name="giant")
        for name in sorted(self._buffers):
            self._add(second, "delete", kind="CapacityBuffer", namespace=NAMESPACE, name=name)
        if STATIC in self._pools:
            pool = self._pools[STATIC]
            pool["spec"]["replicas"] = 0
            self._apply(second, pool)
