"""The fold of CapacityBuffers (S-177), and how many of their pods a plan has put on which node (S-182)."""

from __future__ import annotations

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.state.objects.kept import ObjectRules, keeping
from kerf.engine.state.provisioning_window import has_active_buffers
from kerf.engine.state.state import Facts, State


def capacity_buffer_rules(kind: WatchedKind) -> ObjectRules:
    """Kept like others; with the last one goes what is known of buffers' pods."""
    kept = keeping(kind)

    def gone(state: State, key: str, entry: Entry) -> None:
        kept.gone(state, key, entry)
        if not has_active_buffers(state.facts):  # no pass will say so
            state.facts.buffered = {}

    return ObjectRules(kept.seen, gone)


def buffered(facts: Facts, result: ProvisionResult) -> dict[str, int]:
    """How many pods of buffers a plan puts on each claim, or unmanaged node (S-182). Claims that it opens count as
    well, so that no node is empty before the next pass has looked at it."""
    uids = {buffer.uid for buffer in facts.buffers.values()}
    if not uids:
        return {}
    placed = [(placement.claim or placement.node, placement.pods) for placement in result.placements]
    placed += [(claim.name, claim.pods) for claim in result.claims]
    counts = {name: sum(_of_buffer(facts, uid, uids) for uid in pods) for name, pods in placed}
    return {name: count for name, count in counts.items() if count}


def _of_buffer(facts: Facts, uid: str, buffers: set[str]) -> bool:
    return uid not in facts.pods and uid.rpartition("-")[0] in buffers
