"""Why a pod has no place, or a candidate was ruled out: a closed list of codes with their parameters.

`params` of a `Reason` hold facts, never prose; `sentence` renders them. Lists are sorted. Every reason
that concerns a NodePool carries `node_pool`.
"""

from __future__ import annotations

from enum import StrEnum

from kerf.engine.model.labels import HOSTNAME, WELL_KNOWN, is_restricted
from kerf.engine.model.mistyped import suggestion
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.requirements import Conflict, Requirements
from kerf.engine.scheduling.topology.rules import Rule

MAX_DOMAINS_SHOWN = 25
"""S-136: how many domains a reason names."""


class Code(StrEnum):
    """Each code with the parameters it carries."""

    # a pod that is refused before scheduling (S-42)
    OPTED_OUT = "opted-out"
    """The pod asks for nodes without a NodePool. `requirement`."""
    RESTRICTED_LABEL = "restricted-label"
    """`key` may not be selected on (S-25)."""
    INVALID_REQUIREMENT = "invalid-requirement"
    """`key`, `operator`, `problem` (one of validation.Problem)."""
    MATCH_FIELDS = "match-fields"
    """A required node affinity term has matchFields. `keys`."""

    VOLUME = "volume"
    """A volume of the pod is not in order (S-153). `claim`, `problem`."""

    # nothing can be tried
    NO_NODE_POOL = "no-node-pool"
    """No NodePool is ready, dynamic and not being deleted (S-62)."""
    NO_INSTANCE_TYPES = "no-instance-types"
    """The NodePool's requirements leave no instance type (S-66). `node_pool`, `types` (in its catalogue)."""
    TOO_FEW_TYPES = "too-few-instance-types"
    """They leave some, and with these too few values for its minValues (S-66). `node_pool`, `types`, `left`, `keys`."""
    RESOURCE_CLAIMS = "resource-claims-ignored"
    """The pod asks for devices by ResourceClaim, which the settings say to ignore (S-194). `claims`."""
    RESOURCE_CLAIM = "resource-claim"
    """A ResourceClaim is missing, or is one that nothing can meet (S-195, S-200). `claim`, `problem`."""
    CONTRADICTION = "contradiction"
    """What the pod asks of a label contradicts itself. `keys`."""
    NOT_SUPPORTED_YET = "not-supported-yet"
    """The pod carries what this version cannot place rightly. `features`."""

    # what rules out one candidate
    TAINTS = "taints-not-tolerated"
    """`taints`."""
    LABEL_UNDEFINED = "label-undefined"
    """The candidate does not define labels that the pod selects on. `keys`, `known` (those of its own that it does)."""
    REQUIREMENTS = "requirements-conflict"
    """`keys`, `incoming` (what the pod asks), `existing` (what the candidate has)."""
    TOPOLOGY = "topology"
    """A rule of topology leaves no domain. `rule` (spread, affinity or anti-affinity), `key`, `domains` (counts as
    domain=pods, S-136)."""
    VOLUME_TOPOLOGY = "volume-topology"
    """The pod's volumes are elsewhere. `allowed` (each alternative)."""
    VOLUME_LIMIT = "volume-limit"
    """The node takes no more volumes of a driver (S-159). `drivers`."""
    DEVICES = "devices"
    """A request of a ResourceClaim finds too few devices (S-200). `request`, `wanted` (a number, or all), `devices`
    (that are there), `left` (by the selectors, and free), `selectors` (each with how many it ruled out)."""
    DEVICES_TOGETHER = "devices-together"
    """Each request alone finds devices, and the search found none for all together. `claims`."""
    DEVICES_ELSEWHERE = "devices-elsewhere"
    """A ResourceClaim has its devices, and they cannot be used here (S-199). `claims`."""
    HOST_PORTS = "host-ports-taken"
    """`ports`."""
    RESOURCES = "resources"
    """An existing node or an open claim has no room. `resources`: the names that do not fit."""
    NODE_LIMIT = "node-limit"
    """The NodePool's `nodes` limit is used up (S-69). `limit`."""
    LIMITS = "limits"
    """No type fits what the NodePool's limits leave (S-69). `resources`."""
    MIN_VALUES = "min-values"
    """Fewer distinct values remain than asked for (S-107). `keys`."""
    TYPES_REQUIREMENTS = "types-requirements"
    """No type of the NodePool meets the requirements. `keys`, `types`."""
    TYPES_RESOURCES = "types-resources"
    """Types meet the requirements, and none is large enough. `resources`, `types`."""
    TYPES_OFFERINGS = "types-offerings"
    """Types meet the requirements and are large enough, and none is on offer. `types`."""
    TYPES_COMBINED = "types-combined"
    """Each type fails for another reason. `requirements`, `resources`, `offerings`: how many types meet
    each alone."""
    RESERVATION = "reservation-deferred"
    """Reserved capacity would do, and this pass has used it up; the pod waits for the next pass (S-116)."""
    LEFT_OUT = "left-out"
    """A node could be launched, and with it more other pods would stay pending, or ones of higher priority."""
    LAUNCHED_IN_VAIN = "launched-in-vain"
    """The node that was launched for the pod a moment ago cannot take it; another one has to wait. `claim`."""


