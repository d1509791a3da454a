"""Snapshots of the fold, and the state's digest. Only a cache: a snapshot of another schema is not used."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import msgspec

from kerf.engine.model.kubernetes.pods import is_terminal
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.moves import index_moves
from kerf.engine.state.nodeclaims.events import index_claim
from kerf.engine.state.nodeclaims.messages import index_messages
from kerf.engine.state.objects.devices import index_devices
from kerf.engine.state.objects.nodes import index_repair
from kerf.engine.state.objects.static_nodepools import look_at_all_pools
from kerf.engine.state.objects.volumes import index_attachments
from kerf.engine.state.pods.bursts import is_planned
from kerf.engine.state.pods.nominations import waits, waits_untried
from kerf.engine.state.state import Facts, State

_encoder = msgspec.msgpack.Encoder(order="deterministic")

MEANING = 4
"""Raise it when the fold gives the same fields another meaning."""
SCHEMA = "e352a2bb4871ba95"
"""A digest of the facts' shape and MEANING: it changes with each stored field. It is written down, since to work it out
takes a tenth of a command's start; tests/unit/state/test_base.py says what it has to be."""


@cache
def _decoder() -> msgspec.msgpack.Decoder[Facts]:
    """Reads facts. To make it takes a fifteenth of a command's start, and not every command has a snapshot."""
    return msgspec.msgpack.Decoder(Facts)


def encode(state: State) -> tuple[bytes, str]:
    """The snapshot's bytes and the state digest (32 hex digits): equal states have equal bytes."""
    data = _encoder.encode(state.facts)
    return data, blake2b(data, digest_size=16).hexdigest()


def digest(state: State) -> str:
    return encode(state)[1]


def decode(data: bytes, blobs: Blobs) -> State:
    """The state of a snapshot, with its indexes built again. Raises msgspec.DecodeError on foreign bytes."""
    state = State(_decoder().decode(data), blobs)
    rebuild(state)
    return state


def rebuild(state: State) -> None:
    """Builds every index from the facts."""
    facts, indexes = state.facts, state.indexes
    indexes.rest = frozenset(facts.rest)
    for node in facts.nodes.values():
        if node.provider_id:
            indexes.nodes_by_provider.setdefault(node.provider_id, {})[node.name] = None
        if node.deleting:
            indexes.deleted_nodes[node.name] = None
    for claim in facts.claims.values():
        index_claim(state, claim)
        index_repair(state, claim)
        indexes.touched[claim.name] = facts.position
        if claim.state in GOING:
            indexes.going[claim.name] = None
    look_at_all_pools(state)
    for pod in facts.pods.values():
        if pod.node:
            if not is_terminal(pod):
                indexes.pods_by_node.setdefault(pod.node, {})[pod.uid] = None
        elif waits(facts, pod) or (pod.untried and is_planned(state, pod.uid) and waits_untried(facts, pod)):
            indexes.pending[pod.uid] = None
    index_messages(state)
    index_moves(state)
    index_attachments(state)
    index_devices(state)
    for uid, target in facts.targets.items():
        if target:
            indexes.waiting_for.setdefault(target, {})[uid] = None
