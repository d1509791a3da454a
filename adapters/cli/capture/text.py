"""What `kerf capture` says of the bundle that it made."""

from __future__ import annotations

from shlex import quote

from kerf.adapters.cli.capture.capture import Captured
from kerf.adapters.cli.render.text import some
from kerf.engine.model.missing_knowledge import words_of
from kerf.projections.prose.amounts import count, moment

SHOWN = 3
"""So many of the objects that cannot be read are shown."""
NO_NODEPOOL = "  There is no NodePool of karpenter.sh/v1 (Karpenter 1.0 and later): kerf plans nothing here"
_KINDS = {"NodeClaimObject": "NodeClaim", "InputRefused": "object that cannot be read"}
_FIRST = ("Node", "Pod", "NodePool", "NodeClaimObject", "PodDisruptionBudget")


def capture_text(captured: Captured) -> list[str]:
    mark = captured.imported
    counts = ", ".join(count(captured.objects.get(kind, 0), _KINDS.get(kind, kind)) for kind in _FIRST)
    market = " and ".join(mark.sources[1:])
    return [
        f"{captured.file}: the cluster at {moment(captured.at)}",
        f"  {counts}",
        f"  Instance types and prices: {market}" if market else "  Instance types and prices are not known",
        *([] if captured.objects.get("NodePool") else [NO_NODEPOOL]),
        *_unread(captured),
        f"  Partial; not in it: {', '.join(words_of(code) for code in mark.lacks)}",
        f"Next: kerf status {quote(captured.file)}",
    ]


def _unread(captured: Captured) -> list[str]:
    lines = [f"  cannot be read, {text}" for text in captured.refused[:SHOWN]]
    if len(captured.refused) > SHOWN:
        lines.append(f"  … and {len(captured.refused) - SHOWN} more")
    if captured.missing:
        lines.append(f"  not served here: {some([path.rpartition('/')[2] for path in captured.missing], 5)}")
    return lines