def reason(code: Code, **params: str | int | float | list[str]) -> Reason:
    return Reason(code.value, dict(sorted(params.items())))


def conflict_reason(found: tuple[Conflict, ...], own: Requirements, **params: str) -> Reason:
    """The coded form of conflicts between a pod's requirements and those of a candidate (`own`)."""
    unknown = sorted(each.key for each in found if each.existing is None)
    if unknown:
        known = sorted(each.key for each in own if each.key not in WELL_KNOWN and not is_restricted(each.key))
        return reason(Code.LABEL_UNDEFINED, keys=unknown, known=known, **params)
    return reason(
        Code.REQUIREMENTS,
        keys=[each.key for each in found],
        incoming=[str(each.incoming) for each in found],
        existing=[str(each.existing) for each in found],
        **params,
    )


def topology_reason(rule: Rule, **params: str) -> Reason:
    """The rule and how many pods are in each domain (S-136); claims of this pass are only counted."""
    named = sorted((d, pods) for d, pods in rule.count.counts.items() if isinstance(d, str))
    shown = [f"{domain}={pods}" for domain, pods in named[:MAX_DOMAINS_SHOWN]]
    more = len(rule.count.counts) - len(shown)
    domains = [*shown, f"and {more} more"] if more else shown
    return reason(Code.TOPOLOGY, rule=rule.kind, key=rule.key, domains=domains, **params)


