"""The difference of two moments: objects field by field, nodes, pods, price."""

from __future__ import annotations

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.cli.render.moment.difference import difference_text
from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Expression, NodeTerm, Owner, Pod, PodShape, VolumeRef
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.projections.differences.field_changes import FieldChange
from kerf.projections.differences.structs import OfferChange, StateDifference
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.difference import difference_of
from kerf.replay.time_travel.moments import moment_of
from tests.support.lives import in_service
from tests.support.memory import MemoryStore
from tests.support.records import position_of, whole_life
from tests.support.world import CATALOGUE, World, pool


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def between(store: MemoryStore, before: object, after: object = "end") -> StateDifference:
    return difference_of(store, moment_of(store, str(before)), moment_of(store, str(after)))


def test_a_moment_and_itself_do_not_differ(store: MemoryStore) -> None:
    for text in ("start", "12", "+20m", "end"):
        found = between(store, text, text)
        assert (found.objects, found.nodes, found.workloads) == ((), (), ())
        assert [price.was == price.now for price in found.prices] == [True]


def test_a_node_that_came_and_the_pods_on_it(store: MemoryStore) -> None:
    found = between(store, position_of(store, "claim.requested") - 1, "+30m")
    (node,) = found.nodes
    assert (node.change, node.node, node.instance_type, node.price, node.why) == ("came", "n1", "m5.large", 0.096, "")
    assert [(price.node_pool, price.was, price.now) for price in found.prices] == [
        ("", 0.0, 0.096), ("default", 0.0, 0.096),
    ]  # fmt: skip
    assert {workload.moved for workload in found.workloads} == {(f"default/{name}",) for name in "abcde"}
    places = found.workloads[0].places
    assert [(place.node, place.was, place.now) for place in places] == [("", 1, 0), ("n1", 0, 1)]


def test_a_node_that_is_gone_says_why_it_went(store: MemoryStore) -> None:
    found = between(store, "+30m")
    (node,) = found.nodes
    assert (node.change, node.node, node.why) == ("gone", "n1", "empty")
    assert {(workload.was, workload.now) for workload in found.workloads} == {(1, 0)}
    assert found.objects == (), "the Node object went with its claim"


def test_what_changed_is_told_field_by_field() -> None:
    world = in_service()
    before = world.runtime.state.facts.position
    world.see(Observation(pool(weight=7)), Observation(Node("other", ready=True)))
    found = between(world.store, before)
    changed = {(change.kind, change.name): change for change in found.objects}
    assert changed["nodepool", "default"].fields == (FieldChange("spec.weight", None, "7"),)
    assert changed["node", "other"].change == "came"
    assert found.nodes == ()


def shaped(**fields: object) -> tuple[str, dict[str, Struct]]:
    """A shape of pods, as its digest and the blob."""
    shape = PodShape(requests={"cpu": 1000}, labels={"app": "web"})
    digest, _ = content(shape := replace(shape, **fields))
    return digest, {digest: shape}


def test_what_pods_ask_for_otherwise_is_told_field_by_field() -> None:
    """Of a DaemonSet's template, and of a workload by its latest pod."""
    world, (was, small), zone = in_service(), shaped(), {"topology.kubernetes.io/zone": "us-west-2c"}
    now, large = shaped(requests={"cpu": 1500}, node_selector=zone, labels={"app": "web", "pod-template-hash": "b"})
    old = Pod("u-1", "default", "web-1", was, created=1, owner=Owner("apps/v1/ReplicaSet", "web-5d8"))
    daemon = DaemonSet("ds", "default", "logs", was)
    world.see(Observation(daemon, small), Observation(old, small))
    before = world.runtime.state.facts.position
    young = replace(old, uid="u-2", name="web-2", shape=now, created=2, do_not_disrupt="true")
    world.see(Observation(replace(daemon, shape=now), large), Observation(young, large))
    found = between(world.store, before)
    asked = ("requests.cpu 1 → 1500m", "nodeSelector[topology.kubernetes.io/zone] none → us-west-2c")
    (changed,) = (change for change in found.objects if change.kind == "daemonset")
    assert {field.words for field in changed.fields} == {f"template.{words}" for words in asked}
    (web,) = (workload for workload in found.workloads if workload.was == 1)
    assert {field.words for field in web.fields} == {*asked, "doNotDisrupt none → true"}


