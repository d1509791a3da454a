"""Types up to some size: what is left out of a problem so that its nodes stay small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerf.engine.scheduling.optimizer.candidates import keeps_domains
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, NodeDemands, all_options
from kerf.engine.scheduling.optimizer.lower_bound import loosened
from kerf.engine.scheduling.problem.problem import Problem

CAP_EIGHTHS = (4, 2, 6, 1, 3, 5, 7)
"""Eighths of the sizes of types, in the order in which they are tried as the largest one."""


def types_above_caps(problem: Problem, menu: InstanceOptions, shapes: Iterable[str]) -> Iterator[list[str]]:
    """The types that are too large, for several sizes that leave every pod of these shapes (digests) a type; by CPU,
    which every node has."""
    cpu = {each.name: each.capacity.get("cpu", 0) for template in menu.templates for each in template.catalogue.types}
    floor = _smallest_cap(problem, menu, shapes, cpu)
    sizes = sorted({size for size in cpu.values() if size >= floor})
    for eighth in CAP_EIGHTHS if len(sizes) > 1 else ():
        cap = sizes[(len(sizes) - 1) * eighth // 8]
        gone = sorted(name for name, size in cpu.items() if size > cap)
        if keeps_domains(problem, frozenset(gone)):
            yield gone


def _smallest_cap(problem: Problem, menu: InstanceOptions, shapes: Iterable[str], cpu: Mapping[str, int]) -> int:
    """The smallest size that leaves every pod some type of the NodePools of the most weight that it can go to."""
    floor = 0
    known: dict[NodeDemands, list[tuple[int, int, tuple[int, ...]]]] = {}
    for digest in sorted(frozenset(shapes)):
        wanted = loosened(problem.shapes[digest], menu)
        if wanted.demands not in known:
            known[wanted.demands] = sorted(
                (-template.pool.weight, cpu[template.catalogue.names[way.kind]], menu.room(way.template, way.kind))
                for way in all_options(menu, wanted, any_weight=True)
                for template in (menu.templates[way.template],)
            )
        fitting = (
            size
            for _, size, room in known[wanted.demands]
            if all(a <= b for a, b in zip(wanted.amounts, room, strict=True))
        )
        floor = max(floor, next(fitting, 0))
    return floor
