"""What the lifecycle deciders say of a claim, a Node or a static NodePool: the closed list, with its sentences."""

from __future__ import annotations

from kerf.engine.model.reasons import ReasonCode


class LifecycleCode(ReasonCode):
    """The step that was taken, or what is waited for. A launch that fails has the code of the cloud's answer."""

    ADOPT_LAUNCH = (
        "adopt-launch",
        "its object was found without an instance: one with its tag is looked for, else one is launched",
    )
    ADOPT_NOT_MANAGED = "adopt-not-managed", "its object was found; it is of a kind of NodeClass that is not here"
    ADOPT_WAITING = (
        "adopt-waiting",
        "its object was found; its Node or the instance types of its NodeClass are not known yet",
    )
    ADOPTED = "adopted", "its object was found without a record of it"
    CANCELLED = "cancelled", "it was deleted before anything was launched"
    DELETE_NODE = "delete-node", "its instance is gone: the Node object goes too"
    DO_NOT_DISRUPT = "do-not-disrupt", "the annotation karpenter.sh/do-not-disrupt forbids it"
    DRA_DRIVER_POOLS_NOT_PUBLISHED = (
        "dra-driver-pools-not-published",
        "the driver {driver} has not published its devices on {node} yet",
    )
    DRAIN_STARTED = "drain-started", "the taint is on its node: draining begins"
    DRAINED = "drained", "every pod that had to leave has left"
    ERROR = "error", "the cloud answered with an error"
    EVICT = "evict", "pods that have to leave are evicted"
    GARBAGE_COLLECTED = (
        "garbage-collected",
        "the cloud does not list its instance, and its node is not ready: the Node object goes",
    )
    GOING = "going", "it is on its way out already"
    IN_SERVICE = "in-service", "it is in service"
    INITIALIZE = "initialize", "its node is ready: it is marked as initialized"
    INITIALIZED = "initialized", "its node is ready, without startup taints, and reports its resources"
    INSTANCE_VANISHED = "instance-vanished", "its instance {instance} is gone, and kerf did not end it"
    INSUFFICIENT_CAPACITY = "insufficient-capacity", "the cloud had no capacity in any offering that was asked for"
    KNOWN_EPHEMERAL_TAINTS_EXIST = "known-ephemeral-taints-exist", "its node still has the taint {taint}"
    LAUNCH_AGAIN = (
        "launch-again",
        "the launch failed for another reason than capacity: it is tried again with the same token",
    )
    LAUNCHED = "launched", "the cloud started its instance"
    NODE_NOT_FOUND = "node-not-found", "no node has joined with its provider id yet"
    NODE_NOT_READY = "node-not-ready", "its node {node} is not ready"
    NODE_SHAPE_CONSISTENT = "node-shape-consistent", "its node {node} reports what it was launched for, after all"
    NODE_SHAPE_INCONSISTENT = (
        "node-shape-inconsistent",
        "its node {node} reports less than 90% of what it was launched for: {resources}",
    )
    NODECLASS_NOT_READY = "nodeclass-not-ready", "its NodeClass is not ready"
    REGISTER = "register", "its node has joined: labels and taints are synced onto it"
    REGISTERED = "registered", "its node has joined and carries its labels and taints"
    RESOURCE_NOT_REGISTERED = "resource-not-registered", "its node does not report {resource} yet"
    SEARCH_ORPHAN = "search-orphan", "an answer to its launch may be lost: an instance with its tag is looked for"
    SETTLING = "settling", "pods that were bound just before the taint was seen may still show"
    STARTUP_TAINTS_EXIST = "startup-taints-exist", "its node still has the startup taint {taint}"
    STATIC_AT_SIZE = "static-at-size", "it has its size, and nothing is left to be tried again"
    STATIC_LABEL_NOT_GIVEN = (
        "static-label-not-given",
        "its nodes came without {requirements}, several times in a row: it launches no more until it or its NodeClass "
        "is changed",
    )
    STATIC_LIMIT = "static-limit", "its limit of {nodes} nodes allows no more"
    STATIC_NO_OFFERING = "static-no-offering", "nothing that its template allows is on offer now"
    STATIC_NOT_READY = "static-not-ready", "it or its NodeClass is not ready"
    STATIC_SCALE_DOWN = "static-scale-down", "{count} too many: they are removed, those that cost least to move first"
    STATIC_SCALE_UP = "static-scale-up", "{count} more are launched, straight from its template"
    TAINT = "taint", "the taint karpenter.sh/disrupted goes onto its node"
    TERMINATE = "terminate", "it is drained: its instance is ended"
    TERMINATE_ORPHAN = "terminate-orphan", "its claim is over, and instance {instance} may run on: it is ended"
    TERMINATE_UNCLAIMED = (
        "terminate-unclaimed",
        "instance {instance} carries this cluster's tags and belongs to no claim: it is ended",
    )
    TERMINATE_WITHOUT_DRAIN = "terminate-without-drain", "there is no node to drain: its instance is ended"
    TERMINATED = "terminated", "its instance and its node are gone"
    TERMINATING = "terminating", "a pod is terminating"
    NODE_WITHOUT_CLAIM = (
        "node-without-claim",
        "somebody deleted this Node, and it belongs to no NodeClaim: it is drained, and let go",
    )
    RELABEL = "relabel", "its node's labels are to say again what it is"
    UNTAINT = "untaint", "it is to stay: the taint karpenter.sh/disrupted goes off its node"
    WAITING = "waiting", "there is nothing to do"
    WAITING_FOR_CLOUD = "waiting-for-cloud", "the cloud has not answered yet"
    WAITING_FOR_EFFECT = "waiting-for-effect", "the answer to {effect} is awaited"
    VOLUMES_DETACHED = "volumes-detached", "its volumes are detached"
    VOLUMES_LEFT = "volumes-left", "volumes are still attached, but its time is up"
    WAITING_FOR_VOLUMES = "waiting-for-volumes", "volumes are still attached ({count}): {volumes}"
    WAITING_FOR_NEXT_PLACE = (
        "waiting-for-next-place",
        "the node that it goes to is not in service yet, and the notice leaves time",
    )
    WAITING_FOR_GROUP = "waiting-for-group", "pods that go before it are still there"
    WAITING_FOR_TURN = "waiting-for-turn", "nodes go together, and their large pods leave before it"
    WAITING_FOR_REPLACEMENT = "waiting-for-replacement", "{replacements} has to be in service before"
    WAITING_FOR_PODS = "waiting-for-pods", "{pods} still to leave"
    WAITING_TO_REPEAT = (
        "waiting-to-repeat",
        "{effect} was done, and what it did does not show: it is done again after a pause",
    )
    WAITING_TO_RETRY = "waiting-to-retry", "{effect} was refused: it is tried again after a pause"


COLLECTED = frozenset([LifecycleCode.GARBAGE_COLLECTED.value, LifecycleCode.INSTANCE_VANISHED.value])
"""Steps of claims whose instance is gone though kerf did not end it."""
