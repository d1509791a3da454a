"""Caps on the size of instance types: which types to leave out of a problem so that its nodes stay small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import le

from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue, bits, compiled_catalogue
from kerf.engine.scheduling.launchable.templates import SLOT_LABELS
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, NodeDemands
from kerf.engine.scheduling.optimizer.lower_bound import loosened
from kerf.engine.scheduling.pods.pod_requirements import spread_keys
from kerf.engine.scheduling.problem.problem import Problem

CAP_EIGHTHS = (4, 2, 6, 1, 3, 5, 7)
"""The caps, as eighths of the sorted list of sizes, in the order in which they are tried."""


def types_above_caps(problem: Problem, options: InstanceOptions, shapes: Iterable[str]) -> Iterator[list[str]]:
    """For several caps, the names of the types above it. Size is CPU, which every node has. Each cap leaves a type for
    every pod of these shapes (digests)."""
    cpu = {
        instance_type.name: instance_type.capacity.get("cpu", 0)
        for template in options.templates
        for instance_type in template.catalogue.types
    }
    smallest = _smallest_cap(problem, options, shapes, cpu)
    sizes = sorted({size for size in cpu.values() if size >= smallest})
    for eighth in CAP_EIGHTHS if len(sizes) > 1 else ():
        cap = sizes[(len(sizes) - 1) * eighth // 8]
        above = sorted(name for name, size in cpu.items() if size > cap)
        if _keeps_domains(problem, above):
            yield above


def _smallest_cap(problem: Problem, options: InstanceOptions, shapes: Iterable[str], cpu: Mapping[str, int]) -> int:
    """The smallest size that leaves every pod a type of those NodePools of the most weight that it can go to."""
    smallest = 0
    known: dict[NodeDemands, list[tuple[int, int, tuple[int, ...]]]] = {}
    for kind in dict.fromkeys(loosened(problem.shapes[digest], options) for digest in sorted(frozenset(shapes))):
        if kind.demands not in known:
            known[kind.demands] = sorted(
                (-template.pool.weight, cpu[template.catalogue.names[bit]], options.room(number, bit))
                for number, narrowed in options.narrowed_templates(kind, any_weight=True).items()
                for template in (options.templates[number],)
                for bit in bits(narrowed.viable & template.types)
                if bit in options.prices(number, narrowed)
            )
        fitting = (size for _, size, room in known[kind.demands] if all(map(le, kind.amounts, room)))
        smallest = max(smallest, next(fitting, 0))
    return smallest


def _keeps_domains(problem: Problem, gone: Iterable[str]) -> bool:
    """Whether, without these types, there can still be a node in every domain that pods are spread over. (A domain that
    is lost would change how a spread counts.)"""
    keys = frozenset[str]().union(*map(spread_keys, problem.shapes.values()))
    catalogues = [compiled_catalogue(digest, made) for digest, made in problem.catalogues.items()] if keys else []
    return all(_keeps(catalogue, key, gone) for catalogue in catalogues for key in keys)


def _keeps(catalogue: CompiledCatalogue, key: str, gone: Iterable[str]) -> bool:
    without = sum(1 << catalogue.numbers[name] for name in gone if name in catalogue.numbers)
    domains: dict[str, int] = {}
    if key in SLOT_LABELS:
        for slot in catalogue.slots:
            value = getattr(slot, SLOT_LABELS[key])
            domains[value] = domains.get(value, 0) | slot.types
    elif key in catalogue.labels:
        domains = catalogue.labels[key].values
    return all(types & ~without for types in domains.values() if types)
