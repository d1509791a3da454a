"""Fields that several kinds share: requirements, taints, references, durations, conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kerf.engine.model import labels
from kerf.engine.model.crds.schema import (
    Fault,
    Rule,
    Schema,
    compiled,
    integer,
    list_of,
    map_of,
    object_of,
    quantity,
    text,
)
from kerf.engine.model.durations import API_DURATION, NEVER
from kerf.engine.model.mistyped import suggestion

QUALIFIED = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
)
"""QKEY of the specification: a name, with or without a DNS domain before it."""
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
"""LVAL of the specification, without its length."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
NUMERIC = ("Gt", "Lt", "Gte", "Lte")
MOST_REQUIREMENTS = 100
_LARGEST = (1 << 63) - 1
_INTEGER = r"^[+-]?[0-9]+$"

_DURATION_HINT = 'Write whole hours, minutes and seconds, such as "30m" or "168h"'


def duration(description: str, **keywords: Any) -> Schema:
    """Returns the schema of a duration (DUR of the specification)."""
    return text(
        description, pattern=f"^{API_DURATION}$", what="a duration", code="KERF307", hint=_DURATION_HINT, **keywords
    )


def nillable_duration(description: str, **keywords: Any) -> Schema:
    """Returns the schema of a duration or `Never` (DURN of the specification)."""
    hint = f'{_DURATION_HINT}, or "Never"'
    return text(
        description, pattern=f"^({API_DURATION}|{NEVER})$", what="a duration", code="KERF307", hint=hint, **keywords
    )


def quantities(description: str, rules: tuple[Rule, ...] = ()) -> Schema:
    return map_of(quantity(), description, rules=rules)


# ── label keys ─────────────────────────────────────────────────────────────────────────────────────────────────────

_KWOK = ("kwoknodeclass", "instance-cpu", "instance-memory", "instance-family", "instance-size")
_NOT_FOR_OVERLAYS = ("capacity-reservation-", "instance-tenancy", "placement-group-")

KARPENTER = ("karpenter.sh", (labels.CAPACITY_TYPE, labels.NODEPOOL))
"""The restricted domain, and the keys in it that are allowed nevertheless (L-30)."""
AWS = ("karpenter.k8s.aws", (*sorted(labels.AWS_WELL_KNOWN), labels.EC2NODECLASS))
"""The restricted domain of the AWS provider, and the keys in it that are allowed (L-31, A-69)."""
AWS_OVERLAY = (AWS[0], tuple(k for k in AWS[1] if not k.partition("/")[2].startswith(_NOT_FOR_OVERLAYS)))
"""As `AWS`, with the keys that a NodeOverlay may select on (A-69)."""
KWOK = ("karpenter.kwok.sh", tuple(f"karpenter.kwok.sh/{name}" for name in _KWOK))
"""The restricted domain of the KWOK provider, and the keys in it that are allowed (L-31)."""


def key_rules(
    *domains: tuple[str, tuple[str, ...]], forbidden: Iterable[str] = (), each: bool = False
) -> tuple[Rule, ...]:
    """Returns rules that refuse keys in these domains, except for the listed ones (L-30, L-31). `forbidden` keys are
    always refused.

    The test is a plain suffix test, wider than what scheduling restricts (S-25). With `each` the rules apply to the
    keys of a map, else to a text.
    """
    name, opening, closing = ("k", "self.all(k, ", ")") if each else ("self", "", "")
    rules = [
        Rule(
            f"{opening}{name} in [{_listed(k for k in allowed if k.startswith(domain))}] || "
            f"!{name}.find('^[^/]*').endsWith('{domain}'){closing}",
            f"keys in the domain {domain} are restricted",
            _over(_in_domain(domain, allowed), each),
        )
        for domain, allowed in domains
    ]
    rules += [
        Rule(f"{opening}{name} != '{key}'{closing}", f"{key} is restricted", _over(_equal_to(key), each))
        for key in forbidden
    ]
    return tuple(rules)


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)


def _in_domain(domain: str, allowed: tuple[str, ...]) -> Callable[[str], str]:
    def told(key: str) -> str:
        inside = key.partition("/")[0].endswith(domain) and key not in allowed
        return f"{key} is in the restricted domain {domain}" if inside else ""

    return told


def _equal_to(forbidden: str) -> Callable[[str], str]:
    return lambda key: f"{key} is set by Karpenter" if key == forbidden else ""


def _over(told: Callable[[str], str], each: bool) -> Callable[[Any], Iterator[Fault]]:
    def faults(value: Any) -> Iterator[Fault]:
        for key in value if each else (value,):
            if message := told(key):
                near = suggestion(key, labels.WELL_KNOWN, ())
                hint = f"Is it {near}?" if near and near != key else ""  # the key itself, where only others may name it
                yield Fault(f"[{key}]" if each else "", "KERF311", message, hint)

    return faults


# ── requirements ───────────────────────────────────────────────────────────────────────────────────────────────────


def _numeric(requirements: list[Any]) -> Iterator[Fault]:
    for at, requirement in enumerate(requirements):
        values, operator = requirement.get("values") or [], requirement["operator"]
        if operator not in NUMERIC:
            continue
        if len(values) != 1:
            message = f"Operator {operator} needs exactly one value, not {len(values)}"
            yield Fault(f"[{at}].values", "KERF310", message)
        elif not (compiled(_INTEGER).search(values[0]) and 0 <= int(values[0]) <= _LARGEST):
            message = f"Operator {operator} needs an integer that is at least 0, not {values[0]!r}"
            yield Fault(f"[{at}].values[0]", "KERF310", message)


