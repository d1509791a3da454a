"""The volumes of a pod: where they let it go, and how they count against a node's attachment limits (S-152…S-159)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import NodeTerm, PodShape
from kerf.engine.model.kubernetes.volumes import Volume, VolumeClaim, VolumeFacts
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.reasons import SchedulingCode, reason

Attachment = tuple[str, str]
"""(CSI driver, namespace/name of the claim)."""


class PodVolumes(Struct, frozen=True, cache_hash=True):
    """`alternatives`: the places that the volumes allow, in the order in which they are tried; empty if they allow any
    (S-154, S-155). `attached`: the volumes that count against limits. `apart`: the places of each volume, where no
    node could have all of them."""

    alternatives: tuple[Requirements, ...] = ()
    attached: tuple[Attachment, ...] = ()
    apart: tuple[str, ...] = ()


def claim_names(namespace: str, pod: str, shape: PodShape) -> tuple[str, ...]:
    """The claims of a pod's volumes as namespace/name. The claim of an ephemeral volume is named after pod and volume
    (S-152)."""
    return tuple(f"{namespace}/{volume.claim or f'{pod}-{volume.name}'}" for volume in shape.volumes)


def volume_problems(facts: VolumeFacts, claims: Iterable[str]) -> tuple[Reason, ...]:
    """Why a pending pod is refused: the first of its volumes that is not in order (S-153). Empty if all are."""
    for name in claims:
        problem = _problem(facts, name)
        if problem:
            return (reason(SchedulingCode.VOLUME, claim=name, problem=problem),)
    return ()


def _problem(facts: VolumeFacts, name: str) -> str:
    claim = facts.claims.get(name)
    if claim is None:
        return "there is no such claim"
    if claim.deleting:
        return "the claim is being deleted"
    if claim.phase == "Lost":
        return "the claim has lost its volume"
    if claim.volume:
        volume = facts.volumes.get(claim.volume)
        if volume is None or volume.deleting:
            return f"volume {claim.volume} is gone"
        if not claim.bind_completed:
            return "binding is not completed"
        gone = _gone_hosts(facts, volume)
        return f"volume {claim.volume} is on node {' or '.join(gone)}, which is gone" if gone else ""
    if not claim.storage_class:
        return "neither volume nor storage class"
    storage_class = facts.classes.get(claim.storage_class)
    if storage_class is None:
        return f"there is no storage class {claim.storage_class}"
    return "an unbound claim of a class that binds at once" if storage_class.immediate else ""


def _gone_hosts(facts: VolumeFacts, volume: Volume) -> list[str]:
    """The nodes on which alone a local volume is, if none of them is there any more (unlike in S-154)."""
    if facts.hosts is None or not volume.local:
        return []
    hosts: dict[str, None] = {}
    for term in volume.terms:
        named = [each for each in term.expressions if normalise(each.key) == HOSTNAME and each.operator == "In"]
        if not named:
            return []
        hosts |= {value: None for each in named for value in each.values}
    return list(hosts) if facts.hosts.isdisjoint(hosts) else []


def volumes_of_claims(facts: VolumeFacts, claims: Iterable[str], *, hosts: bool = False) -> PodVolumes:
    """What the claims ask; a missing one asks nothing (S-157, S-158). `hosts`: whether local volumes ask for their
    host, as kube-scheduler has it."""
    present = [facts.claims[name] for name in claims if name in facts.claims]
    attached = [(_driver(facts, claim), f"{claim.namespace}/{claim.name}") for claim in present]
    alternatives, sound = _combinations(_alternatives(facts, claim, hosts) for claim in present)
    return PodVolumes(
        alternatives,
        tuple(sorted({attachment for attachment in attached if attachment[0]})),
        () if sound else _each_place(_alternatives(facts, claim, hosts) for claim in present),
    )


def _driver(facts: VolumeFacts, claim: VolumeClaim) -> str:
    if claim.volume:
        volume = facts.volumes.get(claim.volume)
        return volume.driver if volume is not None else ""
    storage_class = facts.classes.get(claim.storage_class)
    return storage_class.driver if storage_class is not None else ""


def _alternatives(facts: VolumeFacts, claim: VolumeClaim, hosts: bool) -> list[Requirements]:
    """The places where a volume can be: one set of requirements for each (S-154)."""
    if claim.volume:
        volume = facts.volumes.get(claim.volume)
        if volume is None:
            return []
        terms = [term for term in volume.terms if term.expressions]
        if volume.local and not hosts:
            terms = [_without_hostname(term) for term in terms]
    else:
        storage_class = facts.classes.get(claim.storage_class)
        terms = list(storage_class.topologies) if storage_class is not None else []
    return [Requirements.of_expressions(term.expressions) for term in terms]


def _without_hostname(term: NodeTerm) -> NodeTerm:
    """The term without the host of a local volume, which is no reason against a new node."""
    return NodeTerm(tuple(expression for expression in term.expressions if normalise(expression.key) != HOSTNAME))


def _each_place(volumes: Iterable[list[Requirements]]) -> tuple[str, ...]:
    """The places of each volume in words, each once."""
    return tuple(dict.fromkeys(" or ".join(map(str, places)) for places in volumes if places))


def _combinations(volumes: Iterable[list[Requirements]]) -> tuple[tuple[Requirements, ...], bool]:
    """Every choice of one alternative for each volume, and whether they are sound. Choices that contradict themselves
    count only if there is no other (S-155)."""
    choices: list[tuple[Requirements, bool]] = [(Requirements(), True)]
    asks = False
    for alternatives in volumes:
        if not alternatives:
            continue
        asks = True
        choices = [
            (before.merged(alternative), sound and not before.conflicts(alternative))
            for before, sound in choices
            for alternative in alternatives
        ]
    if not asks:
        return (), True
    agreeing = tuple(choice for choice, sound in choices if sound)
    return agreeing or tuple(choice for choice, _ in choices), bool(agreeing)
