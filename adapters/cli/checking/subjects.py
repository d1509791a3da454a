"""What a policy is held against: each record that is named, and one simulation of all manifests that are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kerf.adapters.cli.command_table import STANDARD_INPUT
from kerf.adapters.cli.input.documents import read_documents
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.simulate.flags import simulated_time
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.cli.simulate.runtime import SIMULATE_HOLDER
from kerf.adapters.cli.simulate.simulation_run import AFTERWARDS, SimulationRun, last_action
from kerf.adapters.simulation.build import START
from kerf.adapters.store.files.golden import RECORD
from kerf.adapters.store.open import file_of, in_database
from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings
from kerf.engine.passwords import without_password
from kerf.engine.record.store import Store
from kerf.replay.errors import PolicyRefused

SIMULATED = "simulated.kerf"
"""How the record of a simulation is called that nobody keeps."""
_MANIFESTS = (".yaml", ".yml", ".json")


class Subject(Struct, frozen=True):
    """A record by its path or URL, or manifests to simulate, for as long as `until` says (by default for two hours
    after their last action). `keep` is the file for the simulation's record."""

    record: str = ""
    manifests: tuple[Path, ...] = ()
    until: str | None = None
    keep: Path | None = None

    @property
    def name(self) -> str:
        """What commands and results call it: without the password of a database."""
        return without_password(self.record) or str(self.keep or SIMULATED)


def subjects(named: Sequence[str], until: str | None, keep: Path | None) -> list[Subject]:
    """Sort what was named into records and manifests. Raises PolicyRefused for `keep` without manifests."""
    manifests = tuple(Path(name) for name in named if _is_manifests(name))
    records = [Subject(record=name) for name in named if not _is_manifests(name)]
    if manifests:
        return [*records, Subject(manifests=manifests, until=until, keep=keep)]
    if until is not None or keep is not None:
        where = "--until" if until is not None else "--record"
        raise PolicyRefused("there are no manifests to simulate", where=where, hint="Name YAML files, or leave it out")
    return records


@contextmanager
def store_of(subject: Subject) -> Iterator[Store]:
    """The record of a subject; manifests are simulated first.

    Raises StoreError, and InputError for a document that a simulation refuses: a policy held against the rest of them
    would say nothing.
    """
    if subject.record:
        with opened(subject.record, decides=True) as store:
            yield store
        return
    documents = read_documents(subject.manifests).named()
    for refused in documents.refused:
        raise refused.error
    named = subject.until
    length = last_action(documents.good) + AFTERWARDS if named is None else simulated_time(named)
    with new_record(subject.keep, SIMULATE_HOLDER, say=print_error) as new:
        run = SimulationRun(documents, new.store, start=START, seed=0, quiet=True, settings=Settings(nominations=True))
        new.kept = run.accepted
        run.go(length)
        for refusal in run.report(None).refused:
            where = f"{refusal.object} {refusal.field}".strip()
            raise InputError(refusal.message, where=where, hint="Mend the document", code=refusal.code)
        yield new.store


def _is_manifests(name: str) -> bool:
    if in_database(name) or name == STANDARD_INPUT:  # a record cannot be read from a pipe
        return name == STANDARD_INPUT
    path = file_of(name)
    return not (path / RECORD).is_file() if path.is_dir() else path.suffix in _MANIFESTS
