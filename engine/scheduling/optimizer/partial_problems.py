"""Small problems that are parts of a larger one, for the planner to plan alone.

So the planner itself decides what a group of pods needs and what a claim may become. `largest` in these functions
leaves out types that have more of a resource than given, so that limits stay as they were counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod, PoolInput, Problem


def problem_of_group(
    problem: Problem,
    pods: Sequence[PendingPod],
    pool: PoolInput,
    largest: Resources,
    shapes: Mapping[str, PodShape] | None = None,
) -> Problem:
    """What these pods need of one NodePool if nothing else exists. `shapes`: theirs, if not those of the problem."""
    larger = _types_larger_than(pool.catalogue, problem.catalogues[pool.catalogue], largest)
    return Problem(
        pods=tuple(pods),
        shapes=problem.shapes if shapes is None else shapes,
        pools=(pool,),
        catalogues=problem.catalogues,
        daemons=problem.daemons,
        unavailable=problem.unavailable | larger,
        settings=problem.settings,
    )


def problem_of_claim(
    problem: Problem, claim: OpenedClaim, pods: Sequence[PendingPod], pool: PoolInput, largest: Resources
) -> Problem:
    """What a planned claim may become: its pods, with its constraints in the place of all that they ask for."""
    specs = tuple(spec for constraint in claim.constraints for spec in constraint.specs())
    narrowed = replace(pool, pool=replace(pool.pool, requirements=specs))
    return _with_other_shapes(problem, pods, _resources_only, narrowed, largest)


def problem_on_node(
    problem: Problem,
    labels: Mapping[str, str],
    pods: Sequence[PendingPod],
    pool: PoolInput,
    largest: Resources,
    *,
    preferences: bool = False,
) -> Problem:
    """Which claim of this NodePool, with these labels, holds these pods, whatever they demand of other pods."""

    def changed(shape: PodShape) -> PodShape:
        return _without_pod_rules(shape, labels, preferences)

    return replace(_with_other_shapes(problem, pods, changed, pool, largest), volumes=problem.volumes)


def _with_other_shapes(
    problem: Problem,
    pods: Sequence[PendingPod],
    changed: Callable[[PodShape], PodShape],
    pool: PoolInput,
    largest: Resources,
) -> Problem:
    """`problem_of_group` for pods whose shapes are changed first."""
    renamed = [replace(pod, shape=f"plain:{pod.shape}") for pod in pods]
    shapes = {f"plain:{digest}": changed(problem.shapes[digest]) for digest in dict.fromkeys(pod.shape for pod in pods)}
    shapes |= {digest: problem.shapes[digest] for digest in problem.daemons}
    return problem_of_group(problem, renamed, pool, largest, shapes)


def problem_after_binding(problem: Problem, node_of: Mapping[str, str], left: frozenset[str]) -> Problem:
    """The problem of the pods (uids) that are `left`, when others are bound to the nodes in `node_of`."""
    pods_on: dict[str, list[PendingPod]] = defaultdict(list)
    for pod in problem.pods:
        if pod.uid in node_of:
            pods_on[node_of[pod.uid]].append(pod)
    return replace(
        problem,
        pods=tuple(pod for pod in problem.pods if pod.uid in left),
        nodes=tuple(
            node.with_pods([problem.shapes[pod.shape] for pod in pods_on[node.name]]) for node in problem.nodes
        ),
        bound=(
            *problem.bound,
            *(
                BoundPod(pod.uid, pod.namespace, pod.shape, name, name=pod.name)
                for name, pods in sorted(pods_on.items())
                for pod in pods
            ),
        ),
    )


def _resources_only(shape: PodShape) -> PodShape:
    """The pod's requests, tolerations and host ports; the claim's constraints stand for the rest."""
    return PodShape(requests=shape.requests, tolerations=shape.tolerations, host_ports=shape.host_ports)


def _without_pod_rules(shape: PodShape, labels: Mapping[str, str], preferences: bool) -> PodShape:
    """What the pod asks of the node itself, and these labels; nothing of other pods."""
    terms = shape.preferred_terms if preferences else ()
    chosen = {**shape.node_selector, **labels}
    return replace(
        shape, labels={}, node_selector=chosen, spread=(), affinity=(), anti_affinity=(), preferred_terms=terms
    )


def _types_larger_than(digest: str, catalogue: Catalogue, largest: Resources) -> frozenset[tuple[str, str, str]]:
    """Kept with the catalogue: many groups of pods leave out the same types."""
    if not largest:
        return frozenset()

    def larger() -> frozenset[tuple[str, str, str]]:
        return without_types(
            instance_type.name
            for instance_type in catalogue.types
            if any(instance_type.capacity.get(name, 0) > amount for name, amount in largest.items())
        )

    what = _types_larger_than, tuple(sorted(largest.items()))
    return compiled_catalogue(digest, catalogue).once(what, larger)


def without_types(types: Iterable[str]) -> frozenset[tuple[str, str, str]]:
    """Entries of `Problem.unavailable` that leave out these types."""
    return frozenset(("", name, "") for name in types)


# ── limits ──────────────────────────────────────


def counted(problem: Problem, pool: PoolInput, claims: Iterable[OpenedClaim]) -> Resources:
    """What claims of a NodePool count against its limits, apart from the number of nodes: of each resource that it
    limits the most that a type of the claim has (S-70)."""
    used = {name: 0 for name in sorted(pool.pool.limits or {}) if name != NODES_LIMIT}
    for claim in claims if used else ():
        allowed = frozenset(claim.instance_types)
        types = [each for each in problem.catalogues[pool.catalogue].types if each.name in allowed]
        for name in used:
            used[name] += max([each.capacity.get(name, 0) for each in types], default=0)
    return used


def limits_used(problem: Problem, pool: PoolInput, claims: Iterable[OpenedClaim]) -> Resources:
    """What those of the claims that are of a NodePool count against its limits, with the number of nodes."""
    own = [claim for claim in claims if claim.node_pool == pool.pool.name]
    return {**counted(problem, pool, own), NODES_LIMIT: len(own)}
