"""Why a pod has no place, or why a candidate was ruled out: a closed list of codes with their sentences.

The parameters of a reason are facts, never prose, and lists among them are sorted. Each reason that concerns a NodePool
has the parameter `node_pool`.
"""

from __future__ import annotations

from kerf.engine.model.karpenter.requirements import Conflict, Requirements
from kerf.engine.model.labels import HOSTNAME, WELL_KNOWN, is_restricted
from kerf.engine.model.mistyped import suggestion
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.engine.scheduling.topology.rules import Rule

MAX_DOMAINS_SHOWN = 25
"""S-136: how many domains a reason names."""


class SchedulingCode(ReasonCode):
    """Each code with its sentence; below it, where it applies and the parameters it carries."""

    # a pod that is refused before scheduling (S-42)
    OPTED_OUT = "opted-out", "the pod asks for nodes that belong to no NodePool ({requirement})"
    """The pod asks for nodes without a NodePool. `requirement`."""
    RESTRICTED_LABEL = "restricted-label", "label {key} may not be selected on"
    """`key` may not be selected on (S-25)."""
    INVALID_REQUIREMENT = "invalid-requirement", "requirement {key} {operator}{asked} is not valid: {problem}"
    """`key`, `operator`, `problem` (one of `RequirementProblem`), `values` (the first of them, where there are any)."""
    MATCH_FIELDS = "match-fields", "required node affinity uses matchFields ({keys})"
    """A required node affinity term has matchFields. `keys`."""
    VOLUME = "volume", "volume claim {claim}: {problem}"
    """A volume of the pod is not in order (S-153). `claim`, `problem`."""

    # nothing can be tried
    NO_NODE_POOL = "no-node-pool", "no NodePool is ready, dynamic and not being deleted"
    """No NodePool is ready, dynamic and not being deleted (S-62)."""
    NOT_READY = "not-ready", "it is not ready; its nodes would suit the pod by their labels and taints"
    """The NodePool takes no part because it is not ready (S-61). `node_pool`."""
    NO_INSTANCE_TYPES = (
        "no-instance-types",
        "the NodePool's requirements and what is on offer leave none of its {types} instance types",
    )
    """The NodePool's requirements leave no instance type (S-66). `node_pool`, `types` (in its catalogue)."""
    TOO_FEW_TYPES = (
        "too-few-instance-types",
        "the NodePool's requirements leave {left} of its {types} instance types, with fewer values of {keys} than "
        "its minValues asks for",
    )
    """They leave some, and with these too few values for its minValues (S-66). `node_pool`, `types`, `left`, `keys`."""
    RESOURCE_CLAIMS = (
        "resource-claims-ignored",
        "the pod asks for devices by ResourceClaim ({claims}), and dynamic resource allocation is off "
        "(ignore-dra-requests)",
    )
    """The pod asks for devices by ResourceClaim, which the settings say to ignore (S-194). `claims`."""
    RESOURCE_CLAIM = "resource-claim", "ResourceClaim {claim}: {problem}"
    """A ResourceClaim is missing, or is one that nothing can meet (S-195, S-200). `claim`, `problem`."""
    CONTRADICTION = "contradiction", "what the pod asks of label {keys} contradicts itself: no node can have it"
    """What the pod asks of a label contradicts itself. `keys`."""
    NOT_SUPPORTED_YET = "not-supported-yet", "this version of kerf cannot place pods with {features}"
    """The pod carries what this version cannot place rightly. `features`."""

    # what rules out one candidate
    TAINTS = "taints-not-tolerated", "the pod does not tolerate {taints}"
    """`taints`."""
    LABEL_UNDEFINED = "label-undefined", "label {keys} is not defined here"
    """The candidate does not define labels that the pod selects on. `keys`, `known` (those of its own that it does)."""
    REQUIREMENTS = "requirements-conflict", "the pod asks for {incoming}, here is {existing}"
    """`keys`, `incoming` (what the pod asks), `existing` (what the candidate has)."""
    TOPOLOGY = "topology", "{rule} over {key} leaves no place ({domains})"
    """A rule of topology leaves no domain. `rule` (spread, affinity or anti-affinity), `key`, `domains` (counts as
    domain=pods, S-136)."""
    VOLUME_TOPOLOGY = "volume-topology", "the pod's volumes allow only {allowed}"
    """The pod's volumes are elsewhere. `allowed` (each alternative)."""
    VOLUMES_APART = "volumes-apart", "no node can be where each of the pod's volumes is: {places}"
    """The pod's volumes are in places that exclude each other (S-155). `places` (of each volume)."""
    VOLUME_LIMIT = "volume-limit", "the node takes no more volumes of {drivers}"
    """The node takes no more volumes of a driver (S-159). `drivers`."""
    DEVICES = (
        "devices",
        "request {request} asks for {wanted} devices; of the {devices} here {left} would do (ruled out: {selectors})",
    )
    """A request of a ResourceClaim finds too few devices (S-200). `request`, `wanted` (a number, or all), `devices`
    (that are there), `left` (by the selectors, and free), `selectors` (each with how many it ruled out)."""
    DEVICES_TOGETHER = (
        "devices-together",
        "each request of {claims} finds devices here, but no way was found to give them all",
    )
    """Each request alone finds devices, and the search found none for all together. `claims`."""
    DEVICES_ELSEWHERE = "devices-elsewhere", "the devices of {claims} cannot be used here"
    """A ResourceClaim has its devices, and they cannot be used here (S-199). `claims`."""
    HOST_PORTS = "host-ports-taken", "host ports {ports} are taken"
    """`ports`."""
    RESOURCES = "resources", "not enough {resources} left"
    """An existing node or an open claim has no room. `resources`: the names that do not fit."""
    NODE_LIMIT = "node-limit", "the NodePool's limit of {limit} nodes is reached"
    """The NodePool's `nodes` limit is used up (S-69). `limit`."""
    LIMITS = "limits", "every suitable type exceeds what the NodePool's limits leave of {resources}"
    """No type fits what the NodePool's limits leave (S-69). `resources`."""
    MIN_VALUES = "min-values", "fewer distinct values of {keys} remain than minValues asks for"
    """Fewer distinct values remain than asked for (S-107). `keys`."""
    TYPES_REQUIREMENTS = "types-requirements", "none of {types} types meets the requirements on {keys}"
    """No type of the NodePool meets the requirements. `keys`, `types`."""
    TYPES_RESOURCES = "types-resources", "none of the {types} types that meet the requirements has enough {resources}"
    """Types meet the requirements, and none is large enough. `resources`, `types`."""
    TYPES_OFFERINGS = "types-offerings", "none of the {types} types that would do is on offer"
    """Types meet the requirements and are large enough, and none is on offer. `types`."""
    TYPES_COMBINED = (
        "types-combined",
        "no type does it all: {requirements} meet the requirements, {resources} are large enough, {offerings} are "
        "on offer",
    )
    """Each type fails for another reason. `requirements`, `resources`, `offerings`: how many types meet
    each alone."""
    LABEL_NOT_GIVEN = (
        "label-not-given",
        "its nodes came without {requirements}, {launches} times in a row: it launches no more for that until it or "
        "its NodeClass is changed",
    )
    """Launches did not give what they were made for. `requirements`, `launches`."""
    RESERVATION = "reservation-deferred", "reserved capacity is used up in this pass; the pod waits for the next one"
    """Reserved capacity would do, and this pass has used it up; the pod waits for the next pass (S-116)."""
    LEFT_OUT = "left-out", "a node of it would keep more other pods pending, or ones of higher priority"
    """A node could be launched, and with it more other pods would stay pending, or ones of higher priority."""
    LAUNCHED_IN_VAIN = (
        "launched-in-vain",
        "the node that was launched for it, of NodeClaim {claim}, was lost, or cannot take it as it is; another one is "
        "launched after a pause, which is ten seconds at first and doubles each time up to half an hour",
    )
    """The node that was launched for the pod a moment ago was lost before it joined, or cannot take it; another one has
    to wait. `claim`."""
    LAUNCHED_TAINTED = (
        "launched-tainted",
        "the node that was launched for it, of NodeClaim {claim}, has {taints}, which its NodePool does not name and "
        "the pod does not tolerate; another one is launched after a pause, which is ten seconds at first and doubles "
        "each time up to half an hour (a taint that something takes off again belongs among the NodePool's "
        "startupTaints)",
    )
    """The node that was launched for the pod was in service with taints that its NodePool does not name; another one
    has to wait. `claim`, `taints`."""

    BESIDE_HELD_PODS = (
        "beside-held-pods",
        "it must be beside pods (pod affinity) that PodDisruptionBudget {budgets} keeps on node {nodes}, which is "
        "going: only with {where} could it run",
    )
    """The pods that it has to be with leave their nodes only after it. `budgets` (namespace/name), `nodes`, `where`
    these are, each as key=value."""
    IN_DOUBT = (
        "in-doubt",
        "a node in {zones} is launched first, for which there was no capacity when it was last asked for; the others "
        "come when it has come",
    )
    """Nodes of the pod's plan are of use only beside one that the cloud has refused so far. `zones` of that one."""

    # a pod of a node on its way out that is planned for only later (S-48, S-49)
    KEPT_BY_ANNOTATION = "kept-by-annotation", "karpenter.sh/do-not-disrupt keeps it on node {node}, which is going"
    """The pod's annotation forbids its eviction. `node`; if it is known when the pod leaves at the latest, `leaves` and
    `planned`, from when on its next place is looked for."""
    KEPT_BY_BUDGET = "kept-by-budget", "PodDisruptionBudget {budgets} keeps it on node {node}, which is going"
    """PodDisruptionBudgets never allow the pod's eviction as things are. `budgets` (namespace/name), and as above."""