@pytest.mark.parametrize("kind", ["apps/v1/StatefulSet", "apps/v1/DaemonSet"])
def test_what_only_tells_pods_of_a_workload_apart_is_no_difference(kind: str) -> None:
    """A StatefulSet's pods have names as labels and volumes of their own, a DaemonSet's nodes of their own."""
    world = in_service()

    def see(number: int) -> None:
        name, fields = f"db-{number}", (Expression("metadata.name", "In", (f"n{number}",)),)
        parts: dict[str, object] = {
            "labels": {"app": "db", "statefulset.kubernetes.io/pod-name": name},
            "volumes": (VolumeRef("data", claim=f"data-{name}"),),
        }
        terms = {"required_terms": (NodeTerm(fields=fields),)} if kind == DAEMONSET else {}
        digest, blobs = shaped(**parts, **terms)
        pod = Pod(f"u-{number}", "default", name, digest, created=number, owner=Owner(kind, "db"))
        world.see(Observation(pod, blobs))

    see(1)
    before = world.runtime.state.facts.position
    see(2)
    (db,) = between(world.store, before).workloads
    assert (db.was, db.now, db.fields) == (1, 2, ())


def test_pods_of_one_kind_that_come_and_go_ask_for_nothing_else(store: MemoryStore) -> None:
    found = between(store, position_of(store, "claim.requested") - 1, "+30m")
    assert [workload.fields for workload in found.workloads] == [()] * 5


def test_an_object_that_is_gone(store: MemoryStore) -> None:
    world = World()
    world.prepare()
    before = world.runtime.state.facts.position
    world.see(Observation(ObjectGone("nodepool", "default")))
    assert [(change.kind, change.name, change.change) for change in between(world.store, before).objects] == [
        ("nodepool", "default", "gone")
    ]


def test_the_later_moment_may_not_come_first(store: MemoryStore) -> None:
    with pytest.raises(PositionUnknown, match=r"KERF202.*is later than.*Give the earlier moment first"):
        between(store, "end", "start")


def test_what_the_cloud_asks_otherwise_is_told_with_an_offer_that_a_node_has() -> None:
    world = in_service()
    (claim,) = world.runtime.state.facts.claims.values()
    before = world.store.entries[-1].position
    types = tuple(
        replace(kind, offerings=tuple(replace(offer, price=offer.price * factor) for offer in kind.offerings))
        for kind, factor in zip(CATALOGUE.types, (4, 2, 1, 1), strict=True)
    )
    world.prepare(catalogue=replace(CATALOGUE, types=types))
    spot, on_demand = sorted(between(world.store, before).offers, key=lambda change: change.capacity_type)[::-1]
    assert (on_demand.instance_type, on_demand.zone, on_demand.was, on_demand.now) == (
        "m5.large", claim.zone, 0.096, 0.192,
    )  # fmt: skip
    assert (on_demand.changed, on_demand.offers, on_demand.least, on_demand.most) == (4, 8, 2.0, 4.0)
    assert (spot.node_class, spot.instance_type) == ("default", "c5.large"), "no node has one: that which changed most"
    assert between(world.store, "end").offers == ()


def test_changed_prices_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    change = OfferChange(
        node_class="default", capacity_type="spot", changed=9, offers=12, least=0.9, most=3.5,
        instance_type="c5.xlarge", zone="us-west-2c", was=0.0565, now=0.1977,
    )  # fmt: skip
    found = between(in_service().store, "end")
    difference_text(Printer(), replace(found, offers=(change,)))
    told = capsys.readouterr().out
    assert "~ the cloud's prices for NodeClass default: 9 of 12 spot offers ×0.9 to ×3.5\n" in told
    assert "    c5.xlarge us-west-2c: $0.0565/h → $0.1977/h\n" in told
    assert "nothing is different" not in told
