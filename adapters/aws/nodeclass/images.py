"""Finds the images that amiSelectorTerms select (A-99…A-115)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kerf.adapters.aws.ami_families import FAMILIES, VARIANTS, image_queries, unsupported
from kerf.adapters.aws.catalogue.facts import ARCHITECTURES
from kerf.adapters.aws.nodeclass.resolved import ready
from kerf.adapters.aws.session import AwsError, Clients, call, filters, pages, tag_filters
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.model import labels
from kerf.engine.model.durations import parse_time
from kerf.engine.model.karpenter.ec2nodeclasses import AMI_FAMILIES, AMITerm, EC2NodeClass, ResolvedAMI
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import RequirementSpec

Requirements = tuple[RequirementSpec, ...]
_HOUR, RETRY = 3_600_000, 60_000
ALIAS_TTL, PARAMETER_TTL = 24 * _HOUR, _HOUR // 12
"""How long (ms) the values of SSM parameters are kept, of aliases and of the user's own terms (A-84)."""
DEPRECATED_TTL = _HOUR // 2
"""How long (ms) the value of a `latest` alias is kept once its image is deprecated: then there is a newer one
(A-373)."""


class Images:
    """Resolves images, those of aliases for the Kubernetes version of the time (A-342). SSM values are kept as long as
    A-84 says; `clock` gives milliseconds since the epoch."""

    def __init__(self, clients: Clients, settings: AwsSettings, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._parameters: dict[str, tuple[int, str]] = {}  # → when it was read, its value
        self._deprecated: set[str] = set()  # parameters of `latest` aliases

    def resolve(
        self, node_class: EC2NodeClass, before: tuple[ResolvedAMI, ...] = ()
    ) -> tuple[tuple[ResolvedAMI, ...], Condition]:
        """The images of a class, newest first (A-114), and condition AMIsReady. Raises `AwsError`; so too while SSM
        cannot tell one image of an alias, where the class has images from `before`."""
        term = next((term for term in node_class.spec.ami_selector_terms if term.alias), None)
        if term is not None:
            if why := unsupported(term.alias, self._settings.facts.kubernetes_version):
                return (), Condition("AMIsReady", "False", "UnsupportedAlias", why)
            # the alias says which images, also where amiFamily is Custom
            build = FAMILIES[AMI_FAMILIES.get(term.alias_family, "Custom")].windows_build
            entries = self._by_alias(term.alias, build, all_or_none=bool(before))
        else:
            entries = self._by_terms(node_class.spec.ami_selector_terms)
        images = select(entries, self._clock())
        missing = Condition("AMIsReady", "False", "AMINotFound", "no image matches amiSelectorTerms")
        return images, ready("AMIsReady") if images else missing

    def _by_alias(
        self, alias: str, windows_build: str, *, all_or_none: bool
    ) -> list[tuple[dict[str, Any], Requirements]]:
        variants: dict[str, list[Requirements]] = {}
        parameters: dict[str, str] = {}  # image → which names it
        last: AwsError | None = None
        for query in image_queries(alias, self._settings.facts.kubernetes_version):
            try:
                ttl = DEPRECATED_TTL if query.parameter in self._deprecated else ALIAS_TTL
                image = self._parameter(query.parameter, ttl)
            except AwsError as error:
                if all_or_none and error.passing:
                    raise  # the types that boot this image could not be launched until the next look
                last = error  # a path that does not resolve is skipped, unless none does
                continue
            parameters[image] = query.parameter
            wanted = [VARIANTS[variant] for variant in query.variants]
            if windows_build:
                wanted = [_windows(windows_build)]
            variants.setdefault(image, []).extend(wanted)
        if not variants and last is not None:
            raise last
        images = self._describe(filters(image_id=sorted(variants)))
        if alias.endswith("@latest"):
            old = {parameters[image["ImageId"]] for image in images if _deprecated(image, self._clock())}
            self._deprecated = (self._deprecated - set(parameters.values())) | old
        return [(image, requirements) for image in images for requirements in variants[image["ImageId"]]]

    def _by_terms(self, terms: Iterable[AMITerm]) -> list[tuple[dict[str, Any], Requirements]]:
        """The images that the terms select: all ids in one query, each other term in its own (A-99)."""
        ids: list[str] = []
        images: dict[str, dict[str, Any]] = {}
        for term in terms:
            if term.id:
                ids.append(term.id)
            elif term.ssm_parameter:
                ids += self._user_parameter(term.ssm_parameter)
            else:
                conditions = tag_filters(term.tags) + (filters(name=[term.name]) if term.name else [])
                owners = [term.owner] if term.owner else ["self", "amazon"] if term.name else []
                images |= {image["ImageId"]: image for image in self._describe(conditions, owners)}
        if ids:
            images |= {image["ImageId"]: image for image in self._describe(filters(image_id=sorted(set(ids))))}
        return [(image, ()) for _, image in sorted(images.items())]

    def _user_parameter(self, name: str) -> list[str]:
        """The image that a user's SSM parameter names. One that is missing, or holds no image id, is skipped
        (A-100)."""
        try:
            value = self._parameter(name, PARAMETER_TTL)
        except AwsError as error:
            if error.not_found:
                return []
            raise
        return [value] if value.startswith("ami-") else []

    def _parameter(self, name: str, ttl: int) -> str:
        """The value of a parameter. While SSM cannot tell, the last one stays: an image that went out of the status
        would drift the nodes that boot it."""
        now = self._clock()
        known = self._parameters.get(name)
        if known is not None and now < known[0] + ttl:
            return known[1]
        try:
            value = str(call(self._clients.ssm.get_parameter, Name=name)["Parameter"]["Value"])
        except AwsError as error:
            if known is None or error.not_found:
                raise
            self._parameters[name] = now + RETRY - ttl, known[1]
            return known[1]
        self._parameters[name] = now, value
        return value

    def _describe(self, conditions: list[dict[str, Any]], owners: Iterable[str] = ()) -> list[dict[str, Any]]:
        owned = {"Owners": list(owners)} if owners else {}
        return list(
            pages(
                self._clients.ec2.describe_images,
                "Images",
                Filters=[*conditions, *filters(state=["available"])],
                IncludeDeprecated=True,
                MaxResults=1000,
                **owned,
            )
        )


def _windows(build: str) -> Requirements:
    """What an image for a build of Windows requires of a node (A-111)."""
    return RequirementSpec(labels.OS, "In", ("windows",)), RequirementSpec(labels.WINDOWS_BUILD, "In", (build,))


def select(entries: Iterable[tuple[dict[str, Any], Requirements]], now: int) -> tuple[ResolvedAMI, ...]:
    """One image for each distinct set of requirements (A-112, A-113), newest first (A-114)."""
    best: dict[Requirements, tuple[dict[str, Any], ResolvedAMI]] = {}
    for entry, requirements in entries:
        arch = ARCHITECTURES.get(entry.get("Architecture", ""))
        if arch is None:
            continue
        needs = (*requirements, RequirementSpec(labels.ARCH, "In", (arch,)))
        key = tuple(sorted(needs, key=lambda need: (len(need.key), need.key)))
        image = ResolvedAMI(entry["ImageId"], entry.get("Name", ""), _deprecated(entry, now), key)
        if key not in best or _rank(entry, image) > _rank(*best[key]):
            best[key] = entry, image
    by_id = sorted(best.values(), key=lambda pair: (pair[1].id, [need.key for need in pair[1].requirements]))
    newest = sorted(by_id, key=lambda pair: str(pair[0].get("CreationDate", "")), reverse=True)
    return tuple(image for _, image in newest)


def _deprecated(entry: dict[str, Any], now: int) -> bool:
    expires = entry.get("DeprecationTime", "")
    return bool(expires) and parse_time(expires) <= now


def _rank(entry: dict[str, Any], image: ResolvedAMI) -> tuple[bool, str, str, str]:
    return not image.deprecated, entry.get("CreationDate", ""), image.name, image.id
