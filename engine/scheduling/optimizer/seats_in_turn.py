"""Which of equal pods is told which of their planned nodes.

kube-scheduler tries pods in the order in which they came. A pod whose own node may not take it yet, since its spread
wants others to be bound first, takes room elsewhere, which is then missing. So of equal pods those that come first are
told the nodes that may take one first: one in each domain, then a second one in each, and so on. For the same reason
the plan's places go to those of equal pods that come first, if it has no place for some of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import single_values
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.pods.pod_requirements import hard_spreads
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, ShapeKey, by_name

Domains = tuple[str, ...]
"""The domain of a node for each key; "" for the hostname, and where it is not known."""
Alike = tuple[Domains, int]
"""Seats that differ in their host alone: their domains, and how many seats come before on the host."""


def seats_in_turn(problem: Problem, plan: Plan) -> dict[str, PendingPod]:
    """By the uid of each pod that has to change with an equal one: the pod that takes its place on a new node, or waits
    in its stead."""
    claim_of = {uid: number for number, claim in enumerate(plan.claims) for uid in claim.pods}
    waiting = frozenset(uid for group in plan.unplaced for uid in group.pods)
    labels, existing = {node.name: node.labels for node in problem.nodes}, _existing_nodes(problem, plan)
    taken_by: dict[str, PendingPod] = {}
    for shape_key, of_kind in problem.pods_of_kind.items():
        keys = _spread_keys(problem.shapes[shape_key[1]])
        for pods in _equal_pods(problem, of_kind) if keys or any(pod.uid in waiting for pod in of_kind) else ():
            placed = sorted((pod for pod in pods if pod.uid in claim_of), key=lambda pod: (claim_of[pod.uid], pod.uid))
            left = [pod for pod in pods if pod.uid in waiting]
            if placed and (left or (keys and len(placed) > 1)):
                nodes = [labels.get(node, {}) for node in existing[shape_key]]
                before = Counter((number, node.get(key, "")) for node in nodes for number, key in enumerate(keys))
                seats = _in_turn(_alike(placed, claim_of, plan, keys), before) if keys else placed
                queue = sorted((*placed, *left), key=lambda pod: SCHEDULER_VARIANTS[0].queue_key(pod, 0))
                taken_by |= {seat.uid: pod for seat, pod in zip([*seats, *left], queue, strict=True) if seat is not pod}
    return taken_by


def seated(problem: Problem, plan: Plan, taken_by: Mapping[str, PendingPod]) -> Plan:
    """The plan with other pods in the places of these."""
    if not taken_by:
        return plan
    pod_in = {**problem.pod_of, **taken_by}

    def changed(uids: Iterable[str]) -> tuple[str, ...]:
        return tuple(pod.uid for pod in sorted(map(pod_in.__getitem__, uids), key=by_name))

    unplaced = [replace(group, pods=changed(group.pods)) for group in plan.unplaced]
    return replace(
        plan,
        claims=tuple(replace(claim, pods=changed(claim.pods)) for claim in plan.claims),
        unplaced=tuple(sorted(unplaced, key=lambda group: by_name(problem.pod_of[group.pods[0]]))),
        unbound=tuple(sorted(pod_in[uid].uid for uid in plan.unbound)),
    )


def _equal_pods(problem: Problem, of_kind: Iterable[PendingPod]) -> Iterable[list[PendingPod]]:
    """The pods of one shape that may change with one another, in groups of equal ones."""
    groups: dict[PendingPod, list[PendingPod]] = defaultdict(list)
    for pod in of_kind:
        if _may_change(problem.shapes[pod.shape], pod):
            groups[replace(pod, uid="", name="", created=0, arrival=0, ahead=0)].append(pod)
    return groups.values()


def _may_change(shape: PodShape, pod: PendingPod) -> bool:
    """Whether equal pods may change with one another. Pods with volumes of their own are not equal."""
    return not (shape.volumes or pod.device_claims or pod.virtual)


def _spread_keys(shape: PodShape) -> tuple[str, ...]:
    return tuple(dict.fromkeys(normalise(spread.topology_key) for spread in hard_spreads(shape)))


def _existing_nodes(problem: Problem, plan: Plan) -> dict[ShapeKey, list[str]]:
    """The existing nodes that pods of each kind are on, or will be first."""
    on: dict[ShapeKey, list[str]] = defaultdict(list)
    for bound in problem.bound:
        on[bound.shape_key].append(bound.node)
    for placement in plan.placements:
        for uid in placement.pods:
            on[problem.pod_of[uid].shape_key].append(placement.node)
    return on


def _domains_of_claim(claim: OpenedClaim, keys: Iterable[str]) -> Domains:
    chosen = single_values(claim.requirements)
    return tuple("" if key == HOSTNAME else chosen.get(key, "") for key in keys)


def _in_turn(queues: dict[Alike, deque[PendingPod]], before: Counter[tuple[int, str]]) -> list[PendingPod]:
    """The seats in the order in which they may be taken: next comes the one whose domains have the fewest pods more
    than the emptiest one of the same key."""
    taken, known = Counter(before), _domains_of_keys(queues, before)
    in_order: list[PendingPod] = []
    while queues:
        least = {key: min(taken[key, domain] for domain in found) for key, found in known.items()}
        emptiest = min(on_host for _, on_host in queues)
        ahead = {
            (elsewhere, on_host): sorted(
                [on_host - emptiest, *(taken[key, elsewhere[key]] - least[key] for key in known if elsewhere[key])],
                reverse=True,
            )
            for elsewhere, on_host in queues
        }
        chosen = min(queues, key=ahead.__getitem__)
        in_order.append(queues[chosen].popleft())
        taken.update(enumerate(chosen[0]))
        if not queues[chosen]:
            del queues[chosen]
    return in_order


def _alike(
    seats: Iterable[PendingPod], claim_of: Mapping[str, int], plan: Plan, keys: Collection[str]
) -> dict[Alike, deque[PendingPod]]:
    """The seats that may change with one another. `claim_of`: the claims (by number) of the pods (by uid)."""
    on_host = Counter[int]()
    queues: dict[Alike, deque[PendingPod]] = defaultdict(deque)
    for seat in seats:
        number = claim_of[seat.uid]
        queues[_domains_of_claim(plan.claims[number], keys), on_host[number] if HOSTNAME in keys else 0].append(seat)
        on_host[number] += 1
    return queues


def _domains_of_keys(queues: Iterable[Alike], before: Iterable[tuple[int, str]]) -> dict[int, dict[str, None]]:
    """The domains of each key but the hostname, with those that only existing nodes are in."""
    known: dict[int, dict[str, None]] = defaultdict(dict)
    for elsewhere, _ in queues:
        for key, domain in enumerate(elsewhere):
            if domain:
                known[key][domain] = None
    for key, domain in before:
        if key in known:
            known[key][domain] = None
    return known
