"""What a bundle holds, as text or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.adapters.store.files.bundle_format import BundleInfo
from kerf.projections.prose.amounts import count, moment

if TYPE_CHECKING:
    from kerf.adapters.cli.bundles.signing import Signed


def print_bundle(info: BundleInfo, file: Path, *, json: bool) -> None:
    """Print what a bundle holds. `file` is where it lies."""
    if json:
        emit_json(info)
        return
    printer = Printer()
    printer.line(f"{file}: positions {info.first} to {info.last} of record {info.record}", "title")
    why = "left out, for their names" if info.sanitised else "missing in the source"  # whole NodeClasses, at least
    printer.line(f"{count(info.blobs, 'blob')}" + (f", {info.missing} {why}" if info.missing else ""))
    if info.based:
        before = f", and what is kept from before ({info.kept} of claims and decisions)" if info.kept else ""
        printer.line(f"it begins with the state after position {info.first - 1}{before}")
    if info.snapshots:
        printer.line(f"{count(info.snapshots, 'snapshot')} of the state, which kerf verify makes again")
    printer.line(f"made {moment(info.created)} by kerf {info.engine}, format {info.format}")
    printer.line(f"chain {info.chain}")
    if info.unknown:
        printer.line(f"entries of a newer kerf: {info.unknown:,}" + (", left empty" if info.sanitised else ""))
    printer.line("names are pseudonyms" if info.sanitised else "names are as they were")


def print_signed(signed: Signed, *, json: bool) -> None:
    """Print whose signature holds, and of what."""
    if json:
        emit_json(signed)
        return
    printer, info = Printer(), signed.bundle
    printer.line(f"{signed.file}: signed with the key {signed.key} ({signed.signature})", "title")
    printer.line(f"positions {info.first} to {info.last} of record {info.record}")
    printer.line(f"chain {info.chain}")
    printer.line(f"trusted comment: {' '.join(signed.comment.split())}")
    printer.line(f"public key {signed.public_key}")
