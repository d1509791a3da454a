"""The histories of pods: found by name, node, owner or workload.

Most entries of a record are of pods, and an answer is about few of them. So where a record finds entries by what they
name (`kerf.replay.record_names`), the history of a pod is folded when somebody asks for it. It is the same history: its
own entries, and what decisions and drains say of it, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import PodEvicted, PodForced
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.workload_names import WorkloadName, workload_of
from kerf.replay.record_names.named_entries import NamedEntries, uid_of
from kerf.replay.record_names.postings import NAME, NODE, WORKLOAD, bare


class PodDecision(Struct, frozen=True):
    """A provisioning decision that says something about a pod. `place` is a claim, or an unmanaged node."""

    position: int
    at: int
    result: str
    place: str = ""


class PodHistory(Struct):
    """One pod, by its uid. Times are in ms since the epoch, 0 for not yet.

    `waiting_since` is when it was first seen to wait, `bound` when it got its node, `left` when it began to end or was
    seen no more. `gone` is the position where it went. `owner` is its controller ("" for none), and `workload` what
    that belongs to (None for a pod by itself). `evicted_from` is the claim whose drain evicted it, `forced` whether by
    a deletion.
    """

    uid: str
    key: str
    first: int
    seen: int
    waiting_since: int = 0
    bound: int = 0
    node: str = ""
    phase: str = ""
    gone: int = 0  # the position where it went
    left: int = 0
    owner: str = ""
    workload: WorkloadName | None = None
    evicted_from: str = ""
    forced: bool = False
    decisions: list[PodDecision] = field(default_factory=list)

    def workload_names(self) -> tuple[str, ...]:
        """Return the names of its workload: its own, and that of the ReplicaSet or Job in between."""
        if self.workload is None:
            return ()
        namespace, owner = self.key.partition("/")[0], self.owner.rpartition("/")[2]
        return (self.workload.key, f"{namespace}/{owner}")


class PodHistories:
    """The histories of all pods, by uid. `named` finds their entries; without it, give them all to `seen` and `gone`.

    `decided` and `evicted` are to be told in the order of the record, between the entries.
    """

    def __init__(self, named: NamedEntries | None = None) -> None:
        self.named = named
        self._known: dict[str, PodHistory] = {}
        self._notes: dict[str, list[tuple[int, PodDecision | Entry]]] = {}  # by uid, of pods that are found late
        self._asked: set[tuple[str, str]] = set()
        self._loaded: set[str] = set()
        self._groups: dict[str, dict[str, list[PodHistory]]] | None = None

    def up_to(self, named: NamedEntries) -> PodHistories:
        """Return those up to the end of `named`, which finds entries of the same record, and is not before its base.
        To be asked of histories that have not looked for pods themselves."""
        found = PodHistories(named)
        found._notes = self._notes  # what is later is left out where it is read
        found._known = {uid: replace(pod, decisions=list(pod.decisions)) for uid, pod in self._known.items()}
        return found

    @property
    def whole(self) -> bool:
        """Whether all pods are known, and not only those that were asked for."""
        return self.named is None

    # ── the fold ───────────────────────────────────────────────────────────────────────────────────────────────

    def seen(self, pod: Pod, entry: Entry) -> None:
        self._groups = None
        history = self._known.get(pod.uid)
        if history is None:
            history = self._known[pod.uid] = PodHistory(pod.uid, pod.key, entry.position, entry.at)
        if pod.unschedulable and not pod.node and not history.waiting_since:
            history.waiting_since = entry.at
        if pod.node and not history.node:
            history.node, history.bound = pod.node, entry.at
        if pod.deleting and not history.left:
            history.left = entry.at
        if pod.owner is not None:
            history.owner = f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}"
            history.workload = history.workload or workload_of(pod)
        history.phase = pod.phase

    def gone(self, uid: str, entry: Entry) -> None:
        history = self._known.get(uid)
        if history is not None:
            history.gone = entry.position
            history.left = history.left or entry.at

    def decided(self, uids: Iterable[str], decision: PodDecision) -> None:
        """Note a decision about pods. Of one that nobody has seen yet nothing is noted."""
        for uid in uids:
            self._note(uid, decision.position, decision)

    def evicted(self, event: PodEvicted | PodForced, entry: Entry) -> None:
        """Note that a drain made a pod leave."""
        self._note(event.uid, entry.position, entry)

    def _note(self, uid: str, position: int, note: PodDecision | Entry) -> None:
        if self.named is None or position <= self.named.after:
            self._take(uid, note)
        else:
            self._notes.setdefault(uid, []).append((position, note))

    def _take(self, uid: str, note: PodDecision | Entry) -> None:
        history = self._known.get(uid)
        if history is None:
            return
        if isinstance(note, PodDecision):
            history.decisions.append(note)
        else:
            history.evicted_from, history.forced = note.payload.claim, isinstance(note.payload, PodForced)
            history.left = history.left or note.at

    # ── questions ──────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, uid: str) -> PodHistory | None:
        self._load([uid])
        return self._known.get(uid)

    def __getitem__(self, uid: str) -> PodHistory:
        self._load([uid])
        return self._known[uid]

    def load(self, uids: Iterable[str]) -> None:
        """Fold the histories of these pods at once, which is faster than one after the other."""
        self._load(uids)

    def every(self) -> Iterable[PodHistory]:
        """Return all pods in the order in which they were seen first. Only where all are known."""
        assert self.whole
        return self._known.values()

    def uids_of(self, key: str) -> list[str]:
        """Return the pods that have had this name (namespace/name), in the order in which they were seen first."""
        self._find(NAME, bare(key))
        return [pod.uid for pod in self._group("key").get(key, ())]

    def keys_called(self, name: str) -> list[str]:
        """Return the names with their namespaces of the pods of this name."""
        self._find(NAME, name)
        return sorted({pod.key for pod in self._group("name").get(name, ())})

    def on_node(self, node: str) -> list[PodHistory]:
        """Return the pods that were bound to this node, in the order in which they were seen first."""
        self._find(NODE, node)
        return self._group("node").get(node, []) if node else []

    def of_owner(self, owner: str) -> list[PodHistory]:
        """Return the pods of a controller (`PodHistory.owner`), in the order in which they were seen first."""
        self._find(WORKLOAD, bare(owner))
        return self._group("owner").get(owner, []) if owner else []

    def of_workload(self, name: str) -> list[PodHistory]:
        """Return all pods that a workload (namespace/name) has had, in the order in which they were seen first."""
        self._find(WORKLOAD, bare(name))
        return self._group("workload").get(name, [])

    def workloads_called(self, name: str) -> list[str]:
        """Return the names with their namespaces of the workloads of this name."""
        self._find(WORKLOAD, name)
        return sorted(known for known in self._group("workload") if known.partition("/")[2] == name)

    # ── pods that are found when they are asked for ────────────────────────────────────────────────────────────

    def _find(self, what: str, name: str) -> None:
        if self.named is not None and name and (what, name) not in self._asked:
            self._asked.add((what, name))
            in_base = self._known.keys() - self._loaded  # an index says only of what comes later whom it names
            self._load(self.named.uids(what, name) | in_base)

    def _load(self, uids: Iterable[str]) -> None:
        if self.named is None:
            return
        wanted = set(uids) - self._loaded
        if not wanted:
            return
        self._loaded |= wanted
        self._groups = None
        told: dict[str, list[tuple[int, PodDecision | Entry]]] = {uid: [] for uid in wanted}
        for entry in self.named.entries(wanted):
            told[uid_of(entry)].append((entry.position, entry))
        for uid in wanted:
            notes = (note for note in self._notes.get(uid, ()) if note[0] <= self.named.until)
            for _, one in sorted((*told[uid], *notes), key=lambda told: told[0]):
                if isinstance(one, Entry) and isinstance(one.payload, Pod):
                    self.seen(one.payload, one)
                elif isinstance(one, Entry) and isinstance(one.payload, ObjectGone):
                    self.gone(uid, one)
                else:
                    self._take(uid, one)

    def _group(self, what: str) -> dict[str, list[PodHistory]]:
        if self._groups is None:
            self._groups = {}
        found = self._groups.get(what)
        if found is None:
            found = self._groups[what] = {}
            for pod in sorted(self._known.values(), key=lambda pod: pod.first):
                for name in _NAMES[what](pod):
                    found.setdefault(name, []).append(pod)
        return found


_NAMES: dict[str, Callable[[PodHistory], tuple[str, ...]]] = {
    "key": lambda pod: (pod.key,),
    "name": lambda pod: (pod.key.partition("/")[2],),
    "node": lambda pod: (pod.node,),
    "owner": lambda pod: (pod.owner,),
    "workload": lambda pod: tuple(dict.fromkeys(pod.workload_names())),
}
