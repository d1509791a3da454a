"""Count the nodes that have drifted, by what they drifted by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.projections.status.nodeclaim import drift_condition


def drifted_by(claims: Iterable[NodeClaim]) -> dict[str, int]:
    """Return how many of these claims have drifted, by the reason of their condition Drifted (C-2)."""
    return dict(sorted(Counter(drift_condition(claim.drift) for claim in claims if claim.drift is not None).items()))
