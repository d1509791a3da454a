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
from kerf.projections.workload_names import WorkloadName, owner_name
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.record_names.postings import CONTROLLER, NAME, NODE, WORKLOAD, PodEntry, PodTold, bare


class PodDecision(Struct, frozen=True):
    """A provisioning decision that says something about a pod. `place` is a claim, or an unmanaged node."""

    position: int
    at: int
    result: str
    place: str = ""


class PodHistory(Struct):
    """One pod, by its uid. Times are in ms since the epoch, 0 for not yet.

    `waiting_since` is when it was first seen to wait, or its creation if it waited before it was seen. `bound` is when
    it got its node, `left` when it began to end or was seen no more. `gone` is the position where it went. `owner` is
    its controller ("" for none), and `workload` what that belongs to (None for a pod by itself). `evicted_from` is the
    claim whose drain evicted it, `forced` whether by a deletion. `owned`, `ended` and `evicted` are the positions that
    told the owner, that it leaves, and its eviction. `shape` is the digest of its shape.
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
    shape: str = ""
    owned: int = 0
    ended: int = 0
    evicted: int = 0
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
        self._asked: dict[tuple[str, str], list[str]] = {}  # what was looked up, and the pods that may be it
        self._loaded: set[str] = set()
        self._in_base: dict[str, None] | None = None  # an index says only of what comes later whom it names
        self._groups: dict[str, dict[str, list[PodHistory]]] | None = None

    def up_to(self, named: NamedEntries) -> PodHistories:
        """Return those up to the end of `named`, which finds entries of the same record, and is not before its base.
        To be asked of histories that have not looked for pods themselves."""
        found = PodHistories(named)
        found._notes = self._notes  # what is later is left out where it is read
        found._known = {uid: replace(pod, decisions=list(pod.decisions)) for uid, pod in self._known.items()}
        return found

    # ── the fold ───────────────────────────────────────────────────────────────────────────────────────────────

    def seen(self, pod: Pod | PodTold, entry: Entry) -> None:
        self._groups = None
        history = self._known.get(pod.uid)
        if history is None:
            history = self._known[pod.uid] = PodHistory(pod.uid, pod.key, entry.position, entry.at)
        if pod.unschedulable and not pod.node and not history.waiting_since:
            history.waiting_since = _since(pod, entry) if history.first == entry.position else entry.at
        if pod.node and not history.node:
            history.node, history.bound = pod.node, entry.at
        if pod.deleting and not history.left:
            history.left, history.ended = entry.at, entry.position
        if pod.owner is not None:
            owner = f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}"
            if owner != history.owner:
                history.owner, history.owned = owner, entry.position
            history.workload = history.workload or owner_name(pod.namespace, pod.owner)
        history.phase, history.shape = pod.phase, pod.shape

    def gone(self, uid: str, entry: Entry) -> None:
        history = self._known.get(uid)
        if history is not None:
            history.gone = entry.position
            history.left, history.ended = history.left or entry.at, history.ended or entry.position

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
            history.left, history.ended = history.left or note.at, history.ended or note.position
            history.evicted = note.position

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
        assert self.named is None
        return self._known.values()

    def names(self) -> set[str]:
        """Return the names (namespace/name) of all pods. Where they are found by an index, of those that come later,
        too."""
        return self._all(NAME, lambda pod: pod.key)

    def workloads(self) -> set[str]:
        """Return the names of all workloads, as `names` does those of pods."""
        return self._all(WORKLOAD, lambda pod: pod.workload.key if pod.workload is not None else "")

    def controllers(self) -> set[str]:
        """Return the names of all that own pods, as `names` does those of pods."""
        return self._all(CONTROLLER, lambda pod: next(iter(pod.workload_names()[1:]), ""))

    def _all(self, what: str, of_pod: Callable[[PodHistory], str]) -> set[str]:
        found = {of_pod(pod) for pod in self._first_known()}
        return (found | self.named.names(what) if self.named is not None else found) - {""}

    def _first_known(self) -> Iterable[PodHistory]:
        """Return the pods whose names no index has: all of them where there is none."""
        return self._known.values() if self.named is None else (self._known[uid] for uid in self._of_base())

    def uids_of(self, key: str) -> list[str]:
        """Return the pods that have had this name (namespace/name), in the order in which they were seen first."""
        return [pod.uid for pod in self._called("key", key, NAME)]

    def keys_called(self, name: str) -> list[str]:
        """Return the names with their namespaces of the pods of this name."""
        return sorted({pod.key for pod in self._called("name", name, NAME)})

    def on_node(self, node: str) -> list[PodHistory]:
        """Return the pods that were bound to this node, in the order in which they were seen first."""
        return self._called("node", node, NODE)

    def of_owner(self, owner: str) -> list[PodHistory]:
        """Return the pods of a controller (`PodHistory.owner`), in the order in which they were seen first."""
        return self._called("owner", owner, WORKLOAD)

    def of_workload(self, name: str) -> list[PodHistory]:
        """Return all pods that a workload (namespace/name) has had, in the order in which they were seen first."""
        return self._called("workload", name, WORKLOAD)

    def workloads_called(self, name: str) -> list[str]:
        """Return the names with their namespaces of the workloads of this name."""
        known = self._known.values() if self.named is None else self._found(WORKLOAD, name)
        return sorted({key for pod in known for key in pod.workload_names() if key.partition("/")[2] == name})

    # ── pods that are found when they are asked for ────────────────────────────────────────────────────────────

    def _called(self, what: str, name: str, found_by: str) -> list[PodHistory]:
        """Return the pods that something of theirs is called so, in the order in which they were seen first."""
        if not name:
            return []
        if self.named is None:
            return self._group(what).get(name, [])
        names = _NAMES[what]
        return sorted((pod for pod in self._found(found_by, bare(name)) if name in names(pod)), key=_first)

    def _found(self, what: str, name: str) -> list[PodHistory]:
        """Return the pods that may be called so: all that are."""
        assert self.named is not None
        uids = self._asked.get((what, name))
        if uids is None:
            base = self._of_base()  # these stay in their order: they were all seen first at once
            uids = self._asked[what, name] = [*base, *(self.named.uids(what, name) - base.keys())]
            self._load(uids)
        return [self._known[uid] for uid in uids if uid in self._known]

    def _of_base(self) -> dict[str, None]:
        """Return the pods that are known before any is looked up, in their order."""
        if self._in_base is None:
            self._in_base = dict.fromkeys(self._known)
        return self._in_base

    def _load(self, uids: Iterable[str]) -> None:
        if self.named is None:
            return
        self._of_base()
        wanted = set(uids) - self._loaded
        if not wanted:
            return
        self._loaded |= wanted
        self._groups = None
        told: dict[str, list[tuple[int, PodDecision | Entry]]] = {uid: [] for uid in wanted}
        for entry in self.named.told(wanted):
            told[entry.uid].append((entry.position, entry))
        for uid in wanted:
            notes = (note for note in self._notes.get(uid, ()) if note[0] <= self.named.until)
            for _, one in sorted((*told[uid], *notes), key=lambda told: told[0]):
                if not isinstance(one, PodEntry):
                    self._take(uid, one)
                elif one.payload.uid:
                    self.seen(one.payload, one)
                else:
                    self.gone(uid, one)

    def _group(self, what: str) -> dict[str, list[PodHistory]]:
        if self._groups is None:
            self._groups = {}
        found = self._groups.get(what)
        if found is None:
            found = self._groups[what] = {}
            for pod in sorted(self._known.values(), key=_first):
                for name in _NAMES[what](pod):
                    found.setdefault(name, []).append(pod)
        return found


def _since(pod: Pod | PodTold, entry: Entry) -> int:
    """Return since when a pod waits that waits when it is first seen."""
    return min(pod.created or entry.at, entry.at)


def _first(pod: PodHistory) -> int:
    return pod.first


_NAMES: dict[str, Callable[[PodHistory], tuple[str, ...]]] = {
    "key": lambda pod: (pod.key,),
    "name": lambda pod: (pod.key.partition("/")[2],),
    "node": lambda pod: (pod.node,),
    "owner": lambda pod: (pod.owner,),
    "workload": lambda pod: tuple(dict.fromkeys(pod.workload_names())),
}
