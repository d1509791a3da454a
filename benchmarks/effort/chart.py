"""Draws lines as a small SVG, with round marks and their values."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

WIDTH, HEIGHT, EDGE = 560, 260, 48
COLOURS = "#1f77b4", "#d62728", "#2ca02c", "#9467bd"
"""Of the lines, in their order."""


class Line(Struct, frozen=True):
    """A named line through points (x, y)."""

    name: str
    points: list[tuple[float, float]]


def drawn(lines: Sequence[Line], across: str, up: str) -> str:
    """The SVG. Points stand at equal distances across, because efforts double; `across` and `up` name the axes."""
    most = max((y for line in lines for _, y in line.points), default=0.0) or 1.0
    marks = [x for x, _ in lines[0].points]
    step = (WIDTH - 3 * EDGE) / max(1, len(marks) - 1)
    places = {x: EDGE + number * step for number, x in enumerate(marks)}

    def height(y: float) -> float:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * max(0.0, y) / most

    parts = [_text(places[x], HEIGHT - EDGE + 16, f"{x:g}", "middle") for x in marks]
    parts += [_text(WIDTH / 2, HEIGHT - 8, across, "middle"), _text(EDGE, 20, up, "middle")]
    parts.append(f'<path d="M{EDGE} 28V{HEIGHT - EDGE}H{WIDTH - 2 * EDGE}" fill="none" stroke="#888"/>')
    for line, colour in zip(lines, COLOURS, strict=False):
        points = [(places[x], height(y)) for x, y in line.points]
        path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y in points]
        last = line.points[-1][1]
        parts.append(_text(points[-1][0] + 8, points[-1][1] + 4, f"{line.name} {last:g}", "start", colour))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#444") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'
