"""The nodes by their free CPU."""

from __future__ import annotations

from kerf.adapters.simulation.scheduler.free_cpu import FreeCpu


def test_nodes_with_so_much_free_cpu_are_found_as_it_changes() -> None:
    free = FreeCpu()
    for node, amount in (("a", 500), ("b", 2_000), ("c", -100), ("d", 500)):
        free.put(node, amount)
    assert free.at_least(500) == ["a", "d", "b"]
    free.put("b", 400)
    free.put("c", 501)
    free.drop("d")
    free.drop("never-there")
    assert free.at_least(500) == ["a", "c"]
    assert free.at_least(401) == ["a", "c"]
    assert sorted(free.at_least(-1_000)) == ["a", "b", "c"]
