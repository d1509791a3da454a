"""From an intent to its effect through the ports, and after a crash: look first, repeat only what did not happen."""

from __future__ import annotations

from hashlib import blake2b

from kerf.engine.errors import KerfError
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
from kerf.engine.record.observations import EffectAnswered, LaunchAnswered, Observation
from kerf.engine.runtime.ports import Cloud, Cluster


def token(record: str, ref: str) -> str:
    """The idempotency key of an effect (design, idea 4): the same in every process, other in every record."""
    return "kerf-" + blake2b(f"{record}/{ref}".encode(), digest_size=16).hexdigest()


def token_ref(ref: str, intent: Intent) -> str:
    """The "position.index" that an effect's token is derived from: a repeated launch uses the first attempt's."""
    return (intent.again or ref) if isinstance(intent, LaunchInstance) else ref


def perform(ref: str, intent: Intent, *, token: str, cluster: Cluster, cloud: Cloud) -> Observation:
    """Carries out one intent. A port's KerfError becomes a failed outcome: it is an observation like any other."""
    try:
        return Observation(_perform(ref, intent, token, cluster, cloud))
    except KerfError as error:
        return Observation(failed_answer(ref, intent, error))


def reconcile(ref: str, intent: Intent, *, token: str, cluster: Cluster, cloud: Cloud) -> Observation:
    """After a restart: an intent without an outcome. A launch is looked up before it is repeated (with its token); all
    other effects are idempotent by their preconditions and are simply carried out."""
    if isinstance(intent, LaunchInstance):
        try:
            found = cloud.find(intent, intent=ref, token=token)
        except KerfError as error:
            return Observation(failed_answer(ref, intent, error))
        if found is not None:
            return Observation(found)
    return perform(ref, intent, token=token, cluster=cluster, cloud=cloud)


def _perform(ref: str, intent: Intent, token: str, cluster: Cluster, cloud: Cloud) -> LaunchAnswered | EffectAnswered:
    match intent:
        case LaunchInstance():
            return _launch(ref, intent, token, cloud)
        case FindInstance():
            found = cloud.find(intent.order, intent=ref, token=token)
            return found or LaunchAnswered(intent=ref, claim=intent.claim, kind="not-found")
        case TerminateInstance():
            return cloud.terminate(intent.instance, intent=ref)
        case RegisterNode():
            return cluster.register(intent, intent=ref)
        case InitializeNode():
            return cluster.initialize(intent, intent=ref)
        case TaintNode():
            return cluster.taint(intent, intent=ref)
        case UntaintNode():
            return cluster.untaint(intent, intent=ref)
        case EvictPod():
            return cluster.evict(intent, intent=ref)
        case DeletePod():
            return cluster.delete_pod(intent, intent=ref)
        case DeleteNode():
            return cluster.delete_node(intent, intent=ref)


def _launch(ref: str, order: LaunchInstance, token: str, cloud: Cloud) -> LaunchAnswered:
    """A repeated launch first looks for what the first attempt may have started; so does one that an earlier record
    may have asked for."""
    if order.again or order.look:
        found = cloud.find(order, intent=ref, token=token)
        if found is not None:
            return found
    return cloud.launch(order, intent=ref, token=token)


def user_data_changed(ref: str, order: LaunchInstance) -> LaunchAnswered:
    """The outcome of a launch that a cloud does not repeat, because its instance would boot other user data than the
    first attempt's may have. The claim fails, and its pods are planned for again."""
    message = f"{order.node_class.kind}/{order.node_class.name} has other user data than at the first attempt"
    return LaunchAnswered(
        intent=ref, claim=order.claim, kind="nodeclass-not-ready", code="UserDataChanged", message=message
    )


def failed_answer(ref: str, intent: Intent, error: KerfError) -> LaunchAnswered | EffectAnswered:
    """The outcome of an intent that ended in an error."""
    if isinstance(intent, LaunchInstance | FindInstance):
        return LaunchAnswered(intent=ref, claim=intent.claim, kind="error", code=error.code, message=error.message)
    return EffectAnswered(intent=ref, ok=False, code=error.code, message=error.message)
