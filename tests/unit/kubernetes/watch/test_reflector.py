"""Lists and watches on raw bytes: what is told, and what a broken object, a broken watch or a gap does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from kerf.adapters.kubernetes.watch import reflector as module
from kerf.adapters.kubernetes.watch.reflector import Reflector
from kerf.adapters.kubernetes.watch.watched_kinds import PODS, Resource, observed
from kerf.engine.model.kubernetes.devices import DeviceClass
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import InputRefused, ObjectGone, Observation, WatchGap
from tests.support.servers.fake_kubernetes import GONE, FakeApi, bookmark, pod, serving

pytestmark = pytest.mark.real_time


class Told:
    """What a reflector has told, and waiting for it."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self._news = asyncio.Event()

    def __call__(self, observations: list[Observation]) -> None:
        self.observations += observations
        self._news.set()

    async def until(self, count: int) -> list[Struct]:
        async with asyncio.timeout(5):
            while len(self.observations) < count:
                self._news.clear()
                await self._news.wait()
        return [observation.payload for observation in self.observations]


Scene = Callable[[FakeApi, Told, Reflector], Awaitable[None]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(module, "MIN_WATCH_SECONDS", 0.0)


async def play(
    scene: Scene, *, known: dict[str, Struct] | None = None, api: FakeApi, resource: Resource = PODS
) -> Told:
    told = Told()
    async with serving(api) as session:
        reflector = Reflector(session, resource, told, known=known)
        running = asyncio.create_task(reflector.run())
        try:
            await scene(api, told, reflector)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            for watch in api.watches:
                watch.put_nowait(None)
    return told


def names(payloads: list[Struct]) -> list[str]:
    return [payload.name if isinstance(payload, Pod) else type(payload).__name__ for payload in payloads]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_list_is_read_page_by_page_and_the_watch_goes_on_from_its_version() -> None:
    api = FakeApi()
    api.listing(pod("a"), pod("b"), version="100", more="next")
    api.listing(pod("c"), version="100")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        assert names(await told.until(3)) == ["a", "b", "c"]
        assert reflector.synced
        api.tell("ADDED", pod("d", version="101"))
        api.tell("MODIFIED", pod("a", version="102", phase="Running"))
        api.tell("DELETED", pod("b", version="103"))
        payloads = await told.until(6)
        assert names(payloads[3:5]) == ["d", "a"]
        assert payloads[5] == ObjectGone("pod", "uid-b")

    await play(scene, api=api)
    assert [query.get("continue") for query in api.lists()] == [None, "next"]
    assert api.watched_from() == ["100"]
    assert all(headers["Authorization"] == "Bearer secret" for headers in api.headers)


@pytest.mark.asyncio(loop_scope="function")
async def test_what_scheduling_does_not_look_at_is_not_told() -> None:
    """No environment variables, commands or secrets get into the record; an event that changes nothing is none."""
    api = FakeApi()
    api.listing(pod("a"))

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(1)
        same = pod("a", version="101", podIP="10.0.0.1", message="pulled")
        api.tell("MODIFIED", same)
        api.tell("ADDED", pod("b", version="102"))
        assert names(await told.until(2)) == ["a", "b"]

    told = await play(scene, api=api)
    assert b"hush" not in msgspec.msgpack.encode([(o.payload, o.blobs) for o in told.observations])


REFUSED: dict[str, Any] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_waiting_pod_keeps_its_arrival() -> None:
    """Its later versions tell when it changed, not when it came."""
    api = FakeApi()
    api.listing()

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await reflector.listed.wait()
        while not api.watches:
            await asyncio.sleep(0.001)
        for item in (
            pod("a", version="101"), pod("a", version="104", **REFUSED), pod("a", version="107", node="n1"),
        ):  # fmt: skip
            api.tell("MODIFIED", item)
        assert [seen.arrival for seen in await told.until(3) if isinstance(seen, Pod)] == [101, 101, 0]

    await play(scene, api=api)


@pytest.mark.asyncio(loop_scope="function")
async def test_the_arrival_of_a_waiting_pod_outlives_a_restart() -> None:
    known = Pod("uid-a", "default", "a", "", untried=True, arrival=101)
    api = FakeApi()
    api.listing(pod("a", version="104", **REFUSED))

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        assert [seen.arrival for seen in await told.until(1) if isinstance(seen, Pod)] == [101]

    await play(scene, api=api, known={"uid-a": known})


@pytest.mark.asyncio(loop_scope="function")
async def test_one_broken_object_stops_nothing_and_is_told_of_once() -> None:
    broken = pod("broken")
    broken["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]
    api = FakeApi()
    api.listing(pod("a"), broken, pod("b"))

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(3)
        api.tell("MODIFIED", broken)
        api.tell("ADDED", pod("c", version="102"))
        await told.until(4)

    told = await play(scene, api=api)
    refused = [o.payload for o in told.observations if isinstance(o.payload, InputRefused)]
    assert [(r.source, r.object) for r in refused] == [("watch", "Pod/default/broken")]
    assert refused[0].code.startswith("KERF3")
    assert refused[0].field.startswith("spec.containers[0]")
    assert [p.payload.name for p in told.observations if isinstance(p.payload, Pod)] == ["a", "b", "c"]


@pytest.mark.asyncio(loop_scope="function")
async def test_lg14_a_deletion_cost_that_is_no_number_is_told_of_once() -> None:
    """The pod is there, and its cost counts as 0."""
    odd = pod("odd")
    odd["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "much"}
    api = FakeApi()
    api.listing(odd)

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(2)
        api.tell("MODIFIED", odd)
        api.tell("ADDED", pod("b", version="102"))
        await told.until(3)

    told = [observation.payload for observation in (await play(scene, api=api)).observations]
    assert [(p.name, p.deletion_cost) for p in told if isinstance(p, Pod)] == [("odd", 0), ("b", 0)]
    (refused,) = [p for p in told if isinstance(p, InputRefused)]
    field = "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"
    assert (refused.object, refused.field, refused.message) == ("Pod/default/odd", field, "'much' counts as 0")


@pytest.mark.asyncio(loop_scope="function")
async def test_lines_that_come_in_pieces_are_put_together_and_garbage_is_refused() -> None:
    api = FakeApi()
    api.listing()
    whole = json.dumps({"type": "ADDED", "object": pod("a", version="101")}).encode() + b"\n"

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await reflector.listed.wait()
        for piece in (whole[:20], whole[20:90], whole[90:] + b"{not a frame}\n"):
            api.watches[-1].put_nowait(piece)
            await asyncio.sleep(0.01)
        api.tell("ADDED", pod("b", version="102"))
        await told.until(3)

    told = await play(scene, api=api)
    assert sorted(names([o.payload for o in told.observations])) == ["InputRefused", "a", "b"]


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("how", ["frame", "status"])
async def test_after_a_410_everything_is_listed_and_the_difference_told_behind_the_gap(how: str) -> None:
    api = FakeApi()
    api.listing(pod("stays"), pod("goes"), pod("changes"), version="100")
    api.listing(pod("stays"), pod("changes", phase="Running"), pod("new"), version="900")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(3)
        if how == "status":
            api.refuse_watches.append(410)
        else:
            api.tell("BOOKMARK", bookmark("150"))
            api.tell("ERROR", GONE)
        api.end_watch()
        await told.until(7)
        api.tell("ADDED", pod("later", version="901"))
        await told.until(8)

    told = await play(scene, api=api)
    gap, *difference = [o.payload for o in told.observations[3:]]
    assert gap == WatchGap("pod", since="150" if how == "frame" else "100", until="900", changed=2, gone=1)
    assert names(difference[:2]) == ["changes", "new"]
    assert difference[2] == ObjectGone("pod", "uid-goes")
    assert api.watched_from()[-1] == "900"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_watch_that_breaks_goes_on_from_the_last_version_without_a_gap() -> None:
    api = FakeApi()
    api.listing(pod("a"), version="100")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(1)
        api.tell("ADDED", pod("b", version="120"))
        api.tell("BOOKMARK", bookmark("140"))
        await told.until(2)
        api.refuse_watches += [500, 503]
        api.end_watch()
        api.tell("ADDED", pod("c", version="141"))
        await told.until(3)

    told = await play(scene, api=api)
    assert names([o.payload for o in told.observations]) == ["a", "b", "c"]
    assert len(api.lists()) == 1
    assert api.watched_from() == ["100", "140", "140", "140"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_watch_in_which_nothing_happens_is_no_fault() -> None:
    """/readyz says so again as soon as it is back, not with its first bookmark a minute later."""
    api = FakeApi()
    api.listing(pod("a"))

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(1)
        api.refuse_watches.append(500)
        api.end_watch()
        async with asyncio.timeout(5):
            while reflector.error is None:
                await asyncio.sleep(0)
            while reflector.error is not None:
                await asyncio.sleep(0.001)

    await play(scene, api=api)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_new_process_tells_only_what_differs_from_the_record() -> None:
    """What went while nobody watched is told as gone (design, idea 2)."""
    first = FakeApi()
    first.listing(pod("same"), pod("went"), pod("changed"))

    async def learn(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(3)

    payloads = [o.payload for o in (await play(learn, api=first)).observations]
    known = {payload.uid: payload for payload in payloads if isinstance(payload, Pod)}
    second = FakeApi()
    second.listing(pod("same"), pod("changed", phase="Running"), version="500")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(3)

    gap, changed, gone = [o.payload for o in (await play(scene, known=dict(known), api=second)).observations]
    assert gap == WatchGap("pod", since="", until="500", changed=1, gone=1)
    assert names([changed]) == ["changed"]
    assert gone == ObjectGone("pod", "uid-went")


@pytest.mark.asyncio(loop_scope="function")
async def test_an_object_that_became_unreadable_is_not_taken_for_gone() -> None:
    api = FakeApi()
    api.listing(pod("a"), version="100")
    broken = pod("a", version="200")
    broken["metadata"]["labels"] = ["not", "a", "map"]
    api.listing(broken, version="300")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(1)
        api.tell("ERROR", GONE)
        api.end_watch()
        await told.until(3)

    told = await play(scene, api=api)
    kinds = [type(o.payload) for o in told.observations]
    assert kinds == [Pod, InputRefused, WatchGap]
    gap = told.observations[2].payload
    assert isinstance(gap, WatchGap)
    assert (gap.changed, gap.gone) == (0, 0)


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("how", ["watch", "list"])
async def test_an_object_that_became_unreadable_is_let_go_all_the_same(how: str) -> None:
    """It is told as it was, on its way out: an EC2NodeClass with a value that kerf does not know would keep kerf's
    finalizer for ever."""
    api = FakeApi()
    api.listing(pod("a"), version="100")
    broken = pod("a", version="200")
    broken["metadata"] |= {"labels": ["not", "a", "map"], "deletionTimestamp": "2026-01-01T00:00:01Z"}
    api.listing(broken, version="300")

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        await told.until(1)
        api.tell(*(("MODIFIED", broken) if how == "watch" else ("ERROR", GONE)))
        if how == "list":
            api.end_watch()
        await told.until(3)
        api.tell("MODIFIED", broken)
        api.tell("ADDED", pod("b", version="400"))
        await told.until(len(told.observations) + 1)

    told = await play(scene, api=api)
    payloads = [o.payload for o in told.observations]
    before, going, other = (payload for payload in payloads if isinstance(payload, Pod))
    assert going == msgspec.structs.replace(before, deleting=1_767_225_601_000)
    assert other.name == "b"
    assert sum(isinstance(payload, InputRefused) for payload in payloads) == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_kind_that_is_not_installed_holds_nothing_up() -> None:
    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        async with asyncio.timeout(5):
            await reflector.listed.wait()
            while reflector.error is None:
                await asyncio.sleep(0.01)

    assert (await play(scene, api=FakeApi())).observations == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_kind_that_is_no_longer_served_is_not_taken_for_empty() -> None:
    """An API server that starts answers 404 for custom resources before it knows them: nothing is gone by that."""
    known = {"uid-a": Pod(uid="uid-a", namespace="default", name="a", shape="")}

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        async with asyncio.timeout(5):
            while reflector.error is None:
                await asyncio.sleep(0.01)
        assert not reflector.synced

    assert (await play(scene, known=dict(known), api=FakeApi())).observations == []


@pytest.mark.asyncio(loop_scope="function")
async def test_an_api_server_without_devices_has_none_and_nobody_waits_for_it() -> None:
    resources = observed(Settings(ignore_dra_requests=False))
    classes = next(resource for resource in resources if resource.kind == "deviceclass")
    api = FakeApi()
    api.answers[f"GET {classes.path}"] = [(404, {})] * 3

    async def scene(api: FakeApi, told: Told, reflector: Reflector) -> None:
        assert names(await told.until(1)) == ["ObjectGone"]
        await asyncio.wait_for(reflector.listed.wait(), 5)
        assert reflector.error is None

    told = await play(scene, api=api, resource=classes, known={"gpu": DeviceClass("gpu")})
    assert [observation.payload for observation in told.observations] == [ObjectGone("deviceclass", "gpu")]


def test_s194_devices_are_watched_only_where_somebody_asks_for_them() -> None:
    kinds = {"deviceclass", "resourceclaim", "resourceslice"}
    assert not kinds & {observation.kind for observation in observed(Settings())}
    assert kinds <= {observation.kind for observation in observed(Settings(ignore_dra_requests=False))}
