"""S-194 to S-203: where pods go that ask for devices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.devices import (
    ALL,
    AllocatedDevice,
    Allocation,
    Capacity,
    CounterUse,
    Device,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
    ValidRange,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.reasons import sentence
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
    template,
    types,
    why,
)

ONE = template(gpu("g0", model="a"))
TWO = template(gpu("g0", model="a", slot=0), gpu("g1", model="b", slot=1))
KINDS = types(bare=(), one=ONE, two=TWO)


def model(name: str) -> str:
    return f'device.attributes["{DRIVER}"].model == "{name}"'


def zone(*names: str) -> NodeTerm:
    return NodeTerm((Expression(lbl.ZONE, "In", names),))


# ── new nodes ──────────────────────────────────────


def test_s200_only_types_with_the_devices_are_launched() -> None:
    assert placed(solved([claim("c")], {"a": ["c"], "plain": []}, KINDS)) == {"a": "one two#0", "plain": "one two#0"}
    assert placed(solved([claim("c", ask(2))], {"a": ["c"]}, KINDS)) == {"a": "two#0"}
    refused = solved([claim("c", ask(3))], {"a": ["c"]}, KINDS)
    assert why(refused) == {"a": ["devices"]}


def test_s203_devices_of_a_node_are_given_away_once() -> None:
    claims = [claim("c"), claim("d"), claim("e")]
    planned = solved(claims, {"a": ["c"], "b": ["d"], "e": ["e"]}, KINDS)
    assert placed(planned) == {"a": "two#0", "b": "two#0", "e": "one two#1"}
    assert placed(solved(claims[:2], {"a": ["c"], "b": ["d"]}, types(one=ONE))) == {"a": "one#0", "b": "one#1"}


def test_s199_pods_of_one_claim_share_its_devices_and_its_node() -> None:
    planned = solved([claim("c")], {"a": ["c"], "b": ["c"]}, types(one=ONE))
    assert placed(planned) == {"a": "one#0", "b": "one#0"}
    crowded = solved([claim("c")], {"a": ["c"], "b": ["c"]}, types(one=ONE), cpu=1500)
    assert why(crowded) == {"b": ["devices-elsewhere"]}


def test_s200_selectors_of_class_and_request_are_told_with_what_they_rule_out() -> None:
    planned = solved([claim("c", ask(1, model("b")))], {"a": ["c"]}, KINDS)
    assert placed(planned) == {"a": "two#0"}
    refused = solved([claim("c", ask(1, model("x")))], {"a": ["c"]}, KINDS)
    (unplaced,) = refused.unplaced
    (reason,) = unplaced.reasons
    assert reason.params == {
        "devices": 2, "left": 0, "node_pool": "default", "request": "default/c/r", "wanted": "1",
        "selectors": [f"{model('x')} (2 of 2)"],
    }  # fmt: skip
    assert "of the 2 here 0 would do" in sentence(reason)


def test_s200_a_selector_without_a_value_fails_the_claim_and_nothing_else() -> None:
    bad = claim("c", ask(1, f'device.attributes["{DRIVER}"].nope == 1'))
    planned = solved([bad, claim("d")], {"a": ["c"], "b": ["d"]}, KINDS)
    assert (why(planned), placed(planned)) == ({"a": ["devices"]}, {"b": "one two#0"})
    (unplaced,) = planned.unplaced
    assert unplaced.reasons[0].params["selectors"] == ["KERF353: no such key: nope"]


def test_s200_all_takes_every_matching_device() -> None:
    every = claim("c", ask(1, mode=ALL))
    assert placed(solved([every], {"a": ["c"]}, KINDS)) == {"a": "one two#0"}
    planned = solved([every, claim("d", ask(1, mode=ALL))], {"a": ["c"], "b": ["d"]}, KINDS)
    assert placed(planned) == {"a": "one two#0", "b": "one two#1"}


def test_s200_the_first_alternative_that_can_be_had() -> None:
    either = DeviceRequest("r", first_of=(ask(2, model("a"), name="x"), ask(1, model("b"), name="y")))
    assert placed(solved([claim("c", either)], {"a": ["c"]}, KINDS)) == {"a": "two#0"}


def test_s200_at_most_32_devices_a_claim() -> None:
    many = types(many=template(*(gpu(f"g{n}") for n in range(40))))
    assert placed(solved([claim("c", ask(32))], {"a": ["c"]}, many)) == {"a": "many#0"}
    assert why(solved([claim("c", ask(33))], {"a": ["c"]}, many)) != {}
    assert why(solved([claim("c", ask(30), ask(3, name="s"))], {"a": ["c"]}, many)) == {"a": ["devices-together"]}


@pytest.mark.parametrize(
    ("requests", "attribute", "kinds"),
    [
        ((), "model", ""),
        (("r",), "model", "two#0"),
        ((), "vendor", "two#0"),
        ((), "missing", ""),
    ],
)
def test_s200_match_attribute(requests: tuple[str, ...], attribute: str, kinds: str) -> None:
    offered = types(two=template(gpu("g0", model="a", vendor="v"), gpu("g1", model="b", vendor="v")))
    same = DeviceConstraint(f"{DRIVER}/{attribute}", requests)
    planned = solved([claim("c", ask(), ask(name="s"), constraints=(same,))], {"a": ["c"]}, offered)
    assert placed(planned) == ({"a": kinds} if kinds else {})


def test_s200_a_constraint_makes_the_search_go_back() -> None:
    offered = types(three=template(gpu("g0", model="a"), gpu("g1", model="b"), gpu("g2", model="b")))
    same = DeviceConstraint(f"{DRIVER}/model")
    assert placed(solved([claim("c", ask(2), constraints=(same,))], {"a": ["c"]}, offered)) == {"a": "three#0"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (claim("c", constraints=(DeviceConstraint(),)), "a constraint other than matchAttribute"),
        (claim("c", DeviceRequest("r", "none")), "there is no DeviceClass none"),
        (claim("c", ask(unsupported="adminAccess")), "adminAccess"),
        (claim("other"), "there is no such ResourceClaim"),
    ],
)
def test_s195_s200_claims_that_nothing_can_meet(given: ResourceClaim, problem: str) -> None:
    planned = solved([given], {"a": ["c"], "plain": []}, KINDS)
    (unplaced,) = planned.unplaced
    assert (unplaced.reasons[0].code, unplaced.reasons[0].params["problem"]) == ("resource-claim", problem)
    assert list(placed(planned)) == ["plain"]


# ── existing nodes ──────────────────────────────────────


def test_s196_published_devices_of_initialized_nodes() -> None:
    nodes = [existing("n1"), existing("n2")]
    slices = [published("n2", gpu("g0"), node="n2")]
    planned = solved([claim("c"), claim("d")], {"a": ["c"], "b": ["d"]}, types(one=ONE), nodes=nodes, slices=slices)
    assert placed(planned) == {"a": "n2", "b": "one#0"}


def test_s196_nodes_on_their_way_have_what_their_type_will_publish() -> None:
    waiting = existing("n", "one", initialized=False)
    own = published("n", gpu("g0"), gpu("g1"), node="n")
    planned = solved([claim("c"), claim("d")], {"a": ["c"], "b": ["d"]}, types(one=ONE), nodes=[waiting], slices=[own])
    assert placed(planned) == {"a": "n", "b": "one#0"}
    held = claim("x", allocation=Allocation((AllocatedDevice(DRIVER, "n", "g0"),)), pods=("p",))
    taken = solved([claim("c"), held], {"a": ["c"]}, types(one=ONE), nodes=[waiting], slices=[own])
    assert placed(taken) == {"a": "one#0"}


def test_s197_only_the_latest_generation_and_only_whole_pools() -> None:
    node = existing("n")
    old = published("old", gpu("g0"), gpu("g1"), node="n")
    new = replace(old, name="new", generation=2, devices=(gpu("g0"),))
    both = {"nodes": [node], "slices": [old, new]}
    assert placed(solved([claim("c", ask(2))], {"a": ["c"]}, types(bare=()), **both)) == {}
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), **both)) == {"a": "n"}
    part = replace(new, count=2)
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=[node], slices=[part])) == {}
    twice = replace(new, devices=(gpu("g0"), gpu("g0")))
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), nodes=[node], slices=[twice])) == {}


def test_s197_an_incomplete_pool_fails_all_but_not_a_count() -> None:
    slices = [published("x", gpu("g0"), node="n"), replace(published("y", gpu("g1"), node="n"), count=2)]
    given = {"nodes": [existing("n")], "slices": slices}
    assert placed(solved([claim("c")], {"a": ["c"]}, types(bare=()), **given)) == {"a": "n"}
    assert placed(solved([claim("c", ask(1, mode=ALL))], {"a": ["c"]}, types(bare=()), **given)) == {}


def test_s198_allocated_devices_are_gone_unless_their_pods_are_leaving() -> None:
    slices = [published("n", gpu("g0"), node="n")]
    held = claim("x", allocation=Allocation((AllocatedDevice(DRIVER, "n", "g0"),)), pods=("p",))
    given = {"nodes": [existing("n")], "slices": slices}
    assert placed(solved([claim("c"), held], {"a": ["c"]}, types(bare=()), **given)) == {}
    assert placed(solved([claim("c"), held], {"a": ["c"]}, types(bare=()), leaving=["p"], **given)) == {"a": "n"}
    assert placed(solved([held], {"a": ["x"]}, types(one=ONE), leaving=["p"])) == {"a": "one#0"}, "allocated anew"
    other = replace(held, others=True)
    assert placed(solved([claim("c"), other], {"a": ["c"]}, types(bare=()), leaving=["p"], **given)) == {}


def test_s199_an_allocated_claim_says_where_its_pods_go() -> None:
    held = claim("x", allocation=Allocation((AllocatedDevice(DRIVER, "net", "g0"),), (zone("z2"),)), pods=("p",))
    nodes = [existing("n1", zone="z1"), existing("n2", zone="z2")]
    assert placed(solved([held], {"a": ["x"]}, types(bare=()), nodes=nodes)) == {"a": "n2"}
    (opened,) = solved([held], {"a": ["x"]}, types(bare=())).claims
    assert [requirement.values for requirement in opened.requirements if requirement.key == lbl.ZONE] == [("z2",)]


# ── devices that several nodes could have ──────────────────────────────────────


def test_s202_a_device_of_the_network_narrows_the_node() -> None:
    net = published("net", gpu("g0"), terms=(zone("z2", "z3"),))
    planned = solved([claim("c"), claim("d")], {"a": ["c"], "b": ["d"]}, types(bare=()), slices=[net])
    assert (placed(planned), why(planned)) == ({"a": "bare#0"}, {"b": ["devices"]})
    assert [e.values for e in planned.claims[0].requirements if e.key == lbl.ZONE] == [("z2", "z3")]


def test_s197_s202_devices_in_two_zones_cannot_go_to_one_node() -> None:
    slices = [published(f"net-{name}", gpu("g0"), terms=(zone(name),)) for name in ("z1", "z2")]
    assert placed(solved([claim("c", ask(2))], {"a": ["c"]}, types(bare=()), slices=slices)) == {}
    pods = {"a": ["c"], "b": ["d"]}
    apart = solved([claim("c"), claim("d")], pods, types(bare=()), slices=slices)
    assert placed(apart) == {"a": "bare#0", "b": "bare#1"}


def test_s203_a_network_device_is_taken_if_any_type_of_its_claim_uses_it() -> None:
    anywhere = published("net", gpu("g0"), all_nodes=True)
    planned = solved([claim("c"), claim("d")], {"a": ["c"], "b": ["d"]}, types(bare=(), one=ONE), slices=[anywhere])
    assert placed(planned) == {"a": "one#0", "b": "one#0"}


# ── parts of devices ──────────────────────────────────────


def partitioned(*amounts: int) -> tuple[ResourceSlice, ...]:
    """A GPU of 4 slices, and partitions that take so many of them each."""
    use = [CounterUse("gpu", {"slices": n}) for n in amounts]
    devices = tuple(Device(f"p{n}", consumes=(used,)) for n, used in enumerate(use))
    return template(*devices, counters=(CounterUse("gpu", {"slices": 4}),))


def test_s201_shared_counters() -> None:
    assert placed(solved([claim("c", ask(2))], {"a": ["c"]}, types(x=partitioned(2, 2, 1)))) == {"a": "x#0"}
    assert placed(solved([claim("c", ask(3))], {"a": ["c"]}, types(x=partitioned(2, 2, 1)))) == {}
    assert placed(solved([claim("c", ask(2))], {"a": ["c"]}, types(x=partitioned(4, 3, 1)))) == {"a": "x#0"}
    two = [claim("c", ask(2)), claim("d")]
    assert placed(solved(two, {"a": ["c"], "b": ["d"]}, types(x=partitioned(2, 2, 1)))) == {"a": "x#0", "b": "x#1"}


def test_s200_a_search_that_leads_nowhere_ends_by_its_steps() -> None:
    """40 partitions of which 4 can be had at once: there are 658,008 ways to take five, and none works."""
    offered = types(x=partitioned(*[1] * 40))
    planned = solved([claim("c", ask(5)), claim("d", ask(4))], {"a": ["c"], "b": ["d"]}, offered)
    assert (why(planned), placed(planned)) == ({"a": ["devices-together"]}, {"b": "x#0"})


@pytest.mark.parametrize(
    ("capacity", "asked", "pods"),
    [
        (Capacity(10), 4, 2),  # any amount
        (Capacity(10), None, 1),  # all of it
        (Capacity(10, default=3), None, 3),
        (Capacity(10, values=(2, 5)), 3, 2),
        (Capacity(10, values=(2, 5)), 6, 0),
        (Capacity(10, range=ValidRange(2, 8, 3)), 3, 2),  # 5
        (Capacity(10, range=ValidRange(2, 8, 3)), 9, 0),
        (Capacity(10), 11, 0),
    ],
)
def test_s201_parts_of_a_shared_device(capacity: Capacity, asked: int | None, pods: int) -> None:
    offered = types(x=template(gpu("g0", {"memory": capacity}, shared=True)))
    wanted = {} if asked is None else {f"{DRIVER}/memory": asked}
    claims = [claim(name, ask(capacity=wanted)) for name in "abcd"]
    planned = solved(claims, {asked_claim.name: [asked_claim.name] for asked_claim in claims}, offered)
    assert [len(opened.pods) for opened in planned.claims][:1] == ([pods] if pods else [])


def test_s201_a_dimension_that_a_device_has_not_got() -> None:
    offered = types(x=template(gpu("g0", {"memory": Capacity(10)}, shared=True)))
    assert placed(solved([claim("c", ask(capacity={"other/x": 1}))], {"a": ["c"]}, offered)) == {}


def test_s198_consumed_capacity_of_a_shared_device() -> None:
    memory = f"{DRIVER}/memory"
    slices = [published("n", gpu("g0", {"memory": Capacity(10)}, shared=True), node="n")]
    held = Allocation((AllocatedDevice(DRIVER, "n", "g0", {memory: 6}),))
    claims = [claim("x", allocation=held, pods=("p",)), claim("c", ask(capacity={memory: 4}))]
    assert placed(solved(claims, {"a": ["c"]}, types(bare=()), nodes=[existing("n")], slices=slices)) == {"a": "n"}
    more = [claims[0], claim("c", ask(capacity={memory: 5}))]
    assert placed(solved(more, {"a": ["c"]}, types(bare=()), nodes=[existing("n")], slices=slices)) == {}


# ── the pass ──────────────────────────────────────


def test_s194_nothing_is_asked_while_requests_are_ignored() -> None:
    given = question([claim("c")], {"a": ["c"]}, KINDS)
    ignoring = replace(given, settings=replace(given.settings, ignore_dra_requests=True))
    assert why(plan(ignoring)) == {"a": ["resource-claims-ignored"]}


def test_devices_do_not_depend_on_the_order_in_which_things_are_listed() -> None:
    names = "abcdef"
    claims = [claim(name, ask(1 + n % 2)) for n, name in enumerate(names)]
    slices = [published("n", gpu("g0"), gpu("g1"), node="n"), published("net", gpu("g"), terms=(zone("z1"),))]
    given = question(claims, {name: [name] for name in names}, KINDS, nodes=[existing("n")], slices=slices)
    assert given.devices is not None
    backwards = dict(sorted(given.devices.slices.items(), reverse=True))
    turned = replace(given, pods=given.pods[::-1], devices=replace(given.devices, slices=backwards))
    assert plan(turned) == plan(given)


def test_s195_a_pod_whose_claims_are_not_needed_is_like_any_other() -> None:
    given = question([], {"a": ["c"]}, KINDS)
    unneeded = replace(given, pods=tuple(replace(pod, device_claims=()) for pod in given.pods))
    assert placed(plan(unneeded)) == {"a": "bare one two#0"}