_SENTENCES: dict[str, str] = {
    Code.OPTED_OUT: "the pod asks for nodes that belong to no NodePool ({requirement})",
    Code.RESTRICTED_LABEL: "label {key} may not be selected on",
    Code.INVALID_REQUIREMENT: "requirement {key} {operator} is not valid: {problem}",
    Code.MATCH_FIELDS: "required node affinity uses matchFields ({keys})",
    Code.NO_NODE_POOL: "no NodePool is ready, dynamic and not being deleted",
    Code.NO_INSTANCE_TYPES: "the NodePool's requirements and what is on offer leave none of its {types} instance types",
    Code.TOO_FEW_TYPES: (
        "the NodePool's requirements leave {left} of its {types} instance types, with fewer values of {keys} than its "
        "minValues asks for"
    ),
    Code.RESOURCE_CLAIMS: (
        "the pod asks for devices by ResourceClaim ({claims}), and dynamic resource allocation is off "
        "(ignore-dra-requests)"
    ),
    Code.CONTRADICTION: "what the pod asks of label {keys} contradicts itself: no node can have it",
    Code.NOT_SUPPORTED_YET: "this version of kerf cannot place pods with {features}",
    Code.TAINTS: "the pod does not tolerate {taints}",
    Code.LABEL_UNDEFINED: "label {keys} is not defined here",
    Code.REQUIREMENTS: "the pod asks for {incoming}, here is {existing}",
    Code.TOPOLOGY: "{rule} over {key} leaves no place ({domains})",
    Code.VOLUME: "volume claim {claim}: {problem}",
    Code.VOLUME_TOPOLOGY: "the pod's volumes allow only {allowed}",
    Code.VOLUME_LIMIT: "the node takes no more volumes of {drivers}",
    Code.RESOURCE_CLAIM: "ResourceClaim {claim}: {problem}",
    Code.DEVICES: (
        "request {request} asks for {wanted} devices; of the {devices} here {left} would do (ruled out: {selectors})"
    ),
    Code.DEVICES_TOGETHER: "each request of {claims} finds devices here, but no way was found to give them all",
    Code.DEVICES_ELSEWHERE: "the devices of {claims} cannot be used here",
    Code.HOST_PORTS: "host ports {ports} are taken",
    Code.RESOURCES: "not enough {resources} left",
    Code.NODE_LIMIT: "the NodePool's limit of {limit} nodes is reached",
    Code.LIMITS: "every suitable type exceeds what the NodePool's limits leave of {resources}",
    Code.MIN_VALUES: "fewer distinct values of {keys} remain than minValues asks for",
    Code.TYPES_REQUIREMENTS: "none of {types} types meets the requirements on {keys}",
    Code.TYPES_RESOURCES: "none of the {types} types that meet the requirements has enough {resources}",
    Code.TYPES_OFFERINGS: "none of the {types} types that would do is on offer",
    Code.TYPES_COMBINED: (
        "no type does it all: {requirements} meet the requirements, {resources} are large enough, "
        "{offerings} are on offer"
    ),
    Code.RESERVATION: "reserved capacity is used up in this pass; the pod waits for the next one",
    Code.LEFT_OUT: "a node of it would keep more other pods pending, or ones of higher priority",
    Code.LAUNCHED_IN_VAIN: (
        "the node that was launched for it, of NodeClaim {claim}, cannot take it as it is; another one is launched ten "
        "seconds after that one"
    ),
}


def sentence(given: Reason) -> str:
    """The reason in words; a code of another list gives the code and its parameters."""
    shown = {name: ", ".join(v) if isinstance(v, list) else v for name, v in given.params.items()}
    template = _SENTENCES.get(given.code)
    if template is None:
        return f"{given.code} {shown}" if shown else given.code
    if given.code == Code.TOPOLOGY:
        shown["domains"] = _domains(given)
    if given.code == Code.NO_INSTANCE_TYPES and not given.params.get("types"):
        template = "there are no instance types for it"
    text = template.format_map(shown) + _meant(given)
    return f"NodePool {shown['node_pool']}: {text}" if "node_pool" in shown else text


def _domains(given: Reason) -> str:
    """How many pods count where. Nodes of this plan have no names yet."""
    found = given.params.get("domains")
    named = [each for each in found if "=" in each] if isinstance(found, list) else []
    rest = [each for each in found if "=" not in each] if isinstance(found, list) else []
    noun = "nodes" if given.params.get("key") == HOSTNAME else "domains"
    if not named and not rest:
        if given.params.get("rule") == "affinity":
            return "there are no such pods"
        return "there is none" if given.params.get("key") == HOSTNAME else "no node has the label, or would have it"
    if not named:
        return f"{rest[0].removeprefix('and ').removesuffix(' more')} {noun} of this plan"
    return f"pods that count: {', '.join([*named, *(f'{each} {noun}' for each in rest)])}"


def _meant(given: Reason) -> str:
    """The labels that may be meant instead of those that nobody knows (S-22). It is found out when it is told: what
    names look like decides nothing."""
    keys = given.params.get("keys", given.params.get("key", []))
    known = given.params.get("known", [])
    if given.code not in (Code.LABEL_UNDEFINED, Code.RESTRICTED_LABEL) or not isinstance(known, list):
        return ""
    asked = keys if isinstance(keys, list) else [str(keys)]
    found = {suggestion(key, WELL_KNOWN, known) for key in asked if key not in WELL_KNOWN}
    named = sorted(each for each in found if each is not None)
    return f" (is {' or '.join(named)} meant?)" if named else ""
