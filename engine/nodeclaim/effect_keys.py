"""Which effect an intent is an attempt of: a claim has at most one of each in flight."""

from __future__ import annotations

from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    FindInstance,
    InitializeNode,
    Intent,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)

LAUNCH = "launch"
FIND = "find"
REGISTER = "register"
INITIALIZE = "initialize"
TAINT = "taint"
UNTAINT = "untaint"
TERMINATE = "terminate"
DELETE_NODE = "delete-node"
EVICT = "evict"  # with the pod's uid after a slash, as for the next
DELETE = "delete"

_KEYS: dict[type, str] = {
    LaunchInstance: LAUNCH,
    FindInstance: FIND,
    RegisterNode: REGISTER,
    InitializeNode: INITIALIZE,
    TaintNode: TAINT,
    UntaintNode: UNTAINT,
    TerminateInstance: TERMINATE,
    DeleteNode: DELETE_NODE,
}


def effect_key(intent: Intent) -> str:
    """The name of the effect within its claim; evictions and deletions are told apart by the pod's uid."""
    if isinstance(intent, EvictPod):
        return eviction(intent.uid)
    if isinstance(intent, DeletePod):
        return deletion(intent.uid)
    return _KEYS[type(intent)]


def eviction(uid: str) -> str:
    return f"{EVICT}/{uid}"


def deletion(uid: str) -> str:
    return f"{DELETE}/{uid}"
