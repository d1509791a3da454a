"""NodePools of which nothing is launched, as text."""

from __future__ import annotations

from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.amounts import moment
from kerf.replay.explain.pools_not_asked import DELETING, GONE, NOT_READY, STATIC, PoolNotAsked

_WHY = {NOT_READY: "it is not ready", STATIC: "it is static", DELETING: "it is being deleted"}


def not_asked_text(printer: Printer, pools: tuple[PoolNotAsked, ...]) -> None:
    """A line for each NodePool that launches nothing for pods that wait."""
    for pool in pools:
        if pool.why == GONE:
            printer.line(f"NodePool {pool.node_pool} was deleted at {moment(pool.gone)}", "warning")
            continue
        printer.line(f"NodePool {pool.node_pool} launches nothing for pods now: {not_asked_words(pool)}", "warning")


def not_asked_words(pool: PoolNotAsked) -> str:
    """Why a NodePool that is there launches nothing for pods that wait."""
    return ", ".join(map(condition_words, pool.wrong)) or _WHY[pool.why]


def condition_words(wrong: Reason) -> str:
    """What a condition that is not met says."""
    message = wrong.params.get("message")
    return f"{wrong.code}: {message}" if message else wrong.code
