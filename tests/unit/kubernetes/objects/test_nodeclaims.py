"""NodeClaim objects follow the aggregates: made, brought up to date, and taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import Raw

from kerf.adapters.kubernetes.objects import nodeclaims as module
from kerf.adapters.kubernetes.objects.nodeclaim_documents import claim_document
from kerf.adapters.kubernetes.objects.nodeclaims import ClaimObjects
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.manifests.decode import decode_object
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support import lives
from tests.support.lives import claim_of
from tests.support.servers.fake_kubernetes import FakeApi, serving
from tests.support.world import START

pytestmark = pytest.mark.real_time

PATH = "/apis/karpenter.sh/v1/nodeclaims"
CREATED = {"metadata": {"uid": "uid-1"}}
NOW = START + 60_000


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.001, 0.002))
    monkeypatch.setattr(module, "MIN_SECONDS_BETWEEN_WRITES", 0.001)


async def play(api: FakeApi, scene: Callable[[ClaimObjects], Awaitable[None]]) -> None:
    async with serving(api) as session:
        objects = ClaimObjects(session, claim_conditions)
        await scene(objects)
        await objects.settle()
        await objects.close()


def api_for(name: str) -> FakeApi:
    api = FakeApi()
    for path in (f"PATCH {PATH}/{name}", f"PATCH {PATH}/{name}/status", f"DELETE {PATH}/{name}"):
        api.answers[path] = [(200, CREATED)]
    return api


@pytest.mark.asyncio(loop_scope="function")
async def test_an_object_says_what_its_claim_is_and_reads_back_as_that() -> None:
    """L-41 to L-46, L-139 to L-143: what kerf writes, kerf (and Karpenter) can adopt."""
    world = lives.in_service(expire_after=3_600_000, termination_grace_period=90_000)
    claim, state = claim_of(world), world.runtime.state
    state.facts.pools["default"] = NodePool("default", claim.node_class, uid="pool-uid")
    api = api_for(claim.name)

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)
        assert await objects.uid(claim.name) == "uid-1"

    await play(api, scene)
    (_, _, query, document), (_, _, _, status) = api.asked
    assert query == {"fieldManager": "kerf", "force": "true"}
    assert {headers["Content-Type"] for headers in api.headers} == {"application/apply-patch+yaml"}
    owner = document["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("NodePool", "default", "pool-uid")
    assert document["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    read = decode_object({**document, "status": status["status"]}).object
    assert isinstance(read, NodeClaimObject)
    assert (read.provider_id, read.node, read.labels) == (claim.provider_id, claim.node, claim.labels)
    assert (read.requirements, read.requests, read.allocatable) == (
        claim.requirements,
        claim.requests,
        claim.allocatable,
    )
    assert (read.expire_after, read.termination_grace_period) == (3_600_000, 90_000)
    true = {condition.type for condition in read.conditions if condition.status == "True"}
    assert {"Launched", "Registered", "Initialized", "Ready"} <= true


def test_a318_an_object_says_by_which_terms_of_its_class_it_was_launched() -> None:
    claim, key = claim_of(lives.launched()), "karpenter.k8s.aws/ec2nodeclass-hash"
    assert key not in claim_document(claim, "")["metadata"]["annotations"], "nobody knows"
    claim.class_hash = "kerf5/abc"
    shown = claim_document(claim, "")["metadata"]["annotations"]
    assert (shown[key], shown[f"{key}-version"]) == ("abc", "kerf5")
    claim.annotations = {**claim.annotations, key: "17", f"{key}-version": "v6"}
    shown = claim_document(claim, "")["metadata"]["annotations"]
    assert (shown[key], shown[f"{key}-version"]) == ("17", "v6"), "A-66: another controller's stands"


@pytest.mark.asyncio(loop_scope="function")
async def test_only_what_changed_is_written_again() -> None:
    world = lives.launched()
    claim, state = claim_of(world), world.runtime.state
    api = api_for(claim.name)

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)
        await objects.settle()
        objects.project(state, [claim.name], NOW)
        await objects.settle()
        claim.registered, claim.node = world.now, "n1"
        objects.project(state, [claim.name], NOW)

    await play(api, scene)
    assert [path.rpartition("/")[2] for _, path, _, _ in api.asked] == [claim.name, "status", "status"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_pool_that_is_gone_stays_the_owner() -> None:
    """L-256: the garbage collector takes the object along, unless an apply takes the owner off before."""
    world = lives.launched()
    claim, state = claim_of(world), world.runtime.state
    state.facts.pools["default"] = NodePool("default", claim.node_class, uid="pool-uid")
    api = api_for(claim.name)

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)
        await objects.settle()
        del state.facts.pools["default"]
        claim.labels["team"] = "a"
        objects.project(state, [claim.name], NOW)

    await play(api, scene)
    documents = [body for _, path, _, body in api.asked if path.endswith(claim.name)]
    assert [document["metadata"]["ownerReferences"][0]["uid"] for document in documents] == ["pool-uid", "pool-uid"]


@pytest.mark.asyncio(loop_scope="function")
async def test_what_comes_while_an_object_rests_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new object has no status until then either: its claim is being launched."""
    world = lives.launched()
    claim, state = claim_of(world), world.runtime.state
    api = api_for(claim.name)
    monkeypatch.setattr(module, "MIN_SECONDS_BETWEEN_WRITES", 0.05)

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)
        assert await objects.uid(claim.name) == "uid-1"
        claim.registered, claim.node = world.now, "n1"
        objects.project(state, [claim.name], NOW)
        claim.initialized = world.now
        objects.project(state, [claim.name], NOW)

    await play(api, scene)
    (_, _, _, _), (_, path, _, written) = api.asked
    assert path.endswith("/status")
    true = {condition["type"] for condition in written["status"]["conditions"] if condition["status"] == "True"}
    assert {"Launched", "Registered", "Initialized"} <= true


