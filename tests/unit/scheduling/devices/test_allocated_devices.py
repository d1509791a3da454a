"""Devices that claims already have (S-198, S-199), and adminAccess, which takes none away."""

from __future__ import annotations

from kerf.engine.model.kubernetes.devices import (
    ALL,
    AllocatedDevice,
    Allocation,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from tests.support.scenarios.device_problems import (
    DRIVER,
    ask,
    claim,
    existing,
    gpu,
    placed,
    published,
    solved,
    types,
    why,
)


def test_who_looks_after_devices_takes_none_and_minds_nobody() -> None:
    held = Allocation((AllocatedDevice(DRIVER, "n", "g0"),))
    claims = [
        claim("held", allocation=held, pods=("p",)),
        claim("look", ask(admin=True)),
        claim("all", ask(mode=ALL, admin=True)),
        claim("mine"),
    ]
    pods = {"a": ["look"], "b": ["all"], "c": ["mine"]}
    slices = [published("n", gpu("g0"), gpu("g1"), node="n")]
    planned = solved(claims, pods, types(bare=()), nodes=[existing("n")], slices=slices)
    assert placed(planned) == {"a": "n", "b": "n", "c": "n"}


def on_node(*, pods: tuple[str, ...] = (), others: bool = False, asked: bool = False) -> dict[str, str]:
    """Where a pod goes that wants the device of a claim that is allocated on the node n."""
    held = Allocation((AllocatedDevice(DRIVER, "n", "g0"),))
    claims = [claim("held", allocation=held, pods=pods, others=others), claim("c")]
    wanted = {"a": ["c"], **({"b": ["held"]} if asked else {})}
    slices = [published("n", gpu("g0"), node="n")]
    return placed(solved(claims, wanted, types(bare=()), nodes=[existing("n")], slices=slices))


def test_s198_devices_that_nobody_has_any_more_are_free() -> None:
    assert on_node() == {"a": "n"}
    assert on_node(pods=("p",)) == {}
    assert on_node(others=True) == {}
    assert on_node(asked=True) == {"b": "n"}  # somebody comes for it


def test_s199_devices_of_a_node_are_allocated_with_its_name() -> None:
    term = NodeTerm(fields=(Expression("metadata.name", "In", ("n2",)),))
    held = Allocation((AllocatedDevice(DRIVER, "n2", "g0"),), (term,))
    nodes = [existing("n1"), existing("n2")]
    given = [claim("c", allocation=held, pods=("p",))]
    assert placed(solved(given, {"a": ["c"]}, types(bare=()), nodes=nodes)) == {"a": "n2"}
    assert why(solved(given, {"a": ["c"]}, types(bare=()), nodes=nodes[:1])) == {"a": ["devices-elsewhere"]}