BY_TOPOLOGY = (SchedulingCode.TOPOLOGY, SchedulingCode.LEFT_OUT)
"""The reasons of pods that topology keeps pending. (What was left out for them would do for a pod alone.)"""


def reason(code: SchedulingCode, **params: str | int | float | list[str]) -> Reason:
    return Reason(code.value, dict(sorted(params.items())))


def conflict_reason(conflicts: tuple[Conflict, ...], own: Requirements, **params: str) -> Reason:
    """The reason for conflicts between a pod's requirements and those of a candidate (`own`)."""
    unknown = sorted(conflict.key for conflict in conflicts if conflict.existing is None)
    if unknown:
        known = sorted(
            requirement.key
            for requirement in own
            if requirement.key not in WELL_KNOWN and not is_restricted(requirement.key)
        )
        return reason(SchedulingCode.LABEL_UNDEFINED, keys=unknown, known=known, **params)
    return reason(
        SchedulingCode.REQUIREMENTS,
        keys=[conflict.key for conflict in conflicts],
        incoming=[str(conflict.incoming) for conflict in conflicts],
        existing=[str(conflict.existing) for conflict in conflicts],
        **params,
    )


def volumes_reason(alternatives: tuple[Requirements, ...], apart: tuple[str, ...], **params: str) -> Reason:
    """The places that a pod's volumes allow together; or those of each, where no node could have all (`apart`)."""
    if apart:
        return reason(SchedulingCode.VOLUMES_APART, places=list(apart), **params)
    return reason(SchedulingCode.VOLUME_TOPOLOGY, allowed=[str(place) for place in alternatives], **params)


