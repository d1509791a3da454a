"""A step: what a lifecycle decider concludes about one claim, and when an effect may be asked for again."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.engine.nodeclaim.claim import Effect, NodeClaim
from kerf.engine.record.decisions import Intent

VISIBLE_WITHIN = 60_000
"""How long (ms) an effect that was answered well may take to show in a watch. After that it is asked for again."""


class Step(Struct, frozen=True):
    """`events` and `intents` are recorded now. `reason` says why, or what is waited for. `due` is when to look again
    although nothing changed (ms since the epoch, 0 for never)."""

    events: tuple[Struct, ...] = ()
    intents: tuple[Intent, ...] = ()
    reason: Reason = Reason.of(LifecycleCode.WAITING)
    due: int = 0


def wait(code: ReasonCode, *, due: int = 0, **params: str | int | float | list[str]) -> Step:
    """Nothing is done now, for the reason `code`."""
    return Step(reason=Reason.of(code, **params), due=due)


def soonest(*times: int) -> int:
    """The earliest of the given times; 0 stands for never."""
    return min((t for t in times if t), default=0)


def may_ask(effect: Effect | None, now: int) -> bool:
    """Whether an effect may be asked for now: never in flight twice, a refused one after its back-off, one that was
    answered well again when it did not become visible."""
    if effect is None:
        return True
    if effect.ok is None:
        return False
    return now >= ask_again_at(effect)


def ask_again_at(effect: Effect | None) -> int:
    """When an effect that is not to be asked for now may be; 0 while it is in flight (its answer will come)."""
    if effect is None or effect.ok is None:
        return 0
    return effect.answered + VISIBLE_WITHIN if effect.ok else effect.retry_at


def ask(claim: NodeClaim, key: str, intent: Intent, now: int, *, code: ReasonCode, due: int = 0) -> Step:
    """Asks for one effect, or waits until it may be."""
    effect = claim.effect(key)
    if may_ask(effect, now):
        return Step(intents=(intent,), reason=Reason.of(code), due=due)
    code = LifecycleCode.WAITING_FOR_EFFECT
    if effect is not None and effect.ok is not None:
        code = LifecycleCode.WAITING_TO_REPEAT if effect.ok else LifecycleCode.WAITING_TO_RETRY
    return wait(code, effect=key, due=soonest(due, ask_again_at(effect)))
