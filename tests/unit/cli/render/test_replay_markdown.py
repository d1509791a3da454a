"""A modelled answer as Markdown keeps modelled and recorded figures in tables of their own."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.cli.render.markdown.replay import replay_markdown
from kerf.replay.modelled.comparison import Modelled
from kerf.replay.modelled.figures import Figures

FIGURES = Figures(cost=2.0, node_hours=10.0, evictions=4, pending_seconds=90.0, launched=3, gone=1, running=2)
HOUR = 3_600_000
ANSWER = Modelled(
    since=1_767_225_600_000, until=1_767_225_600_000 + HOUR, changes=("nodepool/<b> spec.weight: 1 → 2",),
    recorded=FIGURES, unchanged=FIGURES, changed=replace(FIGURES, cost=1.0), errors={"cost": 0.0}, most=0.1, holds=True,
    horizon=1_767_225_600_000 + HOUR, assumptions=("pods come as they did",),
)  # fmt: skip


def test_modelled_and_recorded_figures_stand_apart() -> None:
    lines = replay_markdown(ANSWER).splitlines()
    assert lines[0].startswith("### kerf replay, modelled from 2026-01-01T00:00:00.000Z")
    assert "- `nodepool/<b> spec.weight: 1 → 2`" in lines
    assert "| cost | $2.0000 | $1.0000 | -$1.0000 (-50%) |" in lines
    recorded = lines.index("| how good is the model? | recorded | modelled, unchanged | error |")
    assert lines[recorded + 2] == "| cost | $2.0000 | $2.0000 | 0.0% |"
    assert lines[-1] == "- pods come as they did"


def test_an_answer_that_does_not_hold_says_so() -> None:
    assert "**This does not hold" in replay_markdown(replace(ANSWER, holds=False))
    assert "**This does not hold" not in replay_markdown(ANSWER)
