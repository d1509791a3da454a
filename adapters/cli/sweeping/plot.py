"""Draw the trade-off between cost and disruption as SVG: each configuration a point, the front a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from kerf.adapters.cli.sweeping.plan import UNCHANGED
from kerf.adapters.cli.sweeping.ranking import Ranked
from kerf.projections.prose.printable import printable

WIDTH, HEIGHT, MARGIN = 840, 520, 70
_MOST_LABELS = 40
_STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#999}.point{fill:#8899aa}.front{fill:#0a7d4b}"
    ".unchanged{fill:#c0392b}.line{fill:none;stroke:#0a7d4b;stroke-dasharray:4 3}"
)


def tradeoff_svg(ranked: Sequence[Ranked]) -> str:
    """Return the plot: cost in USD to the right, evictions upwards. Points on the front are green, the unchanged one
    is red."""
    x = _scale([one.figures.cost for one in ranked], MARGIN, WIDTH - 2 * MARGIN)
    y = _scale([float(one.figures.evictions) for one in ranked], HEIGHT - MARGIN, MARGIN / 2)
    front = sorted((x(one.figures.cost), y(one.figures.evictions)) for one in ranked if not one.beaten_by)
    left, right, bottom = MARGIN - 10, WIDTH - MARGIN, HEIGHT - MARGIN + 10
    costs, evictions = [one.figures.cost for one in ranked], [one.figures.evictions for one in ranked]
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{_STYLE}</style>',
        f'<path class="axis" fill="none" d="M{left} 20V{bottom}H{right}"/>',
        f'<text x="{right}" y="{HEIGHT - 20}" text-anchor="end">cost, USD (modelled)</text>',
        f'<text x="{left}" y="14">evictions (modelled)</text>',
        *(f'<text x="{x(cost):.0f}" y="{bottom + 16}">{cost:,.2f}</text>' for cost in sorted({min(costs), max(costs)})),
        *(f'<text x="5" y="{y(number):.0f}">{number:,}</text>' for number in sorted({min(evictions), max(evictions)})),
        f'<polyline class="line" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in front)}"/>',
    ]
    for place, one in enumerate(ranked):
        kind = "unchanged" if one.configuration == UNCHANGED else "point" if one.beaten_by else "front"
        a, b, name = x(one.figures.cost), y(one.figures.evictions), escape(printable(one.configuration))
        said = f"{name}: {one.figures.cost:,.4f} USD, {one.figures.evictions:,} evictions"
        drawn.append(f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="5"><title>{said}</title></circle>')
        if place < _MOST_LABELS:
            drawn.append(f'<text x="{a + 8:.1f}" y="{b - 6:.1f}">{name}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def _scale(values: Sequence[float], begin: float, end: float) -> Callable[[float], float]:
    """Return where a value stands between two places, of which the first is that of the lowest."""
    lowest, highest = min(values), max(values)
    size = (highest - lowest) or 1.0
    return lambda value: begin + (value - lowest) / size * (end - begin)
