"""What if, asked from the page: the answer of `kerf whatif`."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from kerf.adapters.web.commands import Commands
from kerf.adapters.web.rendered import TextLine
from kerf.engine.errors import InputError
from kerf.engine.passwords import without_password

Flag = Literal["set", "apply", "delete", "remove", "price", "no-capacity", "setting"]
FLAGS: tuple[str, ...] = get_args(Flag)
"""The changes that the page may ask for: those of `kerf whatif` that name no file. The manifest to apply is given
itself."""
_APPLY = "apply"
_STYLES = {"+": "good", "-": "error", "~": "warning"}
_WITHOUT, _WITH = "Without the change: ", "With the change: "


class WhatIfAnswer(Struct, frozen=True, kw_only=True):
    """The text of `kerf whatif`: the next decision after a moment, with and without a change. `unchanged` and `changed`
    sum up the two decisions."""

    unchanged: str
    changed: str
    text: list[TextLine]
    command: str


class WhatIf:
    """Asks of one record."""

    def __init__(self, record: str, commands: Commands) -> None:
        self._record, self._commands = record, commands

    async def __call__(self, flag: str, change: str, at: str = "") -> WhatIfAnswer:
        """The next decision after a moment, with something changed. `flag` is that of `kerf whatif`: set, apply,
        delete, remove, price, no-capacity or setting; `change` is its value, or the manifest to apply as text.

        Raises InputError (KERF200), and what the command refuses with the command's code.
        """
        options = [*changed_by(flag, change), *([f"--at={at}"] if at else [])]
        given = manifest_of(flag, change)
        lines = (await self._commands.run("whatif", *options, "--", self._record, given=given)).splitlines()
        return WhatIfAnswer(
            unchanged=_after(_WITHOUT, lines),
            changed=_after(_WITH, lines),
            text=[TextLine(line, _STYLES.get(line.strip()[:2].strip(), "info")) for line in lines],
            command=" ".join(("kerf whatif", without_password(self._record), *options)) + told_input(flag),
        )


def changed_by(flag: str, change: str) -> list[str]:
    """Return the option of a change. Raises InputError (KERF200) for what the page may not ask for."""
    if flag not in FLAGS:
        raise InputError(f"{flag[:40]!r} is no change", hint=f"Known: {', '.join(FLAGS)}", code="KERF200")
    return [f"--{flag}={'-' if flag == _APPLY else change}"]


def manifest_of(flag: str, change: str) -> str:
    """Return what a command reads for a change on its standard input: no file is named."""
    return change if flag == _APPLY else ""


def told_input(flag: str) -> str:
    """Return the end of the command that makes a change: where its manifest comes from."""
    return " < manifest.yaml" if flag == _APPLY else ""


def _after(title: str, lines: list[str]) -> str:
    return next((line.removeprefix(title).strip() for line in lines if line.startswith(title)), "")