def topology_reason(rule: Rule, **params: str) -> Reason:
    """The rule, and how many pods are in each domain (S-136). Claims of this pass have no names yet, so they are only
    counted."""
    named = sorted((d, pods) for d, pods in rule.count.counts.items() if isinstance(d, str))
    shown = [f"{domain}={pods}" for domain, pods in named[:MAX_DOMAINS_SHOWN]]
    more = len(rule.count.counts) - len(shown)
    domains = [*shown, f"and {more} more"] if more else shown
    return reason(SchedulingCode.TOPOLOGY, rule=rule.kind, key=rule.key, domains=domains, **params)


_BY_CODE: dict[str, SchedulingCode] = {code.value: code for code in SchedulingCode}
_OF_ONE_TYPE: dict[str, str] = {
    SchedulingCode.TYPES_REQUIREMENTS: "the only type does not meet the requirements on {keys}",
    SchedulingCode.TYPES_RESOURCES: "the only type that meets the requirements does not have enough {resources}",
    SchedulingCode.TYPES_OFFERINGS: "the only type that would do is not on offer",
}
"""What sentences that count types say where there is one."""


def sentence(reason: Reason) -> str:
    """The reason in words. A code that this list does not have is shown with its parameters."""
    shown = {name: ", ".join(v) if isinstance(v, list) else v for name, v in reason.params.items()}
    code = _BY_CODE.get(reason.code)
    if code is None:
        return f"{reason.code} {shown}" if shown else reason.code
    template = _OF_ONE_TYPE.get(reason.code, code.sentence) if reason.params.get("types") == 1 else code.sentence
    if reason.code == SchedulingCode.TOPOLOGY:
        shown["domains"] = _domains(reason)
    if reason.code == SchedulingCode.INVALID_REQUIREMENT:
        shown["asked"] = f" [{shown['values']}]" if "values" in shown else ""
    if reason.code == SchedulingCode.NO_INSTANCE_TYPES and not reason.params.get("types"):
        template = "there are no instance types for it"
    text = template.format_map(shown) + _meant(reason) + _planned_from(reason)
    return f"NodePool {shown['node_pool']}: {text}" if "node_pool" in shown else text


