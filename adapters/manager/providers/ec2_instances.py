"""What kerf does for EC2 instances besides their claims: it sets the tag Name (A-323), checks their health (A-351), and
learns how much memory their Nodes have (A-170)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor

from kerf.adapters.aws.catalogue.node_memory import JoinedNode
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.told_once import ToldOnce
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.observations import InputRefused, InterruptionSeen, Observation

NAME_EVERY = 5.0  # seconds between looks for Nodes that have joined
NAMED_AT_ONCE = 100  # instances: one look at all of them, then one call for each tag
LOOK_AFTER, LOOK_EVERY = 10.0, 60.0  # from the start, when claims have been adopted; and from then on
REFUSED = "UnauthorizedOperation"


class InstanceMaintenance:
    """`name`, `measure` and `look` run until cancelled. What EC2 refuses is reported once for as long as it lasts. So
    is a defect that an answer of EC2 shows: it ends neither them nor the provider."""

    def __init__(self, cloud: AwsCloud, pool: Executor) -> None:
        self._cloud, self._pool = cloud, pool
        self._named: set[str] = set()
        self._unwell: set[tuple[str, str]] = set()

    async def name(self, host: ProviderHost) -> None:
        loop, told, against = asyncio.get_running_loop(), ToldOnce(), set[str]()
        while True:
            await asyncio.sleep(NAME_EVERY)
            joined = {instance: node for instance, node in (await host.instances()).items() if node}
            self._named &= joined.keys()
            waiting = sorted(joined.keys() - self._named, key=lambda instance: (instance in against, instance))
            unnamed = {instance: joined[instance] for instance in waiting[:NAMED_AT_ONCE]}
            if not unnamed:
                continue
            try:
                found = await loop.run_in_executor(self._pool, self._cloud.name, unnamed)
                self._named |= unnamed.keys() - found.keys()
                against = (against | found.keys()) - self._named
                refused: list[KerfError] = [*found.values()]
            except Exception as error:  # a defect must not end the provider, which would end the controller
                refused = [fault_of(error, "names of instances")]
            self._report(host, told.news(refused))
            if refused:
                await asyncio.sleep(LOOK_EVERY)

    async def measure(self, host: ProviderHost) -> None:
        """Tell the cloud how much memory Nodes have, whenever Nodes of another type, image or size have registered."""
        known, told = set[JoinedNode](), ToldOnce()
        while True:
            await asyncio.sleep(NAME_EVERY)
            joined = {
                JoinedNode(claim.instance_type, claim.image, node.capacity["memory"])
                for claim, node in await host.joined()
                if claim.image and node.capacity.get("memory")
            }
            try:
                if joined - known:
                    await asyncio.get_running_loop().run_in_executor(self._pool, self._cloud.learn, joined)
            except Exception as error:
                self._report(host, told.news([fault_of(error, "memory of nodes")]))
            known = joined

    async def look(self, host: ProviderHost) -> None:
        """Check the health of instances, and whether their capacity blocks are about to end (A-375). Where EC2 denies
        status checks, they are not tried again before the next start (A-351)."""
        loop, told = asyncio.get_running_loop(), ToldOnce()
        questions, found = [self._cloud.unhealthy, self._cloud.in_ending_blocks], dict[object, list[tuple[str, str]]]()
        await asyncio.sleep(LOOK_AFTER)
        while True:
            refused = list[KerfError]()
            for question in tuple(questions):
                try:
                    found[question] = await loop.run_in_executor(self._pool, question)
                except Exception as error:
                    refused.append(fault_of(error, "health of instances"))
                    denied = isinstance(error, AwsError) and error.aws_code == REFUSED
                    if denied and question == self._cloud.unhealthy:
                        questions.remove(question)
            self._report(host, told.news(refused))
            await self._tell(host, {problem for problems in found.values() for problem in problems})
            await asyncio.sleep(LOOK_EVERY)

    async def _tell(self, host: ProviderHost, unhealthy: set[tuple[str, str]]) -> None:
        """Record each problem of kerf's instances once for as long as EC2 reports it (A-353)."""
        own = await host.instances()
        unhealthy = {problem for problem in unhealthy if problem[0] in own}
        news = [
            Observation(InterruptionSeen(f"status/{instance}/{kind}", kind, instance))
            for instance, kind in sorted(unhealthy - self._unwell, key=lambda each: (each[1] == "event_status", each))
        ]
        self._unwell = unhealthy
        if news:
            host.put(news)

    def _report(self, host: ProviderHost, refused: Iterable[KerfError]) -> None:
        news = [Observation(InputRefused(error.code, "aws", "instances", message=str(error))) for error in refused]
        if news:
            host.put(news)
