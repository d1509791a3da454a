"""The controller on a real API server: watches in, turns of the runtime, effects and NodeClaim objects out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from kerf.adapters.controller.controller import Controller
from kerf.adapters.controller.inbox import Inbox
from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.kubernetes.errors import ClusterError
from kerf.adapters.kubernetes.objects.cluster_writes import KubernetesCluster
from kerf.adapters.kubernetes.objects.field_managers import Writers, are_written_by_people
from kerf.adapters.kubernetes.objects.node_cache import NodeCache
from kerf.adapters.kubernetes.objects.nodeclaims import ClaimObjects
from kerf.adapters.kubernetes.objects.nodepools import PoolObjects, pool_status
from kerf.adapters.kubernetes.objects.pod_nominations import Nominations, supported
from kerf.adapters.kubernetes.objects.proposed_nodes import ProposedNodes
from kerf.adapters.kubernetes.objects.stale_nodeclaims import QUIETED_BY, StaleNodeClaims
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.adapters.kubernetes.watch.reflector import Change, Reflector, as_it_is
from kerf.adapters.kubernetes.watch.watched_kinds import NODECLAIMS, NODEPOOLS, NODES, Resource, observed
from kerf.adapters.manager.providers.provider import Provider
from kerf.adapters.manager.unlisted import report_unlisted
from kerf.engine.disruption.cluster_from_state import NEVER
from kerf.engine.lifecycle.adoption import NODE_DELETED, awaited_instances
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import NodeClaimDeletionSeen, NodeClassSeen, ObjectGone, Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.projections.status.nodeclaim import claim_conditions
from kerf.projections.status.nodepool import nodepool_status

POOLS_EVERY = 1.0  # seconds
POOLS_AGAIN = 5.0  # seconds, after a refusal
QUIET_EVERY = 1.0  # seconds between looks at which claims are Consolidatable, while something happens
SHOWN_ON_POOLS: tuple[type[Struct], ...] = (NodePool, NodeClassSeen, Node, *CLAIM_EVENTS)
Report = Callable[[Sequence[Entry]], None]
ReportQuiet = Callable[[dict[str, bool], int], None]
"""Takes the claims that became Consolidatable, or ceased to be, and the time (ms since the epoch)."""


class KubernetesController:
    """`run` until `stop`. `report` gets each turn's entries. In observe mode nothing is written."""

    def __init__(
        self,
        session: Session,
        runtime: Runtime,
        provider: Provider,
        *,
        report: Report,
        clocks: ProcessClocks,
        nominate: bool = True,
        report_quiet: ReportQuiet | None = None,
    ) -> None:
        self.clocks = clocks
        self._observes = runtime.state.facts.settings.observe
        self._nominate = nominate and not self._observes
        self._session, self.runtime, self._provider, self._report = session, runtime, provider, report
        self._report_quiet = report_quiet
        self._inbox = Inbox()
        self._first: dict[str, list[Observation]] = {}  # by path, until all kinds are listed
        self._live = False
        self._stored = 0  # of what was put into the inbox
        self._turned, self._stopping = asyncio.Event(), asyncio.Event()
        self._claims = ClaimObjects(session, claim_conditions)
        self.claim_uid = self._claims.uid
        self._upkeep = StaleNodeClaims()
        self._quiet_changed = asyncio.Event()
        self._nominations: Nominations | None = None
        self._pools = PoolObjects(session)
        self.shown_on_pool = self._pools.conditions
        self._pools_changed = asyncio.Event()
        self._nodes = NodeCache()
        self._raw = {
            NODES.path: self._nodes.seen,
            NODEPOOLS.path: self._pools.seen,
            NODECLAIMS.path: self._claims.generation_seen,
            provider.node_classes.path: provider.seen,
        }
        self.reflectors = self._reflectors()
        cluster = KubernetesCluster(
            session, Bridge(asyncio.get_running_loop()), self._nodes, self._claims.uid, self._nominated
        )
        self._proposed = ProposedNodes(cluster)
        self.controller = Controller(
            runtime,
            self._inbox,
            cluster=cluster,
            cloud=provider.cloud,
            listener=self._after_turn,
            clocks=clocks,
        )

    @property
    def ready(self) -> bool:
        """Whether kerf sees the cluster and may act."""
        return self._live and self.controller.ready

    async def run(self) -> None:
        """Raises what ends the controller (see Controller.run)."""
        watching: list[asyncio.Task[Any]] = [
            asyncio.create_task(reflector.run(), name=f"watch {reflector.resource.path}")
            for reflector in self.reflectors
        ]
        try:
            if not await self._started(watching):
                return
            watching.append(asyncio.create_task(self._provider.run(self), name="provider"))
            if not self._observes:
                watching.append(asyncio.create_task(self._keep_pools(), name="status of nodepools"))
                watching.append(asyncio.create_task(self._keep_consolidatable(), name="conditions of nodeclaims"))
            running = asyncio.create_task(self.controller.run(), name="controller")
            await self._unless_one_dies(running, watching)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._claims.settle()
            await self._claims.close()
            await self._proposed.close()
            if self._nominations is not None:
                await self._nominations.close()

    @property
    def forbidden(self) -> list[ClusterError]:
        """The latest writes of kerf's own objects that the API server refused for missing rights."""
        refused = [self._claims.error, *self._pools.errors.values()]
        return [error for error in refused if isinstance(error, ClusterError) and error.forbidden]

    def observe(self, observations: Iterable[Observation]) -> None:
        """Record observations that come neither from the cluster nor from the cloud, with the next turn."""
        self._inbox.put(observations)
        self._inbox.wake()

    def wake(self) -> None:
        """Let the controller look whether there is something to do."""
        self._inbox.wake()

    def stop(self) -> None:
        self._stopping.set()
        self.controller.stop()

    async def _started(self, watching: list[asyncio.Task[Any]]) -> bool:
        """Wait until everything is listed and the provider has answered. Returns False when told to stop before."""
        starting = asyncio.create_task(self._start(watching), name="start")
        stopping = asyncio.create_task(self._stopping.wait(), name="stop")
        try:
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            return starting.done()
        finally:
            starting.cancel()
            stopping.cancel()

    async def _start(self, watching: list[asyncio.Task[Any]]) -> None:
        await self._synced(watching)
        if self._nominate and await supported(self._session):
            self._nominations = Nominations(self._session, self._provider.node_name)
        self._go_live(await self._provider.first(self))

    async def _unless_one_dies(self, running: asyncio.Task[None], watching: list[asyncio.Task[Any]]) -> None:
        """Wait for the controller. A watch never ends by itself: one that does has a defect, and the controller is
        stopped, because kerf must not act on what it no longer sees."""
        done, _ = await asyncio.wait([running, *watching], return_when=asyncio.FIRST_COMPLETED)
        if running not in done:
            self.controller.stop()
        await running
        for task in done:
            task.result()

    async def _synced(self, watching: list[asyncio.Task[Any]]) -> None:
        reporting = asyncio.create_task(report_unlisted(self._unlisted), name="report what is not listed")
        try:
            for reflector in self.reflectors:
                listed: asyncio.Task[Any] = asyncio.create_task(reflector.listed.wait())
                done, _ = await asyncio.wait([listed, *watching], return_when=asyncio.FIRST_COMPLETED)
                listed.cancel()
                for task in done:
                    task.result()
        finally:
            reporting.cancel()

    def _unlisted(self) -> list[str]:
        return [reflector.resource.path for reflector in self.reflectors if not reflector.listed.is_set()]

    def _go_live(self, node_classes: list[Observation]) -> None:
        """Put the first lists into the inbox together, kinds in a fixed order: a pod is seen after the node that it is
        on."""
        for reflector in self.reflectors:
            self._inbox.put(self._first.pop(reflector.resource.path, []))
        self._inbox.put(node_classes)
        self._live = True
        facts = self.runtime.state.facts
        if self._observes:
            gone = sorted({*facts.found, *facts.claims}.difference(self._claims.known()))
            self._inbox.put(Observation(ObjectGone(NODECLAIMS.kind, name)) for name in gone)
            self._inbox.wake()
            return
        over = [name for name in self._claims.known() if name not in facts.claims and _was(name, facts.streams)]
        state, now = self.runtime.state, self.clocks.now()
        behind = [name for name, claim in facts.claims.items() if not self._claims.shows(claim, state, now)]
        self._claims.project(state, [*behind, *over], now)
        self._inbox.wake()

    # ── watches ─────────────────────────────────────────────────────────────────────────────────────────────

    def _reflectors(self) -> list[Reflector]:
        interpret = {
            NODES.path: self._node_changed,
            NODECLAIMS.path: self._claim_changed,
            self._provider.node_classes.path: self._node_class_changed,
        }
        kinds = [self._provider.node_classes, *observed(self.runtime.state.facts.settings), NODECLAIMS]
        return [self._reflector(kind, interpret.get(kind.path, as_it_is)) for kind in kinds]

    def _reflector(self, resource: Resource, interpret: Callable[[Change], list[Observation]]) -> Reflector:
        def tell(observations: list[Observation]) -> None:
            if self._live:
                self._inbox.put(observations)
            else:
                self._first.setdefault(resource.path, []).extend(observations)

        known, raw = resource.known(self.runtime.state.facts), self._raw.get(resource.path)
        if not are_written_by_people(resource.kind):
            return Reflector(self._session, resource, tell, known=known, interpret=interpret, raw=raw)
        writers = Writers(resource.kind, raw, interpret)
        reflector = Reflector(self._session, resource, tell, known=known, interpret=writers.changed, raw=writers.seen)
        writers.listed = reflector.listed.is_set
        return reflector

    def _node_changed(self, change: Change) -> list[Observation]:
        """The observations of a changed Node. Deleting a Node deletes its NodeClaim (L-193)."""
        seen = as_it_is(change)
        new, old = change.new, change.old
        if isinstance(new, Node) and new.deleting and not (isinstance(old, Node) and old.deleting):
            claim = self.runtime.state.indexes.claim_by_node.get(new.name, "")
            seen += self._deletion(claim, NODE_DELETED)
        return seen

    def _claim_changed(self, change: Change) -> list[Observation]:
        """The observations of a changed NodeClaim object. The objects are kerf's own: what matters is that somebody
        deletes one, or made one."""
        new, facts = change.new, self.runtime.state.facts
        if isinstance(new, NodeClaimObject):
            self._claims.seen(new)
            return [Observation(new)] if self.runtime.is_news(new) else []
        self._claims.gone(change.key)
        known = change.key in facts.claims or change.key in facts.found
        return [Observation(ObjectGone(NODECLAIMS.kind, change.key))] if known else []

    def _is_ours(self, pool: NodePool) -> bool:
        """Whether a NodePool's NodeClass is of this provider's kind (L-48)."""
        group, _, rest = self._provider.node_classes.api.partition("/")
        return (pool.node_class.group, pool.node_class.kind) == (group, rest.rpartition("/")[2])

    def _deletion(self, claim: str, actor: str) -> list[Observation]:
        known = self.runtime.state.facts.claims.get(claim)
        if known is None or known.state in GOING or self._observes:
            return []
        return [Observation(NodeClaimDeletionSeen(claim, actor))]

    def _node_class_changed(self, change: Change) -> list[Observation]:
        if change.new is None:
            self._provider.drop(change.key)
            group, _, rest = self._provider.node_classes.api.partition("/")
            return [Observation(ObjectGone("nodeclass", f"{group}/{rest.rpartition('/')[2]}/{change.key}"))]
        self._provider.put(change.new)
        return self._provider.changed() if self._live else []

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────────────

    def _after_turn(self, runtime: Runtime, entries: Sequence[Entry]) -> None:
        if runtime.ready:
            self._stored = self._inbox.taken_out
            self._turned.set()
        if self._live and not self._observes:
            shown = {**runtime.moved(), **dict.fromkeys(self._upkeep.touched(entries, runtime.state))}
            self._claims.project(runtime.state, shown, self.clocks.now())
            self._proposed.project(runtime.state)
            if self._nominations is not None:
                self._nominations.project(runtime.state)
        if any(isinstance(entry.payload, SHOWN_ON_POOLS) for entry in entries):
            self._pools_changed.set()
        if any(isinstance(entry.payload, QUIETED_BY) for entry in entries):
            self._quiet_changed.set()
        self._report(entries)

    async def _keep_consolidatable(self) -> None:
        """Show the condition Consolidatable when it becomes true (D-55), which no event says."""
        while True:
            async with self.controller.between_turns:
                state, now = self.runtime.state, self.clocks.now()
                changed, due = self._upkeep.consolidatable(state, now)
                self._claims.project(state, changed, now)
                if self._report_quiet is not None:
                    self._report_quiet(self._upkeep.turned, now)
            with suppress(TimeoutError):
                async with asyncio.timeout((due - now) / 1000 if due != NEVER else None):
                    await self._quiet_changed.wait()
            self._quiet_changed.clear()
            await asyncio.sleep(QUIET_EVERY)

    async def _nominated(self, node: str) -> None:
        """Waits until it is a Node's turn to open, and its pods have been told it, and stay so."""
        nominations = self._nominations
        if nominations is None:
            return
        async with self.controller.between_turns:
            turn = nominations.turn(self.runtime.state, node)
        async with turn:
            await nominations.settled(node)
            async with self.controller.between_turns:
                nominations.project(self.runtime.state, opening=node)
            await nominations.written(node)

    # ── for the provider (provider.ProviderHost) ──────────────────────────────────────────────────────────────────

    def put(self, observations: Iterable[Observation]) -> None:
        self._inbox.put(observations)

    async def record(self, observations: Iterable[Observation]) -> None:
        self._inbox.put(observations)
        last = self._inbox.put_in
        while self._stored < last:
            self._turned.clear()
            await self._turned.wait()

    async def instances(self) -> dict[str, str]:
        async with self.controller.between_turns:
            claims = list(self.runtime.state.facts.claims.values())
        return {claim.instance: claim.node for claim in claims if claim.instance and claim.state not in GOING}

    async def own(self, instances: Iterable[str]) -> set[str]:
        async with self.controller.between_turns:
            return self.runtime.state.indexes.claim_by_instance.keys() & set(instances)

    async def awaited(self, instances: Iterable[str]) -> set[str]:
        async with self.controller.between_turns:
            return awaited_instances(self.runtime.state) & set(instances)

    async def joined(self) -> list[tuple[NodeClaim, Node]]:
        async with self.controller.between_turns:
            facts = self.runtime.state.facts
            pairs = [(claim, facts.nodes.get(claim.node)) for claim in facts.claims.values() if claim.registered]
        return [(claim, node) for claim, node in pairs if node is not None]

    async def node_pools(self, group: str) -> list[NodePool]:
        listed = next(each for each in self.reflectors if each.resource.path == NODEPOOLS.path)
        pools = (pool for pool in listed.objects if isinstance(pool, NodePool))  # the first turn has not been yet
        return [pool for pool in pools if pool.node_class.group == group]

    async def claims_of(self, group: str, node_class: str) -> list[str]:
        async with self.controller.between_turns:
            facts = self.runtime.state.facts
            named = {name: claim.node_class for name, claim in facts.claims.items()}
            named |= {name: found.claim.node_class for name, found in facts.found.items()}
        return sorted(name for name, ref in named.items() if (ref.group, ref.name) == (group, node_class))

    async def _keep_pools(self) -> None:
        """Write the status of NodePools as often as it changes, at most once a second."""
        while True:
            await self._pools_changed.wait()
            self._pools_changed.clear()
            async with self.controller.between_turns:
                state = self.runtime.state
                ours = sorted(name for name, pool in state.facts.pools.items() if self._is_ours(pool))
                statuses = [nodepool_status(state, name, self._pools.conditions(name)) for name in ours]
            for pool in statuses:
                generations = pool.node_class_generation, pool.generation
                status = pool_status(pool.conditions, pool.resources, pool.nodes, *generations)
                await self._pools.write(pool.name, pool.annotations, status)
            await asyncio.sleep(POOLS_AGAIN if self._pools.errors else POOLS_EVERY)
            if self._pools.errors:
                self._pools_changed.set()


def _was(claim: str, streams: Mapping[str, int]) -> bool:
    return f"nodeclaim/{claim}" in streams
