"""What the pods of a class ask of a place, apart from room in it (S-94, S-99).

Classes that differ only in their requests share one demand, and so share searches. For a claim in some
`NarrowedTemplate`, `options` says into which narrower templates the claim may go to take the pod. The answer is kept
until a count that it rests on changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import HostPort, Toleration
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.matching.taints import untolerated
from kerf.engine.scheduling.topology.rules import AffinityRule, Domain, DomainCount, Rule

Option = tuple[int, NarrowedTemplate]
"""A state that a claim may be narrowed to, and its rank: lower ones come first (S-140, S-156)."""

LabelValues = tuple[str, ...] | None
"""What a label of a node is, or may come to be; () if it is missing, None if nothing is known."""

NodeDomains = tuple[LabelValues, ...]
"""Of a node, for several keys."""

NO_OPTIONS: tuple[Option, ...] = ()


class Demand:
    """What the pods of one class ask of a place, apart from room.

    * `host_rules`: topology rules over hostnames. `rules`: those over other keys.
    * `requirements`: what it asks of every node. `of_new_nodes`: what it asks of nodes that are yet to be launched,
      these included.
    * `alternatives`: where the pod's volumes can be, in order (S-156); empty if they ask nothing.
    * `sought`: counts that include this pod and that affinity terms of other pods look at. While such a count is empty,
      the pod pins its node to one domain, so that those pods can follow in this pass (unlike S-145).
    """

    def __init__(
        self,
        number: int,
        requirements: Requirements,
        of_new_nodes: Requirements,
        alternatives: tuple[Requirements, ...],
        tolerations: tuple[Toleration, ...],
        ports: tuple[HostPort, ...],
        rules: Iterable[Rule],
        sought: tuple[DomainCount, ...],
    ) -> None:
        self.number = number
        self.requirements = requirements
        self.of_new_nodes = requirements.merged(of_new_nodes) if of_new_nodes else requirements
        self.alternatives = alternatives
        self.tolerations = tolerations
        self.ports = ports
        everything: tuple[Rule, ...] = tuple(rules)
        self.host_rules = tuple(rule for rule in everything if rule.key == HOSTNAME)
        self._leads = tuple(rule for rule in self.host_rules if isinstance(rule, AffinityRule))
        self.rules = tuple(rule for rule in everything if rule.key != HOSTNAME)
        self.asks = bool(everything)  # anything of the pods around it
        self.sought = tuple(count for count in sought if count.key != HOSTNAME)
        self.keys = tuple(sorted({r.key for r in self.rules} | {c.key for c in self.sought}))
        self._by_key = tuple(
            (key, tuple(r for r in self.rules if r.key == key), tuple(c for c in self.sought if c.key == key))
            for key in self.keys
        )
        needed = {rule.key for rule in self.rules if rule.needs_label}
        self._dispensable = {rule.key for rule in self.rules} - needed  # labels that a node may as well lack (S-137)
        watched: dict[int, DomainCount] = {rule.count.number: rule.count for rule in self.rules}
        watched |= {count.number: count for count in self.sought}
        self._watched = tuple(watched.values())
        self._known: dict[NarrowedTemplate, tuple[int, tuple[Option, ...]]] = {}
        self._never: dict[NarrowedTemplate, bool] = {}

    # ── nodes that exist, and hosts ──────────────────────────────────────

    def allows_host(self, host: Domain) -> bool:
        """Whether the rules over hostnames allow a host. A refusal is final, unless the demand `follows`."""
        for rule in self.host_rules:  # noqa: SIM110 (a generator would take twice as long in this hot loop)
            if not rule.allows(host):
                return False
        return True

    def refused_before(self, host: Domain) -> bool:
        """Whether the host was refused for good before any pod was placed."""
        return any(rule.final and rule.refused_before(host) for rule in self.host_rules)

    @property
    def follows(self) -> frozenset[Domain] | None:
        """The only hosts that affinity over the hostname allows; None if there is no such rule, or no pod to follow
        yet."""
        left: frozenset[Domain] | None = None
        for rule in self._leads:
            if rule.count.total:
                there = frozenset(host for host, pods in rule.count.counts.items() if pods)
                left = there if left is None else left & there
        return left

    def allows_domains(self, domains: NodeDomains) -> bool:
        """Whether the rules over other keys allow a node with these values of `keys`. Where a label is not known yet,
        the rules must allow each value that it may get."""
        for values, (_, rules, _) in zip(domains, self._by_key, strict=True):
            for rule in rules:
                if not _allows_node(rule, values):
                    return False
        return True

    def refusing_node(self, host: str, domains_of: Callable[[str], LabelValues]) -> Rule | None:
        """The first rule that refuses a node, None if none does."""
        for rule in (*self.host_rules, *self.rules):
            if not _allows_node(rule, (host,) if rule.key == HOSTNAME else domains_of(rule.key)):
                return rule
        return None

    def refusing(self, template: Template, narrowed: NarrowedTemplate, host: Domain) -> Rule | None:
        """The first rule that leaves a claim no domain; None if each rule alone leaves some."""
        for rule in self.host_rules:
            if not rule.allows(host):
                return rule
        for rule in self.rules:
            without = not rule.needs_label and template.lacks(narrowed, rule.key)
            if not without and not any(rule.allows(domain) for domain in template.domains(narrowed, rule.key)):
                return rule
        return None

    # ── claims ──────────────────────────────────────

    @property
    def version(self) -> int:
        """A number that changes whenever the answer of `options` may change."""
        version = 0
        for count in self._watched:
            version += count.version
        return version

    def never(self, template: Template, narrowed: NarrowedTemplate) -> bool:
        """Whether taints or requirements rule this narrowed template out, whatever is counted."""
        answer = self._never.get(narrowed)
        if answer is None:
            answer = self._never[narrowed] = bool(untolerated(template.pool.taints, self.tolerations)) or isinstance(
                template.step(narrowed, self.of_new_nodes), tuple
            )
        return answer

    def options(self, template: Template, narrowed: NarrowedTemplate) -> tuple[Option, ...]:
        """What a claim of this narrowed template may be narrowed to for one pod, lowest rank first."""
        version = self.version
        known = self._known.get(narrowed)
        if known is None or known[0] != version:
            fresh = self._options(template, narrowed)
            if known is not None and known[1] == fresh:
                fresh = known[1]  # the same object: callers compare by identity
            known = self._known[narrowed] = (version, fresh)
        return known[1]

    def _options(self, template: Template, narrowed: NarrowedTemplate) -> tuple[Option, ...]:
        if self.never(template, narrowed):
            return NO_OPTIONS
        base = template.step(narrowed, self.of_new_nodes)
        assert isinstance(base, NarrowedTemplate)
        if not self.alternatives:
            return self._in_domains(template, base)
        found: list[Option] = []
        for alternative in self.alternatives:
            there = template.step(base, alternative)
            options = self._in_domains(template, there) if isinstance(there, NarrowedTemplate) else NO_OPTIONS
            worst = found[-1][0] + 1 if found else 0  # whatever the domains: a later alternative is a later choice
            found += [(worst + rank, option) for rank, option in options]
        return tuple(found)

    def _in_domains(self, template: Template, base: NarrowedTemplate) -> tuple[Option, ...]:
        """The options that topology leaves."""
        options: list[Option] = [(0, base)]
        for key, rules, sought in self._by_key:
            options = [
                narrowed for option in options for narrowed in self._narrowed(template, option, key, rules, sought)
            ]
        return tuple(sorted(options, key=lambda option: option[0]))

    def _narrowed(
        self,
        template: Template,
        option: Option,
        key: str,
        rules: tuple[Rule, ...],
        sought: tuple[DomainCount, ...],
    ) -> list[Option]:
        rank, state = option
        domains = template.domains(state, key)
        if key in self._dispensable and template.lacks(state, key):
            return [(rank, template.pin(state, key, ())) if any(rule.pins for rule in rules) else option]
        allowed = tuple(domain for domain in domains if all(rule.allows(domain) for rule in rules))
        pins = any(rule.pins for rule in rules) or any(not count.total or count.evened for count in sought)
        if not pins:
            # A claim whose types leave only these domains says so: it may be given further types later.
            follows = any(isinstance(rule, AffinityRule) for rule in rules)
            if not rules or (allowed == domains and not follows and not template.leaves_open(state, key)):
                return [option] if not rules or allowed else []
            narrowed = [(rank, template.pin(state, key, allowed))] if allowed else []
        else:
            if not rules and not domains:
                return [option]  # a label that nobody defines: there is nothing to pin
            evened = [count for count in sought if count.evened]
            narrowed = [
                (
                    rank
                    + sum(rule.rank(domain) for rule in rules)
                    + sum(count.counts.get(domain, 0) for count in evened),
                    template.pin(state, key, (domain,)),
                )
                for domain in allowed
            ]
        return [option for option in narrowed if option[1].viable]


def _allows_node(rule: Rule, values: LabelValues) -> bool:
    """Whether a rule allows a node whose label has this value, or will have one of these (S-137)."""
    if values is None:
        return False
    return all(map(rule.allows, values)) if values else not rule.needs_label