@pytest.mark.asyncio(loop_scope="function")
async def test_a_claim_that_is_over_takes_its_object_along_once_the_finalizer_is_off() -> None:
    """A claim that is over takes its object along once the finalizer is off (L-192)."""
    world = lives.launched()
    api = api_for("over")

    async def scene(objects: ClaimObjects) -> None:
        objects.project(world.runtime.state, ["over"], NOW)

    await play(api, scene)
    assert [(method, body) for method, _, _, body in api.asked] == [
        ("PATCH", {"metadata": {"finalizers": None}}),
        ("DELETE", None),
    ]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_refused_write_is_tried_again_and_stops_nothing_else() -> None:
    world = lives.launched()
    claim = claim_of(world)
    api = api_for(claim.name)
    api.answers[f"PATCH {PATH}/{claim.name}"] = [
        (500, {"message": "later"}),
        (409, {"message": "conflict"}),
        (200, CREATED),
    ]

    async def scene(objects: ClaimObjects) -> None:
        objects.project(world.runtime.state, [claim.name, "over"], NOW)
        assert await objects.uid(claim.name) == "uid-1"

    api.answers[f"PATCH {PATH}/over"] = [(404, {})]
    await play(api, scene)
    assert sum(path.endswith(claim.name) for _, path, _, _ in api.asked) == 3


@pytest.mark.asyncio(loop_scope="function")
async def test_a_new_process_writes_only_objects_that_lag_behind() -> None:
    world = lives.in_service()
    claim, state = claim_of(world), world.runtime.state
    api = api_for(claim.name)
    shown: list[NodeClaimObject] = []

    async def write(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)

    await play(api, write)
    (_, _, _, document), (_, _, _, status) = api.asked
    read = decode_object({**document, "status": status["status"]}).object
    assert isinstance(read, NodeClaimObject)
    shown.append(read)

    async def compare(objects: ClaimObjects) -> None:
        assert not objects.shows(claim, state, NOW)
        objects.seen(shown[0])
        assert objects.shows(claim, state, NOW)
        claim.node = "other"
        assert not objects.shows(claim, state, NOW)

    await play(FakeApi(), compare)


@pytest.mark.asyncio(loop_scope="function")
async def test_l454_who_waits_for_an_object_that_is_not_to_be_made_after_all_is_told_so() -> None:
    """A launch failed before its object was written: the Events behind this one would wait for nothing."""
    state, api = lives.in_service().runtime.state, FakeApi()
    api.answers[f"PATCH {PATH}/over"] = [(404, {})]

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, ["over"], NOW)
        async with asyncio.timeout(2):
            assert await objects.uid("over") == ""

    await play(api, scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_who_asks_for_an_object_that_nobody_wants_gets_no_uid() -> None:
    async def scene(objects: ClaimObjects) -> None:
        assert await objects.uid("nobody") == ""

    await play(FakeApi(), scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_l67_conditions_say_which_generation_they_are_about() -> None:
    """The deletion of an object counts as a change of it."""
    world = lives.in_service()
    claim, state = claim_of(world), world.runtime.state
    api = api_for(claim.name)
    seen = b'{"metadata": {"uid": "uid-1", "generation": 2}}'

    async def scene(objects: ClaimObjects) -> None:
        objects.project(state, [claim.name], NOW)
        await objects.settle()
        objects.generation_seen(claim.name, Raw(seen))
        objects.project(state, [claim.name], NOW)

    await play(api, scene)
    statuses = [body["status"]["conditions"] for _, path, _, body in api.asked if path.endswith("/status")]
    assert [{condition["observedGeneration"] for condition in conditions} for conditions in statuses] == [{1}, {2}]
