"""The golden tests' composition root: what pytest loads by the entry point `kerf-golden`.

It is loaded in every run of pytest where kerf is installed: it imports late.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kerf.replay.golden.pytest_plugin import MANIFESTS, RECORD, GoldenPlugin, Held

if TYPE_CHECKING:
    from kerf.engine.record.store import Store
    from kerf.replay.golden.rerun import Rerun


def open_folder(folder: Path) -> Store:
    from kerf.adapters.store.files.golden import GoldenStore

    return GoldenStore(folder)


def write_folder(rerun: Rerun, folder: Path) -> list[str]:
    """Writes all files of a golden record, or on an error none, and gives the names of those that changed."""
    from kerf.adapters.store.files.golden import BLOBS, DECISIONS, RECORD, write_golden
    from kerf.adapters.store.files.private_files import write_whole

    changed = []
    with TemporaryDirectory(dir=folder.parent, prefix=".golden-") as scratch:
        fresh = Path(scratch)
        write_golden(rerun, fresh)
        for name in (RECORD, DECISIONS, BLOBS):
            old = folder / name
            if not old.is_file() or old.read_bytes() != (fresh / name).read_bytes():
                changed.append(name)
                write_whole(old, (fresh / name).read_bytes(), replace=True)
    return changed


def assertions_in(policy: Path) -> list[str]:
    """The names of a policy's assertions."""
    from kerf.adapters.cli.checking.policy_file import policy_of

    return [assertion.name for assertion in policy_of(policy)]


def hold(policy: Path, case: Path) -> Held:
    """Holds the record in a folder, or a simulation of its manifests, against a policy."""
    from kerf.adapters.cli.checking.policy_file import policy_of
    from kerf.adapters.cli.checking.subjects import store_of, subjects
    from kerf.adapters.cli.render.policies.text import result_lines
    from kerf.replay.policies.check import hold_against
    from kerf.replay.policies.outcomes import HOLDS

    manifests = sorted(str(file) for file in case.iterdir() if file.suffix in MANIFESTS and file != policy)
    (subject,) = subjects([str(case)] if (case / RECORD).is_file() else manifests, None, None)
    with store_of(subject) as store:
        results = hold_against(store, policy_of(policy), subject.name).results
    return [(one.name, "" if one.outcome == HOLDS else "\n".join([one.name, *result_lines(one)])) for one in results]


plugin = GoldenPlugin(open_folder, write_folder, assertions_in, hold)