def _valueless(*operators: str) -> Callable[[list[Any]], Iterator[Fault]]:
    def faults(requirements: list[Any]) -> Iterator[Fault]:
        for at, requirement in enumerate(requirements):
            if requirement["operator"] in operators and not requirement.get("values"):
                yield Fault(f"[{at}].values", "KERF310", f"Operator {requirement['operator']} needs at least one value")

    return faults


def _too_few(requirements: list[Any]) -> Iterator[Fault]:
    for at, requirement in enumerate(requirements):
        least, values = requirement.get("minValues"), requirement.get("values") or []
        if requirement["operator"] == "In" and least is not None and 1 <= least <= 50 and len(values) < least:
            message = f"minValues asks for {least} values of {len(values)}"
            yield Fault(f"[{at}].minValues", "KERF313", message, "List more values or ask for fewer")


_NUMERIC_RULE = Rule(
    f"self.all(r, !(r.operator in [{_listed(NUMERIC)}]) || (r.values.size() == 1 && int(r.values[0]) >= 0))",
    "the operators Gt, Lt, Gte and Lte need exactly one value, an integer that is at least 0",
    _numeric,
)
_IN_RULE = Rule(
    "self.all(r, r.operator != 'In' || r.values.size() > 0)", "the operator In needs a value", _valueless("In")
)
_IN_AND_NOT_IN_RULE = Rule(
    "self.all(r, !(r.operator in ['In', 'NotIn']) || r.values.size() > 0)",
    "the operators In and NotIn need a value",
    _valueless("In", "NotIn"),
)
_MIN_VALUES_RULE = Rule(
    "self.all(r, r.operator != 'In' || !has(r.minValues) || r.values.size() >= r.minValues)",
    "minValues asks for more values than the requirement lists",
    _too_few,
)


def requirements(*rules: Rule, overlay: bool = False) -> Schema:
    """Returns the schema of requirements (L-13, L-32, L-33; of a NodeOverlay L-49). `rules` apply to their keys.

    As in the reference, the controller checks the texts of values, not the schema (L-34).
    """
    key = text(
        "The label's key", max_length=316, pattern=QUALIFIED, what="a label key", rules=rules,
        missing="A requirement needs a key",
    )  # fmt: skip
    fields = {
        "key": key,
        "operator": text("How key and values relate", enum=OPERATORS),
        "values": list_of(text(), "The operator's values", list_type="atomic"),
    }
    if not overlay:
        fields["minValues"] = integer("At least so many of the values must stay possible", minimum=1, maximum=50)
    return list_of(
        object_of(fields, required=("key", "operator")),
        "What nodes must fulfil",
        max_items=MOST_REQUIREMENTS,
        list_type="atomic",
        rules=(_IN_AND_NOT_IN_RULE, _NUMERIC_RULE) if overlay else (_IN_RULE, _NUMERIC_RULE, _MIN_VALUES_RULE),
        missing="Write [] to allow everything",
    )


# ── taints, references, conditions ─────────────────────────────────────────────────────────────────────────────────


def taints(description: str) -> Schema:
    """The schema of a list of taints (L-12)."""
    return list_of(
        object_of(
            {
                "key": text(
                    "The taint's key",
                    min_length=1,
                    pattern=QUALIFIED,
                    what="a taint key",
                    missing="A taint needs a key",
                ),
                "value": text(
                    "The taint's value", pattern=QUALIFIED, what="a taint value", hint="Leave it out for no value"
                ),
                "effect": text("What it does to pods that do not tolerate it", enum=EFFECTS),
                "timeAdded": text("When the taint was added", format="date-time"),
            },
            required=("key", "effect"),
        ),
        description,
        list_type="atomic",
    )


def _filled(name: str, **keywords: Any) -> Schema:
    def faults(value: str) -> Iterator[Fault]:
        if not value:
            yield Fault("", "KERF304", f"nodeClassRef needs a {name}")

    rule = Rule("self != ''", f"{name} may not be empty", faults)
    return text(f"The {name} of the NodeClass", rules=(rule,), **keywords)


def node_class_ref(*, immutable: bool) -> Schema:
    """Returns the schema of a nodeClassRef (L-14). Group and kind must not change, even where the object may."""
    fields = ("group", "kind") if immutable else ()
    return object_of(
        {
            "group": _filled("group", pattern="^[^/]*$", what="a group", hint="Leave out the version"),
            "kind": _filled("kind"),
            "name": _filled("name"),
        },
        "The NodeClass that nodes are launched with",
        required=("group", "kind", "name"),
        rules=tuple(
            Rule(f"self.{field} == oldSelf.{field}", f"nodeClassRef.{field} may not change") for field in fields
        ),
        missing="Name the NodeClass by group, kind and name",
    )


def conditions(*, loose: bool = False, keyed: bool = False) -> Schema:
    """Returns the schema of status.conditions (L-40); `loose` is that of NodeClaims (L-46)."""
    reason = {} if loose else {"min_length": 1, "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}
    return list_of(
        object_of(
            {
                "type": text("What the condition is of", max_length=316, pattern=QUALIFIED, what="a condition's type"),
                "status": text("True, False or Unknown", enum=("True", "False", "Unknown")),
                "reason": text("Why, in one word", max_length=1024, what="a reason", **reason),
                "message": text("Why, in a sentence", max_length=32768),
                "lastTransitionTime": text("When the status changed last", format="date-time"),
                "observedGeneration": integer("The generation that was looked at", format="int64", minimum=0),
            },
            required=("type", "status", "lastTransitionTime") + (() if loose else ("reason", "message")),
        ),
        "What the controllers have found",
        **({"list_type": "map", "map_keys": ("type",)} if keyed else {}),
    )
