"""The bundle that `kerf capture` writes: a live cluster as it is, and what kerf would do next."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import kerf
from kerf.adapters.cli.capture.catalogues import Offers, offers_of
from kerf.adapters.cli.capture.listing import Listing, list_cluster
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.controller.process_clocks import wall_clock
from kerf.adapters.kubernetes.cluster_identity import cluster_uid
from kerf.adapters.kubernetes.read_only_session import ReadingSession
from kerf.adapters.kubernetes.session import Session, connect
from kerf.adapters.store.files.bundle import export_bundle
from kerf.adapters.store.files.private_files import regular_file
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordExists
from kerf.engine.record.observations import Imported, InputRefused, Observation
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime

CAPTURE_HOLDER = "kerf capture"
"""Who writes a captured record."""
LACKS = (Missing.ACTORS, Missing.BEGINNING, Missing.DECISIONS, Missing.EVICTIONS, Missing.SETTINGS)
"""What no list of a cluster's objects tells."""
FIRST_PASSES = 12_000
"""kerf goes on for so long (ms) without further news: the first passes are due, and no move's second look."""


class Captured(Struct, frozen=True):
    """What was captured. `objects` counts by kind; `refused` are objects that kerf cannot read, as in a watch."""

    file: str
    at: int
    imported: Imported
    objects: dict[str, int]
    refused: tuple[str, ...]
    missing: tuple[str, ...]
    position: int
    decisions: int


def capture_cluster(
    file: Path,
    settings: Settings,
    *,
    kubeconfig: Path | None,
    context: str | None,
    types: Path | None = None,
    ask_ec2: bool = False,
) -> Captured:
    """List the cluster and write the bundle. Raises RecordExists (KERF114) for a file that is there, ClusterError,
    Unreachable, NoCluster, InputError and AwsError; there is no file then.
    """
    if regular_file(file) is not None:
        raise RecordExists("there is a file already", where=str(file), hint="Give another name, or remove it first")
    listing, cluster = asyncio.run(_listed(settings, kubeconfig, context))
    return write_capture(file, listing, replace(settings, cluster=cluster), types=types, ask_ec2=ask_ec2)


async def _listed(settings: Settings, kubeconfig: Path | None, context: str | None) -> tuple[Listing, str]:
    session: Session = await connect(kubeconfig, context, kind=ReadingSession)
    try:
        listing = await list_cluster(session, settings)
        return listing, await cluster_uid(session)
    finally:
        await session.close()


def write_capture(
    file: Path, listing: Listing, settings: Settings, *, types: Path | None = None, ask_ec2: bool = False
) -> Captured:
    """Write the bundle of a listing. Raises as `capture_cluster` does."""
    now = wall_clock()
    offers = offers_of(listing, types=types, ask_ec2=ask_ec2, now=now)
    mark = Imported(
        sources=("a live cluster", *offers.sources),
        since=now,
        until=now + 1,
        lacks=tuple(code.value for code in Missing if code in (*LACKS, *offers.lacks)),
        read=len(listing.observations),
        captured=True,
    )
    with new_record(None, CAPTURE_HOLDER) as new:
        entries = _decided(new.store, listing, offers, settings, mark)
        export_bundle(new.store, file)
    refused = [seen.payload for seen in listing.observations if isinstance(seen.payload, InputRefused)]
    return Captured(
        file=str(file),
        at=now,
        imported=mark,
        objects=dict(Counter(type(seen.payload).__name__ for seen in listing.observations)),
        refused=tuple(f"{found.object}: {found.code} {found.field} {found.message}" for found in refused),
        missing=tuple(listing.missing),
        position=entries[-1].position,
        decisions=sum(isinstance(entry.payload, Decision) for entry in entries),
    )


def _decided(store: Store, listing: Listing, offers: Offers, settings: Settings, mark: Imported) -> list[Entry]:
    """The record: what was listed, and what kerf decides in its first passes if nothing else happens.

    Pods without a node come in a turn of their own, a millisecond later: NodeClaims that show up while pods wait are
    taken for those that Karpenter makes for them (`engine.runtime.observe_mode`).
    """
    runtime = Runtime(
        store,
        holder=CAPTURE_HOLDER,
        settings=replace(settings, observe=True, nominations=False, node_classes=offers.node_classes),
        record=secrets.token_hex(16),
        engine=kerf.__version__,
        now=mark.since,
        imported=mark,
    )
    entries = list(runtime.new_entries)
    waiting = [seen for seen in listing.observations if _waits(seen)]
    observations = [*(seen for seen in listing.observations if not _waits(seen)), *offers.observations]
    at = mark.since
    while at <= mark.until + FIRST_PASSES:
        runtime.turn(observations, at)
        if runtime.error is not None:
            raise runtime.error
        entries += runtime.new_entries
        observations = waiting if at < mark.until else []
        due = mark.until if at < mark.until else runtime.next_due()
        if due is None:
            break
        at = max(due, at + 1)
    return entries


def _waits(seen: Observation) -> bool:
    return isinstance(seen.payload, Pod) and not seen.payload.node
