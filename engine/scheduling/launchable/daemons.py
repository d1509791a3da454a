"""DaemonSet pods: which of them a new node of an instance type will carry, and which an existing node still expects
(S-79…S-84).

Every required affinity term of a daemon is tried for every type. So the outcome does not depend on the order of types,
NodePools or nodes, which S-82 leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import NEGATIVE, Requirements
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Resources, Taint, Toleration
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE, tolerates_all
from kerf.engine.scheduling.pods.pod_requirements import requirements_of


class Daemon(Struct, frozen=True):
    """The pod of one DaemonSet. `alternatives`: its requirements without preferences, one set for each required
    affinity term."""

    requests: Resources
    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]

    def types(
        self, taints: Iterable[Taint], requirements: Requirements, catalogue: CompiledCatalogue, types: int
    ) -> int:
        """The types on whose nodes the daemon runs (S-81). Startup taints do not matter. Unlike in the reference, a
        label that no NodePool defines may come from the type."""
        if not tolerates_all(taints, (*self.tolerations, TOLERATES_PREFER_NO_SCHEDULE)):
            return 0
        known = WELL_KNOWN.union(catalogue.labels)
        runs = 0
        for alternative in self.alternatives:
            if requirements.compatible(alternative, known):
                runs |= _matching(alternative, requirements, catalogue, types)
        return runs

    def expected_on(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        """Whether an existing node will get the daemon (S-84). Every label that it asks for must be there."""
        return tolerates_all(taints, (*self.tolerations, TOLERATES_PREFER_NO_SCHEDULE)) and any(
            labels.compatible(alternative) for alternative in self.alternatives
        )


class DaemonGroup(Struct, frozen=True):
    """Instance types of a template that run the same daemons; what these daemons request, and the host ports they
    take."""

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
    """The daemons of a problem. `ignoring`: leave out those that ask for devices by ResourceClaim (S-80)."""
    daemon_shapes = (shapes[digest] for digest in sorted(digests))
    return tuple(daemon_of_shape(shape) for shape in daemon_shapes if not (ignoring and shape.resource_claims))


def daemon_groups(
    daemons: Iterable[Daemon],
    taints: tuple[Taint, ...],
    requirements: Requirements,
    catalogue: CompiledCatalogue,
    types: int,
) -> tuple[DaemonGroup, ...]:
    """The types, split by the daemons that run on them (S-83), ordered by their first type."""
    split: list[tuple[int, list[Daemon]]] = [(types, [])]
    for daemon in daemons:
        runs = daemon.types(taints, requirements, catalogue, types)
        halves = [(mask & runs, [*members, daemon]) for mask, members in split]
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
    """The types that meet a daemon's requirements. Where only the type can carry a label, it must know the label."""
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
    """What the expected daemons will still take of an existing node (S-74); never negative."""
    expected = total(daemon.requests for daemon in daemons if daemon.expected_on(taints, labels))
    return {name: max(0, amount - bound.get(name, 0)) for name, amount in expected.items()}


def ports_of_daemons(
    daemons: Iterable[Daemon], taints: tuple[Taint, ...], labels: Requirements
) -> tuple[HostPort, ...]:
    """The host ports of the daemons that an existing node has or expects (unlike in S-97)."""
    expected = (daemon for daemon in daemons if daemon.ports and daemon.expected_on(taints, labels))
    return tuple(port for daemon in expected for port in daemon.ports)
