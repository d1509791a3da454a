"""The recorded run beside a modelled one, asked from the page: the answer of `kerf replay`, and the model's curves."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from kerf.adapters.cli.replaying.text import ROWS, checked_row, compared_row, horizon_line, replay_text
from kerf.adapters.store.open import open_record
from kerf.adapters.web.commands import Commands
from kerf.adapters.web.rendered import LinesPrinter, TextLine
from kerf.adapters.web.whatif import changed_by, manifest_of, told_input
from kerf.engine.passwords import without_password
from kerf.projections.explorer.curves import Curves, CurvesFold
from kerf.replay.modelled.comparison import Modelled
from kerf.replay.time_travel.record_beginning import base_as_entries

POINTS = 400


class Table(Struct, frozen=True):
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


class ModelledAnswer(Struct, frozen=True, kw_only=True):
    """`kerf replay`: `checked` has what was recorded beside the model without a change, with the model's error;
    `compared` the model without and with a change, if one was asked for. `horizon` says up to when the model holds.
    `curves` are those of the modelled run, with the change if there is one."""

    holds: bool
    since: int
    until: int
    horizon: str
    checked: Table
    compared: Table | None
    curves: Curves
    text: list[TextLine]
    command: str


class ModelledRuns:
    """Asks of one record."""

    def __init__(self, record: str, commands: Commands) -> None:
        self._record, self._commands = record, commands

    async def __call__(self, flag: str = "", change: str = "", begin: str = "", end: str = "") -> ModelledAnswer:
        """The recorded workload in the model, as it was or with something changed (`flag` and `change` are those of
        `whatif`), from `begin` to `end`.

        Raises InputError (KERF200), and what the command refuses with the command's code.
        """
        options = changed_by(flag, change) if flag or change else []
        options += [f"--from={begin}"] if begin else []
        options += [f"--until={end}"] if end else []
        with TemporaryDirectory(prefix="kerf-model-") as folder:
            kept = Path(folder) / "modelled.kerf"
            told = await self._commands.run(
                "replay",
                *options,
                "--anyway",
                "--json",
                f"--record={kept}",
                "--",
                self._record,
                given=manifest_of(flag, change),
            )
            answer = msgspec.json.decode(told, type=Modelled)
            curves = _curves(kept, answer)
        lines = LinesPrinter()
        replay_text(lines, answer)
        changed = answer.changed
        head = ("MODELLED", "UNCHANGED", "CHANGED", "DIFFERENCE")
        return ModelledAnswer(
            holds=answer.holds,
            since=answer.since,
            until=answer.until,
            horizon=horizon_line(answer),
            checked=Table(("", "RECORDED", "MODELLED", "ERROR"), [checked_row(row, answer) for row in ROWS]),
            compared=Table(head, [compared_row(row, answer.unchanged, changed) for row in ROWS]) if changed else None,
            curves=curves,
            text=lines.lines,
            command=" ".join(("kerf replay", without_password(self._record), *options)) + told_input(flag),
        )


def _curves(record: Path, answer: Modelled) -> Curves:
    fold = CurvesFold()
    with closing(open_record(str(record))) as store:
        for entry in base_as_entries(store):
            fold.apply(entry)
        for entry in store.scan():
            fold.apply(entry)
    return fold.steps.curves(answer.since, answer.until, POINTS)
