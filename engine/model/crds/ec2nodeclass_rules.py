"""The rules of EC2NodeClasses that concern more than one field's own form (A-25 to A-46), in CEL and in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kerf.engine.model import labels
from kerf.engine.model.crds.schema import Fault, Rule
from kerf.engine.model.karpenter.ec2nodeclasses import AMI_FAMILIES

FORBIDDEN_TAGS = ("eks:eks-cluster-name", labels.NODEPOOL, "karpenter.sh/nodeclaim", labels.EC2NODECLASS)
FORBIDDEN_TAG_PREFIX = "kubernetes.io/cluster"


# ── selector terms ─────────────────────────────────────────────────────────────────────────────────────────────────


def _has(name: str) -> str:
    return f"has(t.{name})"


def selects(*by: str) -> Rule:
    """Returns the rule that each term has one of these fields (A-25 to A-29)."""

    def faults(terms: list[Any]) -> Iterator[Fault]:
        for at, term in enumerate(terms):
            if not any(name in term for name in by):
                yield Fault(f"[{at}]", "KERF316", f"The term selects nothing: it needs one of {', '.join(by)}")

    needs = " || ".join(map(_has, by))
    return Rule(f"self.all(t, {needs})", f"each term needs one of {', '.join(by)}", faults)


def not_all_with(name: str, *others: str) -> Rule:
    """Returns the rule that refuses a list only if every term breaks it; else `id` takes precedence, then `name`
    (A-46).
    """

    def faults(terms: list[Any]) -> Iterator[Fault]:
        if terms and all(name in term and any(other in term for other in others) for term in terms):
            for at in range(len(terms)):
                yield Fault(f"[{at}].{name}", "KERF316", f"{name} excludes the other fields of a term")

    either = " || ".join(map(_has, others))
    return Rule(
        f"self.size() == 0 || self.exists(t, !{_has(name)} || !({either}))",
        f"{name} excludes the other fields of a term",
        faults,
    )


def _unfilled(tags: Any) -> Iterator[Fault]:
    for key, value in tags.items():
        if not key or not value:
            yield Fault(f"[{key}]", "KERF312", "A tag needs a key and a value", 'Write "*" for any value')


FILLED_TAGS = Rule("self.all(k, k != '' && self[k] != '')", "a tag needs a key and a value", _unfilled)


def _several_groups(selector: Any) -> Iterator[Fault]:
    if ("name" in selector) == ("id" in selector):
        yield Fault("", "KERF316", "Select by exactly one of name and id")


ONE_PLACEMENT_GROUP = Rule("has(self.name) != has(self.id)", "select by exactly one of name and id", _several_groups)

# ── images ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _id_with(terms: list[Any]) -> Iterator[Fault]:
    for at, term in enumerate(terms):
        if "id" in term and any(name in term for name in ("alias", "tags", "name", "owner")):
            yield Fault(f"[{at}].id", "KERF316", "An id excludes alias, tags, name and owner")


def _alias_with(terms: list[Any]) -> Iterator[Fault]:
    for at, term in enumerate(terms):
        if "alias" in term and any(name in term for name in ("id", "tags", "name", "owner")):
            yield Fault(f"[{at}].{'id' if 'id' in term else 'alias'}", "KERF316", "An alias excludes other fields")


def _alias_among(terms: list[Any]) -> Iterator[Fault]:
    for at, term in enumerate(terms):
        if "alias" in term and len(terms) != 1:
            yield Fault(f"[{at}].alias", "KERF316", "An alias must be the only term")


ID_ALONE = Rule(
    "!self.exists(t, has(t.id) && (has(t.alias) || has(t.tags) || has(t.name) || has(t.owner)))",
    "an id excludes alias, tags, name and owner",
    _id_with,
)
ALIAS_ALONE = Rule(
    "!self.exists(t, has(t.alias) && (has(t.id) || has(t.tags) || has(t.name) || has(t.owner)))",
    "an alias excludes id, tags, name and owner",
    _alias_with,
)
ALIAS_ONLY_TERM = Rule(
    "self.size() == 1 || !self.exists(t, has(t.alias))", "an alias must be the only term", _alias_among
)


def _family(alias: str) -> str:
    return alias.partition("@")[0]


def _unknown_family(alias: str) -> Iterator[Fault]:
    if "@" in alias and _family(alias) not in AMI_FAMILIES:
        families = ", ".join(AMI_FAMILIES)
        hint = "Write it in lower case" if _family(alias).lower() in AMI_FAMILIES else ""
        yield Fault("", "KERF305", f"The alias family {_family(alias)!r} is not one of {families}", hint)


def _windows_version(alias: str) -> Iterator[Fault]:
    family, _, version = alias.partition("@")
    if family.startswith("windows") and version != "latest":
        yield Fault("", "KERF305", "Windows aliases have no version but latest")


ALIAS_FAMILY = Rule(
    f"self.find('^[^@]+') in [{', '.join(map(repr, AMI_FAMILIES))}]",
    f"the alias's family is one of {', '.join(AMI_FAMILIES)}",
    _unknown_family,
)
WINDOWS_VERSION = Rule(
    "!self.startsWith('windows') || self.endsWith('@latest')",
    "Windows aliases have no version but latest",
    _windows_version,
)


def _no_family(spec: Any) -> Iterator[Fault]:
    if "amiFamily" not in spec and not any("alias" in term for term in spec["amiSelectorTerms"]):
        yield Fault(".amiFamily", "KERF304", "amiFamily is required when no term has an alias")


def _other_family(spec: Any) -> Iterator[Fault]:
    aliases = [_family(term["alias"]) for term in spec["amiSelectorTerms"] if "alias" in term]
    named = AMI_FAMILIES.get(aliases[0]) if aliases else None
    if named is not None and spec.get("amiFamily", named) not in {named, "Custom", ""}:
        message = f"amiFamily {spec['amiFamily']} contradicts the alias, which is of {named}"
        yield Fault(".amiFamily", "KERF317", message, "Leave out amiFamily")


FAMILY_OR_ALIAS = Rule(
    "has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))",
    "amiFamily is required when no term has an alias",
    _no_family,
)
FAMILY_OF_ALIAS = Rule(
    "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || "
    "t.alias.find('^[^@]+') == self.amiFamily.lowerAscii())",
    "amiFamily contradicts the alias",
    _other_family,
)

# ── roles, tags ────────────────────────────────────────────────────────────────────────────────────────────────────


def not_empty(name: str) -> Rule:
    def faults(value: str) -> Iterator[Fault]:
        if not value:
            yield Fault("", "KERF304", f"{name} may not be empty")

    return Rule("self != ''", f"{name} may not be empty", faults)


def _role_and_profile(spec: Any) -> Iterator[Fault]:
    if "role" in spec and "instanceProfile" in spec:
        yield Fault(".instanceProfile", "KERF317", "role and instanceProfile exclude each other")
    elif "role" not in spec and "instanceProfile" not in spec:
        yield Fault(".role", "KERF304", "A NodeClass needs a role or an instanceProfile")


ROLE_OR_PROFILE = Rule(
    "has(self.role) != has(self.instanceProfile)", "exactly one of role and instanceProfile", _role_and_profile
)


def _nameless(tags: Any) -> Iterator[Fault]:
    if "" in tags:
        yield Fault("[]", "KERF312", "A tag needs a key")


def _managed(tags: Any) -> Iterator[Fault]:
    for key in tags:
        if key in FORBIDDEN_TAGS or key.startswith(FORBIDDEN_TAG_PREFIX):
            yield Fault(f"[{key}]", "KERF318", f"The tag {key} is set by Karpenter", "Leave it out")


TAGS = (
    Rule("self.all(k, k != '')", "a tag needs a key", _nameless),
    Rule(
        f"self.all(k, !(k in [{', '.join(map(repr, FORBIDDEN_TAGS))}]) && !k.startsWith('{FORBIDDEN_TAG_PREFIX}'))",
        "the tag is managed by Karpenter",
        _managed,
    ),
)

# ── devices ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sizeless(ebs: Any) -> Iterator[Fault]:
    if "snapshotID" not in ebs and "volumeSize" not in ebs:
        yield Fault("", "KERF316", "A volume needs a snapshotID or a volumeSize")


def _no_snapshot(ebs: Any) -> Iterator[Fault]:
    if "volumeInitializationRate" in ebs and not ebs.get("snapshotID"):
        yield Fault(".volumeInitializationRate", "KERF316", "Only a volume of a snapshot is initialised")


def _roots(mappings: list[Any]) -> Iterator[Fault]:
    roots = [at for at, mapping in enumerate(mappings) if mapping.get("rootVolume")]
    for at in roots[1:]:
        yield Fault(f"[{at}].rootVolume", "KERF316", f"Device {roots[0]} of the list is the root volume already")


SIZED = Rule("has(self.snapshotID) || has(self.volumeSize)", "a volume needs a snapshotID or a volumeSize", _sizeless)
INITIALISED = Rule(
    "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
    "only a volume of a snapshot is initialised",
    _no_snapshot,
)
ONE_ROOT = Rule(
    "self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1", "only one device is the root volume", _roots
)


def _no_primary(interfaces: list[Any]) -> Iterator[Fault]:
    places = [
        (interface["networkCardIndex"], interface["deviceIndex"], interface["interfaceType"])
        for interface in interfaces
    ]
    if interfaces and (0, 0, "interface") not in places:
        yield Fault("", "KERF316", "Card 0, device 0 must be there, of type interface")


def _same_place(interfaces: list[Any]) -> Iterator[Fault]:
    seen: set[tuple[int, int]] = set()
    for at, interface in enumerate(interfaces):
        place = (interface["networkCardIndex"], interface["deviceIndex"])
        if place in seen:
            yield Fault(f"[{at}]", "KERF316", f"Card {place[0]}, device {place[1]} is taken already")
        seen.add(place)


def _efa_twice(interfaces: list[Any]) -> Iterator[Fault]:
    cards: Counter[int] = Counter()
    for at, interface in enumerate(interfaces):
        if interface["interfaceType"] == "efa-only":
            cards[interface["networkCardIndex"]] += 1
            if cards[interface["networkCardIndex"]] > 1:
                message = f"Card {interface['networkCardIndex']} has an efa-only interface already"
                yield Fault(f"[{at}]", "KERF316", message)


PRIMARY_INTERFACE = Rule(
    "self.size() == 0 || "
    "self.exists(i, i.networkCardIndex == 0 && i.deviceIndex == 0 && i.interfaceType == 'interface')",
    "card 0, device 0 must be there, of type interface",
    _no_primary,
)
ONE_PER_PLACE = Rule(
    "self.all(i, self.exists_one(o, o.networkCardIndex == i.networkCardIndex && o.deviceIndex == i.deviceIndex))",
    "each place on a card is taken once",
    _same_place,
)
ONE_EFA_PER_CARD = Rule(
    "self.all(i, i.interfaceType != 'efa-only' || "
    "self.exists_one(o, o.interfaceType == 'efa-only' && o.networkCardIndex == i.networkCardIndex))",
    "a card has at most one efa-only interface",
    _efa_twice,
)


def _timeless(tracking: Any) -> Iterator[Fault]:
    if not any(name in tracking for name in ("tcpEstablishedTimeout", "udpStreamTimeout", "udpTimeout")):
        yield Fault("", "KERF304", "connectionTracking needs at least one timeout")


ONE_TIMEOUT = Rule(
    "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
    "connectionTracking needs at least one timeout",
    _timeless,
)
