"""The file of declared changes that `kerf verify` reads and writes."""

from __future__ import annotations

from pathlib import Path

from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.store.files.private_files import write_whole
from kerf.replay.errors import DeclarationRefused
from kerf.replay.verify.declared_changes import NOTHING_DECLARED, DeclaredChanges, changes_document, read_changes
from kerf.replay.verify.report import Report


def declared_changes(read: Path | None, write: Path | None) -> DeclaredChanges:
    """What is declared by the flags: nothing, what a file says, or all of it to find out what a file has to say.

    Raises DeclarationRefused (KERF220).
    """
    if read is not None and write is not None:
        hint = "Write the file first, then verify with it"
        raise DeclarationRefused("changes are declared or found out, not both", where="--write-changes", hint=hint)
    if write is not None:
        return DeclaredChanges(all_of_them=True)
    if read is None:
        return NOTHING_DECLARED
    from kerf.adapters.cli.input.user_document import read_user_document

    return read_changes(read_user_document(read, DeclarationRefused), str(read))


def write_declaration(report: Report, file: Path) -> None:
    """Write the changes that a record has met to a new file, if there are any. Raises StoreError."""
    if not report.declared:
        print_error("Note: there is nothing to declare: every decision is of today's version")
        return
    import yaml  # which takes a twentieth of a command's start

    text = yaml.safe_dump(changes_document(report.declared), sort_keys=False, allow_unicode=True, width=120)
    write_whole(file, text.encode())
    print_error(f"Written to {file}. Say in it why each may differ")
