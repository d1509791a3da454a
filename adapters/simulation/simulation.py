"""One simulated world: clock, cluster, cloud and queue, wired together, and the input that was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cloud.cloud import VirtualCloud
from kerf.adapters.simulation.cloud.interruption_queue import InterruptionQueue
from kerf.adapters.simulation.cloud.market import Market
from kerf.adapters.simulation.cluster.cluster import VirtualCluster
from kerf.adapters.simulation.cluster.watch import Watch
from kerf.adapters.simulation.cluster.writes import FaultyWrites
from kerf.adapters.simulation.controller_host import ControllerHost
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.errors import KerfError
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.manifests.violations import ManifestError, Violation
from kerf.engine.model.mistyped import Known, values_of
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import InputRefused, Observation
from kerf.engine.runtime.ports import Cluster

Check = Callable[[Mapping[str, Any]], Sequence[Violation]]
"""Says what is wrong with a document before it is applied."""


class Simulation:
    """One world. The same seed and input give the same world, to the byte. Without `resolve`, what an EC2NodeClass
    resolves to is what its own status says. Without `check`, a document is refused for what cannot be decoded alone."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        clock: Clock,
        seed: int = 0,
        timing: Timing | None = None,
        faults: FaultPlan | None = None,
        catalogue_of: Callable[[Struct], Catalogue] | None = None,
        resolve: Callable[[EC2NodeClass], EC2NodeClass] | None = None,
        settings: Settings | None = None,
        known: Known | None = None,
        check: Check | None = None,
    ) -> None:
        self.settings = settings if settings is not None else Settings()
        self.resolve, self.check = resolve, check
        self.known: Known = known if known is not None else values_of(catalogue)  # of labels
        self.timing = timing if timing is not None else Timing()
        self.faults = faults if faults is not None else FaultPlan()
        self.clock = clock
        self.start = clock.now
        self.rng = SeededRandom(seed)
        self.cluster = VirtualCluster(clock, self.rng, self.timing, self.faults, self.settings)
        self.writes: Cluster = FaultyWrites(self.cluster, self.rng, clock, self.faults)
        self.queue = InterruptionQueue(clock, self.rng, self.faults)
        self.cloud = VirtualCloud(
            Market(catalogue),
            self.queue,
            clock,
            self.rng,
            self.timing,
            self.faults,
            boots=self.cluster.boot,
            ends=self.cluster.instance_ended,
            catalogue_of=catalogue_of,
        )
        self.launch_answers: Iterator[int] = iter(())
        """How long the cloud takes to answer the next launches (ms). Without, chance decides."""
        self.host = ControllerHost(clock, lambda: self.cluster.api.date)
        self.watch = Watch(self.cluster, clock, self.rng, self.timing.watch, self.faults)
        self.actions: list[tuple[str, int]] = []  # of Timelines: whose, and when (ms after the start)
        self._notes: list[tuple[str, Reason]] = []
        self._ignored: list[str] = []
        self._refused: list[Observation] = []

    def note(self, item: str, note: Reason) -> None:
        """Note something that was accepted and that its author should know about."""
        self._notes.append((item, note))

    def ignore(self, item: str) -> None:
        """Note an object that a simulation does not need."""
        self._ignored.append(item)

    @property
    def notes(self) -> list[tuple[str, Reason]]:
        """Return the notes as (object, reason), with one for all ignored objects."""
        if not self._ignored:
            return list(self._notes)
        first, *more = self._ignored
        return [*self._notes, (f"{first} and {len(more)} more" if more else first, Reason("not-simulated"))]

    def refuse(self, error: KerfError, *, source: str, item: str, field: str = "") -> None:
        """Refuse bad input. It is recorded with the next turn and stops nothing else. Violations of a manifest are
        recorded one by one."""
        if isinstance(error, ManifestError):
            found = [(v.code, v.path, v.message, v.hint) for v in error.violations]
        else:
            found = [(error.code, field or error.where, error.message, error.hint)]
        for code, path, message, hint in found:
            said = f"{message}. {hint}" if hint else message
            refused = InputRefused(code=code, source=source, object=item, field=path, message=said)
            self._refused.append(Observation(refused))

    @property
    def refused(self) -> list[InputRefused]:
        """Return what was refused and is not handed out yet."""
        return [observation.payload for observation in self._refused if isinstance(observation.payload, InputRefused)]

    def drain_observations(self) -> list[Observation]:
        """Return all observations that come through no watch and that the driver has not been given yet."""
        refused, self._refused = self._refused, []
        return refused + self.cloud.observe()
