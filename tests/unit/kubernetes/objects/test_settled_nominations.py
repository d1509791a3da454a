"""KEP-5278: a Node that joins is kept from its pods until kube-scheduler leaves their nominations alone."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.pod_nominations import (
    MAX_SECONDS_TO_SETTLE,
    SECONDS_TO_SETTLE,
    Nominations,
)
from kerf.adapters.kubernetes.session import Answer
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.observations import Observation
from tests.support import lives


class PatchLog:
    """In the place of a session: the paths that are asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def request(self, method: str, path: str, **rest: object) -> Answer:
        self.paths.append(path)
        return Answer(200, b"{}")


class Joining:
    """A launched node whose pods were told it, beside a pod unlike them."""

    def __init__(self) -> None:
        self.world = lives.launched()
        shape = PodShape(requests={"cpu": 10})
        other = Pod("uid-other", "default", "other", content(shape)[0], unschedulable=True)
        self.world.see(Observation(other, {content(shape)[0]: shape}))
        self.log = PatchLog()
        self.nominations = Nominations(self.log, lambda claim: claim.instance)  # type: ignore[arg-type]
        self.nominations.project(self.world.runtime.state)

    def show(self, node: str) -> None:
        """The watch shows what the pods are nominated for."""
        pods = self.world.pods
        self.world.see(*(Observation(replace(pods[name], nominated=node)) for name in lives.PODS))
        self.nominations.project(self.world.runtime.state)

    async def seconds_to_settle(self, node: str) -> float:
        began = asyncio.get_running_loop().time()
        await self.nominations.settled(node)
        return asyncio.get_running_loop().time() - began


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_that_no_pod_was_told_does_not_wait() -> None:
    assert await Joining().seconds_to_settle("another") == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_waits_a_moment_in_which_no_nomination_is_cleared() -> None:
    joining = Joining()
    joining.show("i-1")
    assert await joining.seconds_to_settle("i-1") == pytest.approx(SECONDS_TO_SETTLE)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_waits_again_after_nominations_are_cleared_and_its_pods_are_told_once_more() -> None:
    joining = Joining()
    joining.show("i-1")
    asyncio.get_running_loop().call_later(SECONDS_TO_SETTLE / 2, joining.show, "")
    assert await joining.seconds_to_settle("i-1") == pytest.approx(2 * SECONDS_TO_SETTLE)
    await joining.nominations.written("i-1")
    assert len(joining.log.paths) == len(lives.PODS), "the pods were told once"
    joining.nominations.project(joining.world.runtime.state, opening="i-1")
    await joining.nominations.written("i-1")
    assert len(joining.log.paths) == 2 * len(lives.PODS)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_is_not_kept_closed_for_long_by_a_scheduler_that_goes_on_clearing() -> None:
    joining = Joining()

    async def go_on() -> None:
        while True:
            for node in ("i-1", ""):
                joining.show(node)
                joining.nominations.project(joining.world.runtime.state, opening="i-1")
            await asyncio.sleep(SECONDS_TO_SETTLE / 3)

    clearing = asyncio.create_task(go_on())
    seconds = await joining.seconds_to_settle("i-1")
    clearing.cancel()
    assert MAX_SECONDS_TO_SETTLE <= seconds < MAX_SECONDS_TO_SETTLE + SECONDS_TO_SETTLE
