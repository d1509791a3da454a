"""The KWOK provider: the contract of every `Cloud`, and what is its own (docs/rules/lifecycle.md section 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.kwok.catalogue import built_in
from kerf.adapters.kwok.cloud import KwokCloud
from kerf.engine.errors import KerfError
from kerf.engine.model import labels
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.record.decisions import Offer
from kerf.engine.record.observations import LaunchAnswered, NodeClassSeen
from tests.contract.cloud_contract import CloudContract, CloudWorld, order

CATALOGUE = built_in()
Answer = tuple[int, dict[str, Any]]


class LostError(KerfError):
    code = "KERF602"


class FakeNodes:
    """Node objects without an API server. One that is deleted is gone at once, unless it has a finalizer."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.lose = False
        self.refuse = False

    def create(self, document: dict[str, Any]) -> Answer:
        name = document["metadata"]["name"]
        if self.refuse:
            return 422, {"message": "denied by an admission policy"}
        if name in self.nodes:
            return 409, {"message": "already exists"}
        self.nodes[name] = document
        if self.lose:
            self.lose = False
            raise LostError("no answer")
        return 201, document

    def get(self, name: str) -> Answer:
        return (200, self.nodes[name]) if name in self.nodes else (404, {"message": "not found"})

    def labelled(self, label: str, value: str = "") -> tuple[int, list[dict[str, Any]]]:
        there = [node for node in self.nodes.values() if label in node["metadata"]["labels"]]
        return 200, [instance for instance in there if not value or instance["metadata"]["labels"][label] == value]

    def annotate(self, name: str, annotations: dict[str, str]) -> Answer:
        status, found = self.get(name)
        if status == 200:
            found["metadata"].setdefault("annotations", {}).update(annotations)
        return status, found

    def delete(self, name: str) -> Answer:
        status, found = self.get(name)
        if found.get("metadata", {}).get("finalizers"):
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            self.nodes.pop(name, None)
        return status, found

    def become_ready(self) -> None:
        for node in self.nodes.values():
            node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]


class KwokWorld(CloudWorld):
    node_class = NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default")
    offers = (
        Offer("c-1x-amd64-linux", "test-zone-a", 0.027147),
        Offer("s-1x-amd64-linux", "test-zone-b", 0.029295),
        Offer("c-2x-amd64-linux", "test-zone-c", 0.054295),
    )

    def __init__(self) -> None:
        self.nodes = FakeNodes()
        self._later: list[Callable[[], None]] = []
        self._cloud = self.restarted()

    def cloud(self) -> KwokCloud:
        return self._cloud

    def restarted(self) -> KwokCloud:
        cloud = KwokCloud(self.nodes, CATALOGUE, now=lambda: 1000, later=lambda _, work: self._later.append(work))
        cloud.put(KWOKNodeClass("default", uid="u", generation=1))
        return cloud

    def advance(self, milliseconds: int) -> None:
        for work in self._later:
            work()
        self._later.clear()
        self.nodes.become_ready()

    def exhaust(self, offers: Sequence[Offer], capacity_type: str) -> None:
        raise NotImplementedError("KWOK never lacks capacity (L-466)")

    def lose_answer(self) -> None:
        self.nodes.lose = True

    def provider_id(self, answer: LaunchAnswered) -> str:
        return f"kwok://{answer.instance}"

    def alive(self, claim: str) -> list[str]:
        found = self.nodes.nodes.values()
        return [str(n["metadata"]["name"]) for n in found if n["metadata"]["labels"][labels.HOSTNAME] == claim]


@pytest.fixture
def world() -> KwokWorld:
    return KwokWorld()


class TestKwokCloud(CloudContract):
    @pytest.fixture
    def world(self) -> KwokWorld:
        return KwokWorld()

    def test_a_launch_falls_to_the_next_offer(self, world: CloudWorld, claim: str) -> None:
        """Its instances never run out (L-466): what it lacks is a type that the catalogue does not have (L-472)."""
        wanted = order(world, claim)
        unknown = (Offer("no-such-type", "test-zone-a", 0.0), *wanted.offers)
        answer = world.cloud().launch(replace(wanted, offers=unknown), intent="7.0", token=claim)
        assert (answer.instance_type, answer.zone) == (world.offers[0].instance_type, world.offers[0].zone)

    def test_without_any_capacity_each_offer_has_its_error(self, world: CloudWorld, claim: str) -> None:
        """L-472: none left is insufficient capacity."""
        none = replace(order(world, claim), offers=(Offer("no-such-type", "test-zone-a", 0.0),))
        answer = world.cloud().launch(none, intent="7.0", token=claim)
        assert (answer.instance, answer.kind) == ("", "insufficient-capacity")
        assert world.alive(claim) == []


