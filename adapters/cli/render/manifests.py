"""Manifests as YAML, and what kerf says of them as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import yaml

from kerf.adapters.cli.input.validation import Checked, count_verdicts
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import counted
from kerf.projections.prose.printable import printable


class _Dumper(yaml.CSafeDumper):
    """Writes no aliases. In C, since 50 MB of strings take 20 s otherwise."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def print_yaml(documents: Iterable[dict[str, Any]]) -> None:
    """Write documents to standard output, their fields in the order given."""
    text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    if printable(text) != text:  # written again with escapes for all that is not ASCII
        text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120)
    sys.stdout.write(text)


def verdicts_text(out: Printer, checked: list[Checked]) -> None:
    """Each object with what is wrong with it, and the count."""
    for manifest in checked:
        if manifest.verdict == "unchecked":
            continue
        out.line(
            f"{' '.join(dict.fromkeys((manifest.place, manifest.object)))}: {manifest.verdict}",
            "error" if manifest.verdict == "refused" else "good",
        )
        for wrong in manifest.violations:
            where = f" {wrong.path}:" if wrong.path else ""
            hint = f". {wrong.hint}" if wrong.hint else ""
            out.indented().line(f"{wrong.code}{where} {wrong.message}{hint}")
        for note in manifest.notes:
            out.indented().line(f"note: {note}", "warning")
    count = count_verdicts(checked)
    others = f"; {count['unchecked']} of other kinds not checked" if count["unchecked"] else ""
    objects = counted(count["accepted"] + count["refused"], "object")
    out.line(f"{objects}: {count['accepted']} accepted, {count['refused']} refused{others}", "title")
