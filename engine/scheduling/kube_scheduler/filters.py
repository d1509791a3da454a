"""kube-scheduler's filter plugins that look at one node alone: each says whether a pod may go there.

The two that look at other pods, PodTopologySpread and InterPodAffinity, are in `interpod_counts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Resources, Taint, Toleration
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.pods.pod_requirements import alternatives_of, contradictions
from kerf.engine.scheduling.pods.pod_volumes import Attachment


def node_resources_fit(requests: Resources, free: Resources) -> bool:
    """NodeResourcesFit: every request is at most what is free. The pod itself counts as one of the resource `pods`."""
    for name, amount in requests.items():  # noqa: SIM110 (a generator would take twice as long in this hot loop)
        if amount > free.get(name, 0):
            return False
    return True


def node_ports(wanted: tuple[HostPort, ...], used: tuple[HostPort, ...]) -> bool:
    """NodePorts: none of the wanted host ports is in use."""
    return not (wanted and port_conflicts(wanted, used))


def node_volume_limits(
    volumes: frozenset[Attachment], attached: frozenset[Attachment], limits: Mapping[str, int]
) -> bool:
    """NodeVolumeLimits: with the pod's volumes attached, no CSI driver exceeds its limit on the node."""
    if not limits or volumes <= attached:
        return True
    drivers = Counter(driver for driver, _ in attached | volumes)
    return all(drivers[driver] <= limit for driver, limit in limits.items())


def taint_toleration(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    """TaintToleration: every taint is tolerated, apart from those that only prefer no pods (these cost score)."""
    hard = tuple(taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE)
    return not untolerated(hard, tolerations)


def required_alternatives(shape: PodShape) -> tuple[Requirements, ...]:
    """What a pod asks of a node's labels: its nodeSelector with one of its required terms, once for each term.

    A term that contradicts itself or the nodeSelector is left out, because no node meets it. (Merged requirements alone
    would read as DoesNotExist then, which a node without the label would satisfy; S-4.)
    """
    alternatives = alternatives_of(shape)
    if not shape.required_terms:
        return alternatives
    alone = (replace(shape, required_terms=(term,)) for term in shape.required_terms)
    possible = [not contradictions(with_one_term, preferences=False) for with_one_term in alone]
    return tuple(alternative for alternative, kept in zip(alternatives, possible, strict=True) if kept)


def node_affinity(alternatives: Iterable[Requirements], labels: Requirements) -> bool:
    """NodeAffinity: the node's labels meet one of the alternatives that a pod asks for (`required_alternatives`).

    VolumeBinding and VolumeZone are part of it: where a volume may be reached is merged into the alternatives.
    """
    return any(not alternative or labels.compatible(alternative) for alternative in alternatives)


def node_affinity_before_launch(
    alternatives: Iterable[Requirements], labels: Requirements, narrowed: Requirements
) -> bool:
    """NodeAffinity on a node that is not launched yet.

    `labels` are known already. `narrowed` holds the labels of which only a set of values is known: a pod may rely on
    one of these only if every value of the set would do.
    """
    return any(_met_before_launch(alternative, labels, narrowed) for alternative in alternatives)


def _met_before_launch(alternative: Requirements, labels: Requirements, narrowed: Requirements) -> bool:
    undecided = [requirement for requirement in narrowed if requirement.key in alternative]
    decided = alternative.without(requirement.key for requirement in undecided)
    return labels.compatible(decided) and all(
        alternative.get(requirement.key).allows_all_of(requirement) for requirement in undecided
    )
