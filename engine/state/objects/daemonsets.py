"""DaemonSets, and of each the newest pod that was seen: what runs on a node is what admission has made of the template
(a LimitRange, a webhook that sets requests), and there the DaemonSet's own text does not say it (S-79)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, PodShape
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import free_capacity_changed
from kerf.engine.state.state import DaemonPod, State


def daemonset_seen(state: State, daemonset: DaemonSet, entry: Entry) -> None:
    """A changed template forgets the pod of the old one."""
    facts = state.facts
    known = facts.daemonsets.get(daemonset.uid)
    if known == daemonset:
        return
    facts.daemonsets[daemonset.uid] = daemonset
    facts.daemon_pods.pop(daemonset.uid, None)
    if known is None:
        for pod in facts.pods.values():
            if pod.owner is not None and pod.owner.uid == daemonset.uid:
                _newest(state, daemonset, pod)
    free_capacity_changed(state, entry.at)


def daemonset_gone(state: State, uid: str, entry: Entry) -> None:
    facts = state.facts
    facts.daemon_pods.pop(uid, None)
    if facts.daemonsets.pop(uid, None) is not None:
        free_capacity_changed(state, entry.at)


def daemon_pod_seen(state: State, pod: Pod, entry: Entry) -> None:
    """Of any pod. It stays known when it is gone: the next one will be like it."""
    daemonset = _daemonset_of(state, pod)
    if daemonset is None:
        return
    before = _expected(state, daemonset)
    if _newest(state, daemonset, pod) and _expected(state, daemonset) != before:
        free_capacity_changed(state, entry.at)


def daemon_shape(state: State, daemonset: DaemonSet) -> str:
    """The digest of what a pod of it comes to: the template with the requests, node selector, host ports and claims of
    the newest one. Its affinity and tolerations are no news: the DaemonSet controller writes into them."""
    shape = _expected(state, daemonset)
    digest, _ = content(shape)
    state.indexes.blobs.offer(digest, shape)
    return digest


def _daemonset_of(state: State, pod: Pod) -> DaemonSet | None:
    owner = pod.owner
    return state.facts.daemonsets.get(owner.uid) if owner is not None and owner.kind == DAEMONSET else None


def _newest(state: State, daemonset: DaemonSet, pod: Pod) -> bool:
    """Notes the pod if none is newer; of equally old ones the last by uid."""
    known = state.facts.daemon_pods.get(daemonset.uid)
    found = DaemonPod(pod.created, pod.uid, pod.shape)
    if known is not None and (found == known or (found.created, found.uid) < (known.created, known.uid)):
        return False
    state.facts.daemon_pods[daemonset.uid] = found
    return True


def _expected(state: State, daemonset: DaemonSet) -> PodShape:
    template = state.indexes.blobs.shape(daemonset.shape)
    newest = state.facts.daemon_pods.get(daemonset.uid)
    return template if newest is None else like_newest(template, state.indexes.blobs.shape(newest.shape))


def like_newest(template: PodShape, newest: PodShape) -> PodShape:
    """What a DaemonSet's next pod comes to, by its newest one (S-79)."""
    return replace(
        template, requests=newest.requests, node_selector=newest.node_selector, host_ports=newest.host_ports,
        resource_claims=newest.resource_claims,
    )  # fmt: skip
