"""The workload controllers: Deployments (without ReplicaSet objects), StatefulSets and DaemonSets.

Each keeps as many pods as it should, names them from the seed, and replaces those that go. A change wakes only the
controllers concerned, at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.controllers.recorded_pods import RecordedPods
from kerf.adapters.simulation.scheduler.filters import node_selected, taints_tolerated
from kerf.adapters.simulation.seeded_random import SeededRandom, letters
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    DAEMONSET,
    STATEFULSET,
    Owner,
    Pod,
    PodShape,
    Selector,
    Toleration,
    VolumeRef,
    is_active,
    is_terminal,
)
from kerf.engine.model.kubernetes.volumes import VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload as Watched

DEPLOYMENT = "apps/v1/Deployment"
REPLICASET = "apps/v1/ReplicaSet"
DAEMON_TOLERATIONS = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)
"""What the DaemonSet controller adds to each of its pods."""


class PodTemplate(Struct, frozen=True):
    """What the pods of a workload have in common. `gates` are their scheduling gates."""

    shape: PodShape
    do_not_disrupt: str = ""
    deletion_cost: int = 0
    gates: tuple[str, ...] = ()


class Deployment(Struct, frozen=True):
    """A Deployment. `written` is a digest of its whole template, also of what kube-scheduler does not look at: with
    another image it is another one."""

    uid: str
    namespace: str
    name: str
    replicas: int
    template: PodTemplate
    selector: Selector | None = None
    written: str = ""


class StatefulSet(Struct, frozen=True):
    """A StatefulSet. `parallel` is podManagementPolicy Parallel; `claims` are its volumeClaimTemplates."""

    uid: str
    namespace: str
    name: str
    replicas: int
    template: PodTemplate
    parallel: bool = False
    claims: tuple[VolumeRef, ...] = ()
    selector: Selector | None = None


Workload = Deployment | StatefulSet


class Workloads:
    """All workloads: Deployments and StatefulSets by uid, DaemonSets by uid with their templates."""

    def __init__(
        self, api: ApiServer, clock: Clock, rng: SeededRandom, pins: dict[str, str], *, record_workloads: bool = False
    ) -> None:
        """`pins` (pod uid → node) tells the scheduler which node a DaemonSet's pod is for. `record_workloads`: the
        engine watches workloads."""
        self._record_workloads = record_workloads
        self._api, self._clock, self._rng, self._pins = api, clock, rng, pins
        self._workloads: dict[str, Workload] = {}
        self._daemons: dict[str, PodTemplate] = {}
        self._posts: dict[tuple[str, str], str] = {}  # (DaemonSet, node) → its pod there
        self._first: dict[tuple[str, str], str] = {}  # (Deployment, revision) → the template that was its first
        self._written: dict[str, str] = {}  # StatefulSet or DaemonSet → a digest of its template
        self._dirty: dict[tuple[str, str], Callable[[], None]] = {}
        self._made = 0
        self.recorded = RecordedPods(api, clock, rng, self._victims)
        api.listen(self._changed)

    # ── what users do ───────────────────────────────────────────────────────────────────────────────────────

    def find(self, kind: type[Deployment] | type[StatefulSet], namespace: str, name: str) -> Workload | None:
        named = (w for w in self._workloads.values() if (w.namespace, w.name) == (namespace, name))
        return next((workload for workload in named if isinstance(workload, kind)), None)

    def names(self, kind: type[Deployment] | type[StatefulSet]) -> list[str]:
        """Return namespace/name of all workloads of a kind, sorted."""
        return sorted(f"{w.namespace}/{w.name}" for w in self._workloads.values() if isinstance(w, kind))

    def apply(self, workload: Workload) -> None:
        """Create the workload, or change the one of the same kind and name. A new template is rolled out."""
        known = self.find(type(workload), workload.namespace, workload.name)
        if known is not None:
            workload = replace(workload, uid=known.uid)
        self._workloads[workload.uid] = workload
        kind = DEPLOYMENT if isinstance(workload, Deployment) else STATEFULSET
        self._tell(workload, kind, workload.name, workload.selector)
        self._wake_workload(workload.uid)

    def _tell(self, workload: Workload, kind: str, name: str, selector: Selector | None) -> None:
        """The object itself, or a ReplicaSet of it, as the API server shows it."""
        if self._record_workloads:
            shape = self._api.keep_shape(workload.template.shape)
            seen = Watched(kind, workload.namespace, name, shape, workload.uid, workload.replicas, selector=selector)
            self._api.put(seen)

    def renews_template(self, uid: str, written: str) -> bool:
        """Whether a StatefulSet or DaemonSet had another template before. Its running pods keep that one."""
        before, self._written[uid] = self._written.get(uid, written), written
        return before != written

    def apply_daemon_set(self, daemon_set: DaemonSet, template: PodTemplate) -> None:
        shape = replace(template.shape, tolerations=(*template.shape.tolerations, *DAEMON_TOLERATIONS))
        self._daemons[daemon_set.uid] = replace(template, shape=shape)
        self._api.put(daemon_set)
        for node in self._api.nodes:
            self._wake_daemon(daemon_set.uid, node)

    def delete(self, workload: Workload) -> None:
        """Delete the workload and, as `kubectl delete` does, its pods."""
        del self._workloads[workload.uid]
        self._written.pop(workload.uid, None)
        for seen in [known for known in self._api.workloads.values() if known.uid == workload.uid]:
            self._api.remove(seen)
        self._api.delete_pods(self._api.pods_of(workload.uid))

    def delete_daemon_set(self, daemon_set: DaemonSet) -> None:
        del self._daemons[daemon_set.uid]
        self._written.pop(daemon_set.uid, None)
        self._api.remove(daemon_set)
        self._api.delete_pods(self._api.pods_of(daemon_set.uid))

    def replicas_of(self, owner: str) -> int | None:
        """Return the scale of the workload with this uid, or None for a uid of none."""
        workload = self._workloads.get(owner)
        return self.recorded.replicas_of(owner) if workload is None else workload.replicas

    def adopt_daemon_pod(self, pod: Pod) -> None:
        """Take over a DaemonSet's pod that runs since before the beginning."""
        if pod.owner is not None:
            self._pins[pod.uid] = pod.node
            self._posts[pod.owner.uid, pod.node] = pod.uid

    # ── waking ──────────────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if change.kind == "pod":
            pod = change.new if change.new is not None else change.old
            if isinstance(pod, Pod) and pod.owner is not None:
                self._wake_workload(pod.owner.uid)
                self._wake_daemon(pod.owner.uid, self._pins.get(pod.uid, ""))
            if isinstance(pod, Pod) and change.new is None and pod.uid in self._pins:
                del self._posts["" if pod.owner is None else pod.owner.uid, self._pins.pop(pod.uid)]
        elif isinstance(change.new, Node):
            old = change.old
            if not isinstance(old, Node) or (old.labels, old.taints) != (
                change.new.labels,
                change.new.taints,
            ):
                for uid in self._daemons:
                    self._wake_daemon(uid, change.key)
        elif change.kind == "node":
            for uid in self._daemons:
                self._wake_daemon(uid, change.key)

    def _wake_workload(self, uid: str) -> None:
        if uid in self._workloads:
            self._wake((uid, ""), lambda: self._reconcile(uid))

    def _wake_daemon(self, uid: str, node: str) -> None:
        if uid in self._daemons and node:
            self._wake((uid, node), lambda: self._reconcile_daemon(uid, node))

    def _wake(self, key: tuple[str, str], reconcile: Callable[[], None]) -> None:
        if not self._dirty:
            self._clock.after(0, "workload controllers", self._work)
        self._dirty[key] = reconcile

    def _work(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for reconcile in dirty.values():
            reconcile()

    def _reconcile(self, uid: str) -> None:
        workload = self._workloads.get(uid)
        if isinstance(workload, Deployment):
            self._reconcile_deployment(workload)
        elif isinstance(workload, StatefulSet):
            self._reconcile_stateful_set(workload)

    # ── Deployments ─────────────────────────────────────────────────────────────────────────────────────────

    def _reconcile_deployment(self, workload: Deployment) -> None:
        """Roll out with the default 25 % surge and 25 % unavailable. Without old pods, just keep the replicas."""
        revision = self._revision_of(workload)
        name = f"{workload.name}-{revision}"
        alive = [pod for pod in self._api.pods_of(workload.uid) if is_active(pod)]
        new = [pod for pod in alive if pod.owner is not None and pod.owner.name == name]
        old = [pod for pod in alive if pod.owner is not None and pod.owner.name != name]
        room = workload.replicas + (-(-workload.replicas // 4) if old else 0) - len(alive)
        for _ in range(min(workload.replicas - len(new), room)):
            self._create(workload, name, revision)
        if len(new) > workload.replicas:
            self._api.delete_pods(self._victims(new)[: len(new) - workload.replicas])
        spare = sum(pod.ready for pod in alive) - (workload.replicas - workload.replicas // 4)
        unready = [pod for pod in old if not pod.ready]
        ready = [pod for pod in old if pod.ready]
        self._api.delete_pods((*unready, *self._victims(ready)[: max(0, spare)]))

    def _revision_of(self, workload: Deployment) -> str:
        """The pod-template-hash. kube-scheduler cannot tell some templates apart: the first of these keeps the plain
        hash, also when it comes back, and each other one gets its own."""
        revision = _revision(workload.template)
        if self._first.setdefault((workload.uid, revision), workload.written) == workload.written:
            return revision
        digest, _ = content({"revision": revision, "written": workload.written})
        return _letters(digest)

    def _create(self, workload: Deployment, replica_set: str, revision: str) -> None:
        shape = workload.template.shape
        labelled = replace(shape, labels={**shape.labels, "pod-template-hash": revision})
        owner = Owner(kind=REPLICASET, name=replica_set, uid=workload.uid)
        own = workload.selector
        if own is not None:
            selector = Selector({**own.labels, "pod-template-hash": revision}, own.expressions)
            self._tell(workload, REPLICASET, replica_set, selector)
        self._put(
            workload.namespace,
            self._generate(workload.namespace, replica_set, workload.uid),
            replace(workload.template, shape=labelled),
            owner,
        )

    def _victims(self, pods: list[Pod]) -> list[Pod]:
        """Order pods as a ReplicaSet gives them up: unbound, not ready, cheap to delete, crowded, young. Of two ages
        none counts as younger unless it has a lower power of two in it; then the uid decides."""
        crowd: dict[str, int] = {}
        for pod in pods:
            crowd[pod.node] = crowd.get(pod.node, 0) + 1
        return sorted(
            pods,
            key=lambda p: (
                bool(p.node), p.phase == "Running", p.ready, p.deletion_cost, -crowd[p.node],
                self._magnitude(p.started), self._magnitude(p.created), p.uid,
            ),
        )  # fmt: skip

    def _magnitude(self, since: int) -> int:
        """Return the binary logarithm of an age, rounded down. It is one of nanoseconds in Kubernetes."""
        return ((self._clock.now - since) * 1_000_000).bit_length()

    # ── StatefulSets ────────────────────────────────────────────────────────────────────────────────────────

    def _reconcile_stateful_set(self, workload: StatefulSet) -> None:
        """Keep the pods one at a time in order, unless parallel. A name is used again only when its pod is gone."""
        pods = {pod.name: pod for pod in self._api.pods_of(workload.uid)}
        owner = Owner(kind=STATEFULSET, name=workload.name, uid=workload.uid)
        desired_names = [f"{workload.name}-{index}" for index in range(workload.replicas)]
        for name in desired_names:
            pod = pods.get(name)
            if pod is None:
                self._put(workload.namespace, name, self._with_claims(workload, name), owner)
            elif is_terminal(pod):
                self._api.remove(pod)
            if not workload.parallel and not (pod is not None and pod.ready and not pod.deleting):
                break
        surplus = sorted((pod for pod in pods.values() if pod.name not in desired_names), key=_ordinal, reverse=True)
        if not workload.parallel:
            surplus = surplus[:1]
        self._api.delete_pods(surplus)

    def _with_claims(self, workload: StatefulSet, pod: str) -> PodTemplate:
        """Return the template with the pod's own claims. They are made when they are first needed, and never
        deleted."""
        refs = []
        for template in workload.claims:
            claim = VolumeClaim(workload.namespace, f"{template.name}-{pod}", storage_class=template.storage_class)
            refs.append(VolumeRef(template.name, claim=claim.name))
            if claim.key not in self._api.claims:
                self._api.put(claim)
        shape = workload.template.shape
        return replace(workload.template, shape=replace(shape, volumes=(*shape.volumes, *refs)))

    # ── DaemonSets ──────────────────────────────────────────────────────────────────────────────────────────

    def _reconcile_daemon(self, uid: str, name: str) -> None:
        """Keep one pod on each node that it may run on, and none on others (NoExecute, or another selector)."""
        template, daemon_set = self._daemons.get(uid), self._api.daemon_sets.get(uid)
        if template is None or daemon_set is None:
            return
        node = self._api.nodes.get(name)
        here = self._api.pods.get(self._posts.get((uid, name), ""))
        if node is None:
            if here is not None and not here.node:
                self._api.delete_pod(here)
        elif not node_selected(template.shape, node) or not taints_tolerated(
            template.shape, node.taints, ("NoExecute",)
        ):
            self._api.delete_pods(() if here is None else (here,))
        elif here is None and taints_tolerated(template.shape, node.taints, ("NoSchedule",)):
            owner = Owner(kind=DAEMONSET, name=daemon_set.name, uid=uid)
            self._put(
                daemon_set.namespace,
                self._generate(daemon_set.namespace, daemon_set.name, uid),
                template,
                owner,
                node=name,
            )

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _generate(self, namespace: str, prefix: str, uid: str) -> str:
        """Generate a name that no pod of this workload has had. Those of the record that a model begins with may have
        been named here."""
        while self._api.pod_named(namespace, name := f"{prefix}-{self._rng.suffix(5, 'name', uid, self._made)}"):
            self._made += 1
        return name

    def _put(self, namespace: str, name: str, template: PodTemplate, owner: Owner, *, node: str = "") -> None:
        self._made += 1
        pod = Pod(
            uid=self._rng.uid("pod", namespace, name, self._made),
            namespace=namespace,
            name=name,
            shape=self._api.admit(template.shape),
            created=self._clock.now,
            owner=owner,
            do_not_disrupt=template.do_not_disrupt,
            deletion_cost=template.deletion_cost,
        )
        if node:
            self._pins[pod.uid] = node
            self._posts[owner.uid, node] = pod.uid
        if template.gates:
            self._api.gated[pod.uid] = template.gates
        self._api.put(pod)


def _revision(template: PodTemplate) -> str:
    """Equal templates have equal revisions, other annotations make another one."""
    shape = template.shape
    digest, _ = content(shape if template == PodTemplate(shape) else template)
    return _letters(digest)


def _letters(digest: str) -> str:
    return letters(bytes.fromhex(digest), 8)


def _ordinal(pod: Pod) -> tuple[int, str]:
    return int(pod.name.rpartition("-")[2]), pod.name
