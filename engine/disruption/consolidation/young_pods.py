"""Pods that came a short while ago: what their move has to save.

A pod that moves twice is down twice, and a replacement that goes soon was launched for little. What was scaled lately
is often scaled again. So where pods came less than ten minutes ago, a command has to save half as much again as these
pods cost on average once it is carried out, or twice what its replacement costs. Later it is made in any case, if it
still saves anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kerf.engine.disruption.cluster import ClusterNode
from kerf.engine.disruption.consolidation.rankings import Fleet
from kerf.engine.disruption.eligibility import Candidate, total_price
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.reasons import Reason

LATELY = 600_000
"""Milliseconds."""
SHARE = 1.5
"""With 1 random scale-ins have a twentieth more evictions, with 0 a fifth; with 2 the fleet is dearer meanwhile."""
MUCH = 2
"""What saves more than so many times its replacement's price is done at once: a new cluster should not wait for it."""
MIN_PRICE = 1e-9
"""Less is what is left of sums (USD per hour)."""


def too_soon(savings: float, candidates: Iterable[Candidate], fleet: Fleet, now: int) -> Reason | None:
    """Why these nodes stay for now although `savings` (USD per hour) would be gained, None if nothing speaks against
    it. `fleet` is that of before."""
    nodes = tuple(candidates)
    count = sum(pod.created > now - LATELY for candidate in nodes for pod in candidate.pods)
    each = SHARE * fleet.cheaper_by(savings).price_of_pod
    replacements = total_price(nodes) - savings
    limit = min(count * each, MUCH * replacements) if replacements > MIN_PRICE else count * each
    if savings > limit or limit < MIN_PRICE:
        return None
    return Reason.of(DisruptionCode.MOVED_LATELY, count=count, savings=savings, limit=limit, each=each)


def settled_at(nodes: Iterable[Candidate | ClusterNode], why: Reason, now: int) -> int:
    """When so many of these nodes' pods have become older that their move saves enough (ms since the epoch), if
    everything else stays as it is. `why` is what `too_soon` says at `now`. 0 if no pod is young."""
    savings, each = (float(str(why.params[name])) for name in ("savings", "each"))
    pods = (pod for node in nodes for pod in node.pods if is_reschedulable(pod))
    come = sorted(pod.created for pod in pods if pod.created > now - LATELY)
    few_enough = math.ceil(savings / each) - 1  # so many young pods cost less than is saved
    settled = come[: max(0, len(come) - max(0, few_enough))]
    return settled[-1] + LATELY if settled else 0
