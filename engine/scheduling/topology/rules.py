"""The rules of topology: how pods of a class relate to the domains of a label key (S-138…S-148).

A `DomainCount` counts pods per domain. A rule says of one domain whether it may take one more pod now. Counts only
grow during a pass. So `AntiAffinityRule`, and `SpreadRule` over hosts, refuse a domain for good; the others may allow
it later.
"""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.labels import HOSTNAME

Domain = str | int
"""A label's value; for the hostname the number of a claim opened in this pass, which has no name yet."""


class DomainCount:
    """How many pods of one kind are in each domain of a key. A known domain without pods counts 0.

    * Simulations of one cluster share their counts. Each begins with a restart, which sets the counts back to those of
      the cluster as it is, with all its bound pods. `before`: the counts that the latest restart set.
    * `version`: counts changes. `number`: identifies the count.
    * `evened`: pods that are counted pin their node's domain at once, to the one with the fewest (see
      `Problem.careful`).
    """

    __slots__ = ("before", "counts", "evened", "key", "number", "total", "version")

    def __init__(self, number: int, key: str) -> None:
        self.number = number
        self.key = key
        self.counts: dict[Domain, int] = {}
        self.before: Mapping[Domain, int] = {}
        self.total = 0
        self.version = 0
        self.evened = False

    def add(self, domain: Domain, pods: int = 1) -> None:
        self.counts[domain] = self.counts.get(domain, 0) + pods
        self.total += pods
        self.version += 1

    def restart(self, counts: dict[Domain, int], total: int) -> None:
        """Count from here, as if nothing had been counted since."""
        self.before, self.counts = counts, dict(counts)
        self.total = total
        self.version += 1

    def know(self, domain: Domain) -> None:
        """Register a domain (S-128…S-130)."""
        if domain not in self.counts:
            self.counts[domain] = 0
            self.version += 1


class Rule:
    """One rule of a class over one key. `pins`: a node that takes the pod must settle on one domain of the key, because
    later pods depend on it."""

    kind = ""
    final = False
    """A domain that is refused stays refused for the rest of the pass."""
    needs_label = True
    """A node without the label is refused (S-137)."""

    def __init__(self, number: int, count: DomainCount) -> None:
        self.number = number
        self.count = count
        self.key = count.key

    @property
    def pins(self) -> bool:
        return True

    def allows(self, domain: Domain) -> bool:
        raise NotImplementedError

    def refused_before(self, domain: Domain) -> bool:
        """Whether the domain was already refused by the counts that the search restarted from (`before`). Asked only of
        rules that are `final`."""
        raise NotImplementedError

    def rank(self, domain: Domain) -> int:
        """Which of several allowed domains comes first: the lowest."""
        return 0


class SpreadRule(Rule):
    """A topology spread constraint (S-138…S-141). `own`: 1 if it selects its own pod. `asked`: what the pod itself asks
    of the key; only such domains count for the minimum."""

    kind = "spread"

    def __init__(
        self,
        number: int,
        count: DomainCount,
        max_skew: int,
        min_domains: int | None,
        own: int,
        asked: Requirement | None,
    ) -> None:
        super().__init__(number, count)
        self.max_skew, self.min_domains, self.own, self.asked = max_skew, min_domains, own, asked
        self.final = self.key == HOSTNAME
        self._least = 0
        self._at = -1  # the version that `_least` is of

    def allows(self, domain: Domain) -> bool:
        count = self.count
        if self.final:  # S-138, S-139: a node may always be added, so the minimum is 0
            return count.counts.get(domain, 0) + self.own <= self.max_skew
        present = count.counts.get(domain)
        if present is None:
            return False
        least = self._least if self._at == count.version else self.least
        return present + self.own - least <= self.max_skew

    def refused_before(self, domain: Domain) -> bool:
        return self.count.before.get(domain, 0) + self.own > self.max_skew

    def rank(self, domain: Domain) -> int:
        return self.count.counts.get(domain, 0)

    @property
    def least(self) -> int:
        """The global minimum: the pods in the domain with the fewest (S-138)."""
        if self._at != self.count.version:
            self._at = self.count.version
            counts = [n for domain, n in self.count.counts.items() if self.asked is None or self.asked.has(str(domain))]
            self._least = 0 if len(counts) < (self.min_domains or 0) else min(counts, default=0)
        return self._least


class AffinityRule(Rule):
    """Pod affinity: allows domains that have such pods; for the first pod, if it selects itself, any domain
    (S-142…S-145)."""

    kind = "affinity"

    def __init__(self, number: int, count: DomainCount, own: int) -> None:
        super().__init__(number, count)
        self.own = own

    @property
    def first(self) -> bool:
        """Whether the pod may be the first of its kind. As in kube-scheduler, that is so if no domain has such a
        pod."""
        return bool(self.own) and not self.count.total

    @property
    def pins(self) -> bool:
        return self.first

    def allows(self, domain: Domain) -> bool:
        return self.count.counts.get(domain, 0) > 0 or self.first


class AntiAffinityRule(Rule):
    """Pod anti-affinity, in either direction: allows domains without any counted pod (S-146, S-147). A preference
    (`soft`) pins no node, because that would cost money for what may be given up."""

    kind = "anti-affinity"
    final = True
    needs_label = False  # for kube-scheduler such a node is in nobody's domain

    def __init__(self, number: int, count: DomainCount, soft: bool = False) -> None:
        super().__init__(number, count)
        self.soft = soft

    @property
    def pins(self) -> bool:
        return not self.soft

    def allows(self, domain: Domain) -> bool:
        return not self.count.counts.get(domain, 0)

    def refused_before(self, domain: Domain) -> bool:
        return self.count.before.get(domain, 0) > 0