def _domains(reason: Reason) -> str:
    """How many pods are counted in which domain. Nodes of this plan are only counted: they have no names yet."""
    domains = reason.params.get("domains")
    named = [domain for domain in domains if "=" in domain] if isinstance(domains, list) else []
    rest = [domain for domain in domains if "=" not in domain] if isinstance(domains, list) else []
    several = "nodes" if reason.params.get("key") == HOSTNAME else "domains"
    noun = several.removesuffix("s") if rest[:1] == ["and 1 more"] else several
    if not named and not rest:
        if reason.params.get("rule") == "affinity":
            return "there are no such pods"
        return "there is none" if reason.params.get("key") == HOSTNAME else "no node has the label, or would have it"
    if not named:
        return f"{rest[0].removeprefix('and ').removesuffix(' more')} {noun} of this plan"
    return f"pods that count: {', '.join([*named, *(f'{number} {noun}' for number in rest)])}"


def _planned_from(reason: Reason) -> str:
    """From when on the next place of a pod is looked for that is kept on a going node."""
    if reason.code not in (SchedulingCode.KEPT_BY_ANNOTATION, SchedulingCode.KEPT_BY_BUDGET):
        return ""
    if "planned" not in reason.params:
        return "; its next place is looked for when it may leave"
    return "; it leaves at {leaves} at the latest, and its next place is looked for from {planned} on".format_map(
        reason.params
    )


def _meant(reason: Reason) -> str:
    """A hint at the known labels that an unknown one may stand for (S-22). It is worked out only here, so that spelling
    decides nothing."""
    keys = reason.params.get("keys", reason.params.get("key", []))
    known = reason.params.get("known", [])
    if reason.code not in (SchedulingCode.LABEL_UNDEFINED, SchedulingCode.RESTRICTED_LABEL) or not isinstance(
        known, list
    ):
        return ""
    asked = keys if isinstance(keys, list) else [str(keys)]
    similar = {suggestion(key, WELL_KNOWN, known) for key in asked if key not in WELL_KNOWN}
    named = sorted(label for label in similar if label is not None)
    return f" (is {' or '.join(named)} meant?)" if named else ""
