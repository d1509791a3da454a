"""The instance types of a captured cluster: of a file, of EC2, or of the tables that kerf carries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from kerf.adapters.aws.catalogue.offerings import offline_catalogue
from kerf.adapters.aws.nodeclass.resolved import node_settings, zones
from kerf.adapters.aws.nodeclass.seen import GROUP, KIND, class_seen, judged_ready
from kerf.adapters.cli.capture.listing import Listing
from kerf.adapters.kubernetes.watch.watched_kinds import EC2_NODE_CLASSES, KWOK_NODE_CLASSES
from kerf.adapters.kwok.catalogue import GROUP as KWOK_GROUP
from kerf.adapters.kwok.catalogue import built_in, read_catalogue_file
from kerf.adapters.kwok.cloud import KIND as KWOK_KIND
from kerf.adapters.kwok.cloud import class_observations
from kerf.engine.errors import InputError
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.observations import CatalogueSeen, InputRefused, Observation

EC2, KWOK = f"{GROUP}/{KIND}", f"{KWOK_GROUP}/{KWOK_KIND}"


class Offers(Struct, frozen=True):
    """What was taken for the cluster's market. `node_classes` is group/Kind of the NodeClasses that kerf launches for,
    "" for none. `sources` say where types and prices are from. `lacks` is what is not known of them.
    """

    node_classes: str
    observations: tuple[Observation, ...]
    sources: tuple[str, ...]
    lacks: tuple[Missing, ...]


def offers_of(listing: Listing, *, types: Path | None, ask_ec2: bool, now: int) -> Offers:
    """The NodeClasses with their catalogues. Raises InputError for a file that cannot be read (KERF330, KERF352), for a
    cluster without EC2NodeClasses that EC2 is to be asked about, and AwsError."""
    own = read_catalogue_file(types) if types is not None else None
    ec2 = [found for found in listing.node_classes[EC2_NODE_CLASSES.path] if isinstance(found, EC2NodeClass)]
    kwok = [found for found in listing.node_classes[KWOK_NODE_CLASSES.path] if isinstance(found, KWOKNodeClass)]
    if ask_ec2 and not ec2:
        hint = "Leave --ask-ec2 out, or look with another --context"
        raise InputError("the cluster has no EC2NodeClass", where="--ask-ec2", hint=hint, code="KERF200")
    if ec2:
        observations = _asked(ec2, now) if ask_ec2 and own is None else [*_of_tables(ec2, own)]
        return _offers(EC2, observations, () if ask_ec2 or own is not None else (Missing.MARKET,))
    if kwok:
        sold = own or built_in()
        return _offers(KWOK, [seen for found in kwok for seen in class_observations(found, sold)], ())
    return Offers("", (), (), (Missing.CATALOGUE, Missing.PRICES))


def _offers(kind: str, observations: Sequence[Observation], lacks: tuple[Missing, ...]) -> Offers:
    catalogues = [blob for seen in observations for blob in seen.blobs.values() if isinstance(blob, Catalogue)]
    sources = tuple(dict.fromkeys(catalogue.source for catalogue in catalogues))
    return Offers(kind, tuple(observations), sources, lacks if catalogues else (Missing.CATALOGUE, Missing.PRICES))


def _of_tables(classes: Iterable[EC2NodeClass], own: Catalogue | None) -> Iterable[Observation]:
    """Each class as Karpenter resolved it, with the types of the tables in the zones of its subnets."""
    for node_class in sorted(classes, key=lambda found: found.name):
        seen, kept = class_seen(node_class, judged_ready(node_class))
        yield Observation(seen, {seen.digest: kept})
        sold = zones(node_class.status)
        if not sold and own is None:
            continue  # Karpenter has not resolved it: nobody knows where it may launch
        try:
            catalogue = own or _table(node_class, sold)
        except InputError as error:
            yield Observation(InputRefused(error.code, "capture", f"{KIND}/{node_class.name}", message=str(error)))
            continue
        digest, _ = content(catalogue)
        yield Observation(CatalogueSeen(f"{EC2}/{node_class.name}", digest), {digest: catalogue})


def _table(node_class: EC2NodeClass, sold: dict[str, str]) -> Catalogue:
    return offline_catalogue(
        region=region_of([node_class]), zones=sorted(sold), zone_ids=sold, settings=node_settings(node_class)
    )


def region_of(classes: Iterable[EC2NodeClass]) -> str:
    """The region of the classes' zones, "" if none is known."""
    named = (zone for node_class in classes for zone in sorted(zones(node_class.status)))
    return next(named, "").rstrip("abcdefghij")


def _asked(classes: Sequence[EC2NodeClass], now: int) -> list[Observation]:
    """Each class with what EC2 says that it can launch, by calls that only describe. Imports boto3 only here."""
    from kerf.adapters.aws.account import region
    from kerf.adapters.aws.cloud import AwsCloud
    from kerf.adapters.aws.session import ReadingClients
    from kerf.adapters.aws.settings import AwsSettings, ClusterFacts

    where = region_of(classes) or region()
    settings = AwsSettings(cluster="", region=where, facts=ClusterFacts(endpoint="", kubernetes_version=""))
    cloud = AwsCloud(ReadingClients(where), settings, lambda: classes, lambda: now, observing=True)
    observations = cloud.observe()
    refused = [seen.payload for seen in observations if isinstance(seen.payload, InputRefused)]
    if refused:  # else the tables would stand in for what EC2 did not say
        first = refused[0]
        message = first.message.removeprefix(f"{first.code}: ")
        raise InputError(message, where="--ask-ec2", hint="Leave it out to take kerf's tables", code=first.code)
    return observations
