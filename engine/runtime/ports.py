"""What the engine asks of the cluster and the cloud, as Protocols that adapters implement.

The store's Protocol is kerf.engine.record.store.

All calls are synchronous; a driver decides where they run (virtual time, threads). A call that fails raises a
`KerfError`; an answer that a decision will rest on comes back as an observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import EffectAnswered, InstanceSeen, LaunchAnswered, Observation, TaggedInstance


class Cloud(Protocol):
    """Launches and ends instances. `token` is the idempotency key of the effect, `intent` its "position.index"."""

    def observe(self) -> list[Observation]:
        """NodeClasses (resolved, with their readiness) and catalogues as they are now."""
        ...

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """One instance for one claim, tagged `karpenter.sh/nodeclaim`. The same token never starts a second one.

        An order that names `user_data` is not sent if the NodeClass has other user data now
        (kerf.engine.runtime.carry_out.user_data_changed)."""
        ...

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        """The instance that an earlier launch of this claim started, looked up by its tag; None if there is none."""
        ...

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        """Begin to end an instance. One that is already gone is a success."""
        ...

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        """The state of each; "gone" for those the cloud no longer knows. With what they run as, if the cloud says
        so (A-331)."""
        ...

    def listing(self) -> list[TaggedInstance] | None:
        """All instances tagged as this cluster's that have not begun to end (A-327); None where nothing is swept
        (L-238)."""
        ...


class Interruptions(Protocol):
    def poll(self) -> list[Observation]:
        """Messages since the last call, as `InterruptionSeen` or (garbage) `InputRefused`. They stay in the queue
        until `acknowledge`, so that none is lost when the append fails."""
        ...

    def acknowledge(self) -> None:
        """The last polled messages are recorded: delete them from the queue."""
        ...


class Cluster(Protocol):
    """Writes to the Kubernetes API. Reads arrive as observations from the watch."""

    def register(self, order: RegisterNode, *, intent: str) -> EffectAnswered: ...
    def initialize(self, order: InitializeNode, *, intent: str) -> EffectAnswered: ...
    def taint(self, order: TaintNode, *, intent: str) -> EffectAnswered: ...
    def untaint(self, order: UntaintNode, *, intent: str) -> EffectAnswered: ...
    def evict(self, order: EvictPod, *, intent: str) -> EffectAnswered: ...
    def delete_pod(self, order: DeletePod, *, intent: str) -> EffectAnswered: ...
    def delete_node(self, order: DeleteNode, *, intent: str) -> EffectAnswered: ...
