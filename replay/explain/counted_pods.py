"""Say which pods a topology rule counts that leaves a pod no place: its reason names the rule and the domains alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape, Selector
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.scheduling.topology.rules import AffinityRule, AntiAffinityRule, SpreadRule


class CountedPods(Struct, frozen=True):
    """The pods that a `rule` of a pod over a label (`key`) counts: by their labels, in `namespaces` (none: its own).
    With fewer than `min_domains` the fewest pods of a domain count as 0 (S-138)."""

    rule: str
    key: str
    selector: Selector | None
    namespaces: tuple[str, ...] = ()
    min_domains: int = 0


def counted_pods(reasons: Sequence[Reason], shape: PodShape) -> tuple[CountedPods, ...]:
    """Return what the pod's own rules count of which its reasons speak, each once."""
    named = {(r.params.get("rule"), r.params.get("key")) for r in reasons if r.code == SchedulingCode.TOPOLOGY}
    found: list[CountedPods] = []
    for counted in _rules(shape):
        if (counted.rule, counted.key) in named and counted not in found:
            found.append(counted)
    return tuple(found)


def _rules(shape: PodShape) -> Iterator[CountedPods]:
    for spread in shape.spread:
        if spread.when_unsatisfiable == HARD_SPREAD:
            yield CountedPods(
                SpreadRule.kind, spread.topology_key, spread.selector, min_domains=spread.min_domains or 0
            )
    for rule, terms in ((AffinityRule, shape.affinity), (AntiAffinityRule, shape.anti_affinity)):
        for term in terms:
            if not term.weight:
                yield CountedPods(rule.kind, term.topology_key, term.selector, term.namespaces)
