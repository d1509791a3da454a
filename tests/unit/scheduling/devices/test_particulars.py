"""S-197 to S-203: attributes that only a node has, tainted devices, devices that name their own nodes, adminAccess,
allocations that nobody has any more, and what a NodeClaim says of its devices (S-160)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.devices import (
    ALL,
    AllocatedDevice,
    Allocation,
    AttributeBinding,
    CounterUse,
    Device,
    DeviceConstraint,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Taint, Toleration
from kerf.engine.scheduling.devices.node_devices import devices_of, site_of
from kerf.engine.scheduling.devices.search import Usage
from kerf.engine.scheduling.devices.usage import Host, Ledger
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from tests.unit.scheduling.devices.cases import (
    DRIVER,
    ask,
    claim,
    existing,
    gpu,
    placed,
    published,
    question,
    solved,
    template,
    types,
    why,
)

ROOT = "resource.kubernetes.io/pcieRoot"
SAME_ROOT = (DeviceConstraint(ROOT),)
HARD, SOFT = Taint("broken", "NoSchedule"), Taint("broken", "None")
TOLERANT = Toleration("broken", "Exists")


def zone(*names: str) -> NodeTerm:
    return NodeTerm((Expression(lbl.ZONE, "In", names),))


# ── S-200: attributes that only a node has ──────────────────────────────────────


def bound(*groups: str, known: str = "") -> Catalogue:
    """A type of four GPUs: groups of their numbers will have one root each. `known`: those that have one already."""
    devices = tuple(Device(f"g{n}", {ROOT: "here"} if str(n) in known else {}) for n in range(4))
    bindings = tuple(AttributeBinding(ROOT, tuple((DRIVER, "node", f"g{n}") for n in each)) for each in groups)
    (found,) = types(x=template(*devices)).types
    return Catalogue((replace(found, bindings=bindings),))


@pytest.mark.parametrize(
    ("count", "offered", "fits"),
    [
        (2, bound(), False),  # nobody knows
        (2, bound("01", "23"), True),
        (3, bound("01", "23"), False),
        (3, bound("01", "12"), True),  # transitive
        (4, bound("01", "23", "12"), True),
        (2, bound("0"), False),  # alone
        (1, bound("01"), True),
        (2, bound("02", known="01"), True),  # by their values
        (3, bound("23", known="01"), False),  # the two ways do not mix
        (3, bound("123", known="01"), False),  # nor for a device that both tell of
    ],
)
def test_s200_attribute_bindings(count: int, offered: Catalogue, fits: bool) -> None:
    planned = solved([claim("c", ask(count), constraints=SAME_ROOT)], {"a": ["c"]}, offered)
    assert placed(planned) == ({"a": "x#0"} if fits else {})


def test_s200_types_with_other_bindings_are_other_types() -> None:
    (one,), (other,) = bound("01", "23").types, bound("01").types
    catalogue = Catalogue((one, replace(other, name="y")))
    claims = [claim(each, ask(2), constraints=SAME_ROOT) for each in "cd"]
    planned = solved(claims, {"a": ["c"], "b": ["d"]}, catalogue)
    assert placed(planned) == {"a": "x#0", "b": "x#0"}


# ── tainted devices ──────────────────────────────────────


def test_a_tainted_device_is_for_requests_that_tolerate_it() -> None:
    offered = types(x=template(replace(gpu("g0"), taints=(HARD,))))
    refused = solved([claim("c")], {"a": ["c"]}, offered)
    ((why_not,),) = (each.reasons for each in refused.unplaced)
    assert (why_not.code, why_not.params["left"], why_not.params["selectors"]) == ("devices", 0, ["taints (1 of 1)"])
    assert placed(solved([claim("c", ask(tolerations=(TOLERANT,)))], {"a": ["c"]}, offered)) == {"a": "x#0"}


def test_a_taint_of_another_effect_keeps_nobody_away() -> None:
    offered = types(x=template(replace(gpu("g0"), taints=(SOFT,))))
    assert placed(solved([claim("c")], {"a": ["c"]}, offered)) == {"a": "x#0"}


def test_all_devices_cannot_be_had_where_one_is_tainted() -> None:
    offered = types(x=template(gpu("g0"), replace(gpu("g1"), taints=(HARD,))))
    assert placed(solved([claim("c", ask(mode=ALL))], {"a": ["c"]}, offered)) == {}
    assert placed(solved([claim("c", ask(mode=ALL, tolerations=(TOLERANT,)))], {"a": ["c"]}, offered)) == {"a": "x#0"}


# ── devices that name their own nodes ──────────────────────────────────────


def test_devices_say_for_themselves_where_they_are() -> None:
    nodes = [existing("n1", zone="z1"), existing("n2", zone="z2")]
    own = [
        replace(gpu("g0"), node="n2"),
        replace(gpu("g1"), terms=(zone("z1"),)),
        replace(gpu("g2"), all_nodes=True),
    ]
    slices = [published("net", *own)]
    wanted = {name: f'device.attributes["{DRIVER}"].n == "{name}"' for name in ("g0", "g1")}
    named = [replace(each, attributes={f"{DRIVER}/n": each.name}) for each in own]
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
    assert {each.key: each.values for each in opened.requirements}[lbl.ZONE] == ("z2",)


def test_s197_shared_counters_do_not_make_a_nodes_devices_those_of_another() -> None:
    use = CounterUse("gpu", {"slices": 1})
    slices = [published("n2", Device("p", consumes=(use,)), node="n2", counters=(use,))]
    nodes = [existing("n1"), existing("n2")]
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=nodes, slices=slices)) == {"a": "n2"}
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=nodes[:1], slices=slices)) == {}


# ── adminAccess ──────────────────────────────────────


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


# ── S-198, S-199: allocations ──────────────────────────────────────


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


# ── S-160: what a NodeClaim is launched for ──────────────────────────────────────


def drivers(planned: Plan) -> list[tuple[str, ...]]:
    return [each.drivers for each in planned.claims]


def test_s160_a_claim_names_the_drivers_of_the_devices_that_it_brings() -> None:
    net = published("net", replace(gpu("g0"), attributes={}), all_nodes=True)
    pods = {"a": ["c"], "plain": []}
    assert drivers(solved([claim("c")], pods, types(x=template(gpu("g0"))))) == [(DRIVER,)]
    assert drivers(solved([claim("c")], pods, types(x=()), slices=[net])) == [()]


# ── many nodes ──────────────────────────────────────


def test_what_a_full_node_has_refused_once_is_not_asked_again() -> None:
    """Pods with equal claims of their own look at a full node once: a node only fills up."""
    nodes = [existing(f"n{number}") for number in range(3)]
    held = Allocation(tuple(AllocatedDevice(DRIVER, each.name, "g0") for each in nodes))
    slices = [published(each.name, gpu("g0"), node=each.name) for each in nodes]
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
    sites = [site_of(each, Requirements.of_labels(each.labels), given) for each in nodes]
    for number in range(4):
        want = devices.want((f"default/c{number}",))
        assert [want.on_site(each) for each in sites] == [False] * 3
    assert asked == ["n0", "n1", "n2"]


def test_the_funnel_tells_of_types_without_the_devices() -> None:
    tracer = FunnelTracer()
    given = question([claim("c")], {"a": ["c"]}, types(bare=(), one=template(gpu("g0"))))
    plan(given, tracer)
    ((look,),) = (each.pools for each in tracer.funnel.classes)
    assert [(cut.what, cut.types, cut.wanted) for cut in look.funnel.cuts] == [("devices", 1, "default/c")]
    assert [each.instance_type for each in look.funnel.left] == ["one"]
    assert [(miss.what, miss.example) for miss in look.funnel.near] == [("devices", "bare")]
