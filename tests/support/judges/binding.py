"""Whether the pods of a plan can be bound one after another, as kube-scheduler would: hard spreads and required
affinity at every step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, SpreadConstraint
from tests.support.judges.labels import Host, Kind, tolerates, wants_node

SHUFFLES = 10
MAX_STATES = 3_000
"""Of the search among all orders: enough for a dozen pods, and no long wait for hundreds."""
Matches = Callable[[Kind, Kind, SpreadConstraint | AffinityTerm], bool]
"""Whether the term of a pod of the second kind speaks of pods of the first."""


class Binding:
    def __init__(self, hosts: Sequence[Host], shapes: Mapping[str, PodShape], matches: Matches) -> None:
        self._hosts, self._shapes, self._matches = hosts, shapes, matches
        kinds = sorted({kind for host in hosts for kind in host.planned})
        self._counted = frozenset(
            kind
            for kind in kinds
            for owner in kinds
            for constraint in shapes[owner[1]].spread
            if constraint.when_unsatisfiable == "DoNotSchedule" and matches(kind, owner, constraint)
        )

    def stuck(self, by_size: list[tuple[Host, Kind]]) -> list[tuple[Host, Kind]]:
        """The pods that cannot be bound. One order in which everybody gets a place is enough: those without rules as
        late as possible, large pods first (S-85), those that no spread counts first, or any of some others."""
        orders = [by_size, sorted(by_size, key=lambda each: self._urgency(each[1]))]
        orders += [random.Random(seed).sample(by_size, len(by_size)) for seed in range(SHUFFLES)]
        stuck = self._bound_late(by_size, frozenset())
        if stuck:
            stuck = self._bound_late(by_size, self._guests({kind for _, kind in by_size}))
        for order in orders:
            if stuck:
                stuck = self._bound_in(order)
        return [] if stuck and self._some_order(by_size) else stuck

    def _some_order(self, pods: list[tuple[Host, Kind]]) -> bool:
        """Whether a search among all orders finds one in which everybody is bound. Pods of a kind on a host are alike,
        so few pods have few states."""
        waiting = Counter((self._hosts.index(host), kind) for host, kind in pods)
        alike = sorted(waiting)
        seen: set[tuple[int, ...]] = set()
        paths = [tuple(waiting[one] for one in alike)]
        while paths and len(seen) < MAX_STATES:
            left = paths.pop()
            if not any(left):
                return True
            if left in seen:
                continue
            seen.add(left)
            here: dict[int, Counter[Kind]] = {id(host): Counter(host.bound) for host in self._hosts}
            for (number, kind), count in zip(alike, left, strict=True):
                here[id(self._hosts[number])][kind] += waiting[number, kind] - count
            for at, (number, kind) in enumerate(alike):
                if left[at] and self._bindable(self._hosts[number], kind, here):
                    paths.append((*left[:at], left[at] - 1, *left[at + 1 :]))
        return False

    def _guests(self, kinds: set[Kind]) -> frozenset[Kind]:
        """Those with rules that a hard spread of others counts, and none of their own over the same key and pods."""
        found = set()
        for owner in kinds:
            for constraint in self._shapes[owner[1]].spread:
                if constraint.when_unsatisfiable != "DoNotSchedule":
                    continue
                for kind in kinds:
                    own = [(s.topology_key, s.selector) for s in self._shapes[kind[1]].spread]
                    if (
                        self._matches(kind, owner, constraint)
                        and (constraint.topology_key, constraint.selector) not in own
                    ):
                        found.add(kind)
        return frozenset(kind for kind in found if self._ruled(kind))

    def _bound_late(self, order: list[tuple[Host, Kind]], guests: frozenset[Kind]) -> list[tuple[Host, Kind]]:
        """Pods with rules of their own first; one without, or a guest, only when those are stuck, where fewest are."""
        here: dict[int, Counter[Kind]] = {id(host): Counter(host.bound) for host in self._hosts}
        ruled = [waiting for waiting in order if self._ruled(waiting[1]) and waiting[1] not in guests]
        free = [waiting for waiting in order if not self._ruled(waiting[1]) or waiting[1] in guests]
        while ruled or any(kind in guests for _, kind in free):
            rest = []
            for host, kind in ruled:
                if self._bindable(host, kind, here):
                    here[id(host)][kind] += 1
                else:
                    rest.append((host, kind))
            if len(rest) == len(ruled):
                ready = [waiting for waiting in free if waiting[1] not in guests or self._bindable(*waiting, here)]
                if not ready:
                    return rest + [waiting for waiting in free if waiting[1] in guests]
                stuck = rest[0][1] if rest else ready[0][1]
                host, kind = min(ready, key=lambda each: self._crowd(each, stuck, here))
                free.remove((host, kind))
                here[id(host)][kind] += 1
            ruled = rest
        return []

    def _ruled(self, kind: Kind) -> bool:
        shape = self._shapes[kind[1]]
        hard = any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in shape.spread)
        return hard or any(not term.weight for term in shape.affinity)

    def _crowd(self, pod: tuple[Host, Kind], stuck: Kind, here: Mapping[int, Counter[Kind]]) -> tuple[bool, int, str]:
        """Whether a pod does not count for those that are stuck, and how many that do are in its domain."""
        host, kind = pod
        for constraint in self._shapes[stuck[1]].spread:
            if self._matches(kind, stuck, constraint) and host.domain(constraint.topology_key) is not None:
                domain = host.domain(constraint.topology_key)
                others = (other for other in self._hosts if other.domain(constraint.topology_key) == domain)
                pods = sum(
                    n for other in others for k, n in here[id(other)].items() if self._matches(k, stuck, constraint)
                )
                return False, pods, host.name
        return True, 0, host.name

    def _bound_in(self, order: list[tuple[Host, Kind]]) -> list[tuple[Host, Kind]]:
        """The pods that are left over; each that can be bound is, and then all before it are tried again."""
        here: dict[int, Counter[Kind]] = {id(host): Counter(host.bound) for host in self._hosts}
        left = order
        while left:
            rest = []
            for host, kind in left:
                if self._bindable(host, kind, here):
                    here[id(host)][kind] += 1
                else:
                    rest.append((host, kind))
            if len(rest) == len(left):
                return rest
            left = rest
        return []

    def _urgency(self, kind: Kind) -> int:
        if self._ruled(kind):
            return 1
        return 2 if kind in self._counted else 0

    def _bindable(self, host: Host, kind: Kind, here: Mapping[int, Counter[Kind]]) -> bool:
        shape = self._shapes[kind[1]]
        hard = [constraint for constraint in shape.spread if constraint.when_unsatisfiable == "DoNotSchedule"]
        return all(self._within_skew(host, kind, spread, here) for spread in hard) and self._near(host, kind, here)

    def _within_skew(self, host: Host, kind: Kind, spread: SpreadConstraint, here: Mapping[int, Counter[Kind]]) -> bool:
        key: str = spread.topology_key
        shape = self._shapes[kind[1]]
        keys = [s.topology_key for s in shape.spread if s.when_unsatisfiable == "DoNotSchedule"]
        counts: Counter[str] = Counter()
        for other in self._hosts:
            domain = other.domain(key)
            fits = any(wants_node(shape, labels) for labels in other.labels)
            if domain is None or (spread.node_affinity_policy == "Honor" and not fits):
                continue
            if any(other.values(k) == {None} for k in keys):  # a node counts if it has the labels of all of them
                continue
            if spread.node_taints_policy == "Honor" and not tolerates(shape, other.taints):
                continue
            there = sum(n for k, n in here[id(other)].items() if self._matches(k, kind, spread))
            if there or not other.leaving:  # a domain of nodes that leave, without such pods, goes with them
                counts[domain] += there
        mine = host.domain(key)
        if mine is None:
            return False
        enough = len(counts) >= (spread.min_domains or 0)
        least = min(counts.values(), default=0) if enough else 0
        own = self._matches(kind, kind, spread)
        return bool(counts[mine] + own - least <= spread.max_skew)

    def _near(self, host: Host, kind: Kind, here: Mapping[int, Counter[Kind]]) -> bool:
        """Required affinity: pods that match all terms, in the domain of each; or nobody matches anywhere, and the pod
        matches its own terms."""
        terms = [term for term in self._shapes[kind[1]].affinity if not term.weight]
        if not terms:
            return True

        def friends(other: Host) -> bool:
            return any(n and all(self._matches(k, kind, t) for t in terms) for k, n in here[id(other)].items())

        if any(None in host.values(term.topology_key) for term in terms):
            return False
        keys = [term.topology_key for term in terms]
        labelled = [other for other in self._hosts if any(None not in other.values(key) for key in keys)]
        there = [other for other in labelled if friends(other)]
        if not there:
            return all(self._matches(kind, kind, term) for term in terms)
        return host in there or all(
            host.values(term.topology_key) <= {other.domain(term.topology_key) for other in there} for term in terms
        )
