"""DaemonSet pods: which of them a new node of a type would carry, and which an existing one still expects
(S-79…S-84).

Every required affinity term of a daemon is tried for every type (the clean reading of S-82): the outcome
does not depend on the order of types, NodePools or nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Resources, Taint, Toleration
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.matching.requirements import NEGATIVE, Requirements
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE, tolerates_all
from kerf.engine.scheduling.pods.pod_requirements import requirements_of


class Daemon(Struct, frozen=True):
    """One DaemonSet's pod. `alternatives`: its strict requirements under each required affinity term."""

    requests: Resources
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]

    def types(
        self, taints: Iterable[Taint], requirements: Requirements, catalogue: CompiledCatalogue, types: int
    ) -> int:
        """Those of the types on whose nodes it runs (S-81); startup taints do not matter. Unlike in the reference, a
        label that no NodePool defines may be one of the type's, which its nodes will carry."""
        if not tolerates_all(taints, (*self.tolerations, TOLERATES_PREFER_NO_SCHEDULE)):
            return 0
        known = WELL_KNOWN.union(catalogue.labels)
        runs = 0
        for alternative in self.alternatives:
            if requirements.compatible(alternative, known):
                runs |= _matching(alternative, requirements, catalogue, types)
        return runs

    def expected_on(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        """Whether an existing node will get it (S-84): no label may be undefined."""
        return tolerates_all(taints, (*self.tolerations, TOLERATES_PREFER_NO_SCHEDULE)) and any(
            labels.compatible(alternative) for alternative in self.alternatives
        )


class DaemonGroup(Struct, frozen=True):
    """The types of a template that the same daemons run on, with what these request and the host ports
    they take."""

    types: int
    requests: Resources
    ports: tuple[HostPort, ...]


def daemon_of_shape(shape: PodShape) -> Daemon:
    terms = shape.required_terms
    each_alone = [replace(shape, required_terms=(term,)) for term in terms] if terms else [shape]
    return Daemon(
        {**shape.requests, "pods": 1},
        tuple(requirements_of(alone, preferences=False) for alone in each_alone),
        shape.tolerations,
        shape.host_ports,
    )


def daemons(digests: Iterable[str], shapes: Mapping[str, PodShape], ignoring: bool = True) -> tuple[Daemon, ...]:
    """The daemons of a problem. `ignoring`: those that ask for devices by ResourceClaim are left out (S-80)."""
    daemon_shapes = (shapes[digest] for digest in sorted(digests))
    return tuple(daemon_of_shape(shape) for shape in daemon_shapes if not (ignoring and shape.resource_claims))


def daemon_groups(
    daemons: Iterable[Daemon],
    taints: tuple[Taint, ...],
    requirements: Requirements,
    catalogue: CompiledCatalogue,
    types: int,
) -> tuple[DaemonGroup, ...]:
    """The types split by the daemons that count on them (S-83), ordered by first type."""
    split: list[tuple[int, list[Daemon]]] = [(types, [])]
    for each in daemons:
        runs = each.types(taints, requirements, catalogue, types)
        halves = [(mask & runs, [*members, each]) for mask, members in split]
        halves += [(mask & ~runs, members) for mask, members in split]
        split = [(mask, members) for mask, members in halves if mask]
    unordered = [
        DaemonGroup(
            mask, total(daemon.requests for daemon in members), tuple(p for daemon in members for p in daemon.ports)
        )
        for mask, members in split
    ]
    return tuple(sorted(unordered, key=lambda group: group.types & -group.types))


def _matching(
    requirements: Requirements, template_requirements: Requirements, catalogue: CompiledCatalogue, types: int
) -> int:
    """The types that do not conflict with what a daemon wants; those that have the label, where only they can."""
    for requirement in requirements:
        types &= catalogue.admitting(requirement)
        if (
            requirement.key not in template_requirements
            and requirement.key not in WELL_KNOWN
            and requirement.operator not in NEGATIVE
        ):
            types &= catalogue.labels[requirement.key].known
    return types


def reserved_for_daemons(
    daemons: Iterable[Daemon], taints: tuple[Taint, ...], labels: Requirements, bound: Resources
) -> Resources:
    """What expected daemons will still take of an existing node (S-74): never less than nothing."""
    expected = total(daemon.requests for daemon in daemons if daemon.expected_on(taints, labels))
    return {name: max(0, amount - bound.get(name, 0)) for name, amount in expected.items()}