def test_the_node_is_what_the_reference_makes(world: KwokWorld) -> None:
    """L-473, L-474; but its capacity is its type's."""
    world.cloud().launch(order(world, "pool-abcde"), intent="7.0", token="t")
    (node,) = world.nodes.nodes.values()
    metadata, name = node["metadata"], node["metadata"]["name"]
    assert name.startswith("kwok-pool-abcde-")
    assert int(name.rpartition("-")[2]) < 1 << 32
    assert node["spec"] == {
        "providerID": f"kwok://{name}",
        "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
    }
    assert metadata["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    expected = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "c-1x-amd64-linux",
        "topology.kubernetes.io/zone": "test-zone-a",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": "pool-abcde",
        "karpenter.kwok.sh/instance-size": "1",
        "karpenter.kwok.sh/instance-family": "c",
        "karpenter.kwok.sh/instance-cpu": "1",
        "karpenter.kwok.sh/instance-memory": "2048",
        "eks-node-viewer/instance-price": "0.027147",
        "kwok-partition": "a",
        "kwok.x-k8s.io/node": "fake",
    }
    assert {key: metadata["labels"].get(key) for key in expected} == expected
    status = node["status"]
    assert status["phase"] == "Pending"
    ephemeral = str(20 << 30)
    assert status["capacity"] == {
        "cpu": "1000m", "memory": str(2 << 30), "pods": "16", "ephemeral-storage": ephemeral
    }  # fmt: skip
    assert status["allocatable"] == {
        "cpu": "900m",
        "memory": str((2 << 30) - (10 << 20)),
        "pods": "16",
        "ephemeral-storage": ephemeral,
    }


def test_a_registration_delay_holds_the_node_back_not_the_answer(world: KwokWorld) -> None:
    """A registration delay holds the node back not the answer (L-473)."""
    world.cloud().put(KWOKNodeClass("default", registration_delay=30_000))
    answer = world.cloud().launch(order(world, "c"), intent="7.0", token="t")
    assert answer.provider_id == f"kwok://{answer.instance}"
    assert world.nodes.nodes == {}
    assert [seen.status for seen in world.cloud().describe([answer.instance])] == ["pending"]
    world.advance(30_000)
    assert list(world.nodes.nodes) == [answer.instance]


def test_a_node_that_the_api_server_refuses_is_a_failed_launch(world: KwokWorld) -> None:
    """Unlike L-473: it will never join."""
    world.nodes.refuse = True
    answer = world.cloud().launch(order(world, "c"), intent="7.0", token="t")
    assert (answer.instance, answer.kind, answer.code) == ("", "error", "422")
    assert answer.message == "denied by an admission policy"


def test_an_instance_that_ends_before_its_node_was_made_never_gets_one(world: KwokWorld) -> None:
    world.cloud().put(KWOKNodeClass("default", registration_delay=30_000))
    answer = world.cloud().launch(order(world, "c"), intent="7.0", token="t")
    assert world.cloud().terminate(answer.instance, intent="8.0").ok
    world.advance(30_000)
    assert world.nodes.nodes == {}


def test_a_node_that_is_being_deleted_is_an_instance_that_is_gone(world: KwokWorld) -> None:
    """A node that is being deleted is an instance that is gone (L-475)."""
    instance = world.cloud().launch(order(world, "c"), intent="7.0", token="t").instance
    world.nodes.nodes[instance]["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    assert world.cloud().terminate(instance, intent="8.0").ok
    assert instance in world.nodes.nodes
    assert [seen.status for seen in world.cloud().describe([instance])] == ["gone"]


def test_a_ready_node_that_somebody_else_deletes_runs_on_until_it_is_drained(world: KwokWorld) -> None:
    """L-194: a Ready Node is always drained; its finalizer holds it. One that is not ready has nothing to drain."""
    instance = world.cloud().launch(order(world, "c"), intent="7.0", token="t").instance
    world.nodes.nodes[instance]["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    world.nodes.become_ready()
    world.nodes.delete(instance)
    assert [seen.status for seen in world.cloud().describe([instance])] == ["running"]
    assert [tagged.instance for tagged in world.cloud().listing()] == [instance]
    assert world.cloud().terminate(instance, intent="8.0").ok
    for cloud in (world.cloud(), world.restarted()):
        assert [seen.status for seen in cloud.describe([instance])] == ["gone"]
        assert not cloud.listing()


def test_a_node_class_that_is_not_ready_launches_nothing(world: KwokWorld) -> None:
    """A NodeClass that is not ready launches nothing (L-153, L-159)."""
    world.cloud().observe()
    world.cloud().put(KWOKNodeClass("default", ready=False))
    (seen,) = [o.payload for o in world.cloud().observe() if isinstance(o.payload, NodeClassSeen)]
    assert not seen.ready
    answer = world.cloud().launch(order(world, "c"), intent="7.0", token="t")
    assert (answer.instance, answer.kind) == ("", "nodeclass-not-ready")


def test_a_node_of_another_records_token_is_found_by_its_claim(world: KwokWorld) -> None:
    """A record that is lost, or killed before it had the answer: no second Node (L-145, design idea 4)."""
    made = world.cloud().launch(order(world, "c-1"), intent="1.0", token="one")
    found = world.restarted().find(order(world, "c-1"), intent="9.0", token="another")
    assert found is not None
    assert (found.instance, found.adopted) == (made.instance, True)
