"""Which nodes can reach a device: by its own node, terms, zone and shared counters (S-197, S-202)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.devices import (
    AllocatedDevice,
    Allocation,
    CounterUse,
    Device,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.scheduling.devices.node_devices import devices_of, node_devices_of
from kerf.engine.scheduling.devices.search import Usage
from kerf.engine.scheduling.devices.usage import Host, Ledger
from tests.support.scenarios.device_problems import (
    DRIVER,
    ask,
    claim,
    existing,
    gpu,
    placed,
    published,
    question,
    solved,
    types,
)


def zone(*names: str) -> NodeTerm:
    return NodeTerm((Expression(lbl.ZONE, "In", names),))


def test_devices_say_for_themselves_where_they_are() -> None:
    nodes = [existing("n1", zone="z1"), existing("n2", zone="z2")]
    own = [
        replace(gpu("g0"), node="n2"),
        replace(gpu("g1"), terms=(zone("z1"),)),
        replace(gpu("g2"), all_nodes=True),
    ]
    slices = [published("net", *own)]
    wanted = {name: f'device.attributes["{DRIVER}"].n == "{name}"' for name in ("g0", "g1")}
    named = [replace(device, attributes={f"{DRIVER}/n": device.name}) for device in own]
    for name, node in (("g0", "n2"), ("g1", "n1")):
        planned = solved(
            [claim("c", ask(1, wanted[name]))], {"a": ["c"]}, types(bare=()), nodes=nodes,
            slices=[published("net", *named)],
        )  # fmt: skip
        assert placed(planned) == {"a": node}
    everything = solved([claim("c", ask(3))], {"a": ["c"]}, types(bare=()), nodes=nodes, slices=slices)
    assert placed(everything) == {}  # no node reaches all three
    two = solved([claim("c", ask(2))], {"a": ["c"]}, types(bare=()), nodes=[nodes[1]], slices=slices)
    assert placed(two) == {"a": "n2"}


def test_s202_a_device_of_its_own_zone_narrows_a_new_node() -> None:
    slices = [published("net", replace(gpu("g0"), terms=(zone("z2"),)))]
    (opened,) = solved([claim("c")], {"a": ["c"]}, types(bare=()), slices=slices).claims
    assert {requirement.key: requirement.values for requirement in opened.requirements}[lbl.ZONE] == ("z2",)


def test_s197_shared_counters_do_not_make_a_nodes_devices_those_of_another() -> None:
    use = CounterUse("gpu", {"slices": 1})
    slices = [published("n2", Device("p", consumes=(use,)), node="n2", counters=(use,))]
    nodes = [existing("n1"), existing("n2")]
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=nodes, slices=slices)) == {"a": "n2"}
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=nodes[:1], slices=slices)) == {}


def test_what_a_full_node_has_refused_once_is_not_asked_again() -> None:
    """Pods with equal claims of their own look at a full node once: a node only fills up."""
    nodes = [existing(f"n{number}") for number in range(3)]
    held = Allocation(tuple(AllocatedDevice(DRIVER, node.name, "g0") for node in nodes))
    slices = [published(node.name, gpu("g0"), node=node.name) for node in nodes]
    claims = [claim("held", allocation=held, pods=("p",)), *(claim(f"c{number}") for number in range(4))]
    given = question(claims, {f"p{number}": [f"c{number}"] for number in range(4)}, types(x=()), nodes=nodes,
                     slices=slices)  # fmt: skip
    asked: list[str] = []

    class Counting(Ledger):
        def usage(self, host: Host, group: int, pools: Iterable[tuple[str, str]]) -> Usage:
            asked.append(str(host))
            return super().usage(host, group, pools)

    devices = devices_of(given)
    assert devices is not None
    assert given.devices is not None
    devices.ledger = Counting(given.devices, (), frozenset())
    sites = [node_devices_of(node, Requirements.of_labels(node.labels), given) for node in nodes]
    for number in range(4):
        want = devices.want((f"default/c{number}",))
        assert [want.on_site(site) for site in sites] == [False] * 3
    assert asked == ["n0", "n1", "n2"]
