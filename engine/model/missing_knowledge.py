"""What an imported record does not know: a closed list of codes, each with the words for it.

An importer names what its format cannot tell (F-30, F-54, F-94, F-109, F-143). Commands that need it say so with the
error KERF211, and never take its absence for a fact.
"""

from __future__ import annotations

from kerf.engine.model.reasons import ReasonCode


class Missing(ReasonCode):
    """One thing that a partial record lacks: its code, and the words for it."""

    ACTORS = "actors", "who asked for a change"
    BEGINNING = "beginning", "what was there before its first entry"
    BINDINGS = "bindings", "which pod ran on which node"
    CATALOGUE = "catalogue", "instance types and what they offer"
    CAUSES = "causes", "why some nodes were removed"
    DECISIONS = "decisions", "what a controller decided, and why"
    EVICTIONS = "evictions", "which pods left which node by eviction"
    KEPT = "kept", "why a node was kept"
    MARKET = "market", "what the cloud really offers, and for how much"
    NODES = "nodes", "nodes and NodeClaims"
    PODS = "pods", "pods and what they request"
    POLICY = "policy", "NodePools, NodeClasses, budgets and settings"
    PRICES = "prices", "prices"
    SETTINGS = "settings", "the controller's settings and feature gates"


OF_CAPTURES = (Missing.MARKET, Missing.SETTINGS)
"""What a captured record may lack. A history lacks more: CATALOGUE and POLICY."""
OF_HISTORIES = tuple(code for code in Missing if code not in OF_CAPTURES)


def words_of(code: str) -> str:
    """The words for a recorded code; the code itself if this engine does not know it."""
    return next((known.sentence for known in Missing if known == code), code)
