"""kube-scheduler's filter plugins: what it asks of a node before it binds a pod there.

They are written from Kubernetes' rules, on purpose without the engine's scheduling code, so that they can judge a plan:
a pod that the engine planned onto a node has to pass here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, HostPort, NodeTerm, PodShape, Resources, Taint, Toleration
from kerf.engine.runtime.proposed_taints import PROPOSED

NODE_NAME_FIELD = "metadata.name"
ANY_ADDRESS = ("0.0.0.0", "::")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_CANONICAL = re.compile(r"0|-?[1-9][0-9]*")


def resources_fit(requests: Resources, free: Resources) -> bool:
    """Whether the requests fit (NodeResourcesFit). The resource `pods` counts one for the pod itself; a request for 0
    always fits."""
    if free.get("pods", 0) < 1:
        return False
    return all(amount <= free.get(name, 0) for name, amount in requests.items() if amount > 0)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Canonical integers only: kube-scheduler takes neither "007" nor "+5" (KEP-5471).
    canonical = _CANONICAL.fullmatch(taint.value) and _CANONICAL.fullmatch(toleration.value)
    return bool(canonical) and _integers_compare(taint.value, toleration.operator, toleration.value)


def taints_tolerated(shape: PodShape, taints: Iterable[Taint], effects: tuple[str, ...]) -> bool:
    """Whether the pod tolerates the taints with one of these effects (TaintToleration)."""
    return all(tolerates(shape.tolerations, taint) for taint in taints if taint.effect in effects)


def untolerated_preferences(shape: PodShape, node: Node) -> int:
    """Count the PreferNoSchedule taints that the pod does not tolerate. They are scored, never filtered."""
    taints = (*node.taints, PROPOSED) if node.proposed else node.taints
    return sum(t.effect == "PreferNoSchedule" and not tolerates(shape.tolerations, t) for t in taints)


def node_selected(shape: PodShape, node: Node) -> bool:
    """Whether the node matches the node selector, and one of the required terms if there are any (NodeAffinity)."""
    if any(node.labels.get(key) != value for key, value in shape.node_selector.items()):
        return False
    return not shape.required_terms or any(term_matches(term, node) for term in shape.required_terms)


def preferred_weight(shape: PodShape, node: Node) -> int:
    """Sum the weights of the preferred terms that the node matches."""
    return sum(wanted.weight for wanted in shape.preferred_terms if term_matches(wanted.term, node))


def term_matches(term: NodeTerm, node: Node) -> bool:
    """Whether all expressions and fields of the term hold. A term without any matches nothing."""
    if not term.expressions and not term.fields:
        return False
    return all(expression_holds(e, node.labels) for e in term.expressions) and all(
        expression_holds(e, {NODE_NAME_FIELD: node.name}) for e in term.fields
    )


def expression_holds(expression: Expression, labels: dict[str, str]) -> bool:
    """Whether one matchExpression holds for these labels. NotIn and DoesNotExist hold where the label is absent."""
    check = _OPERATORS.get(expression.operator)
    return check is not None and check(labels.get(expression.key), expression.values)


def _integers_compare(text: str | None, operator: str, bound: str) -> bool:
    """Compare two integers (`Gt`, `Lt`). Whatever is no integer of 64 bits, and any other operator, matches nothing."""
    left, right = _int64(text or ""), _int64(bound)
    if left is None or right is None:
        return False
    return (operator == "Gt" and left > right) or (operator == "Lt" and left < right)


def _int64(text: str) -> int | None:
    """Parse as Go's strconv.ParseInt(text, 10, 64) does: "+5" and "007" are integers, " 5" and "1_000" are none."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


_OPERATORS: dict[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
    "Gt": lambda value, values: len(values) == 1 and _integers_compare(value, "Gt", values[0]),
    "Lt": lambda value, values: len(values) == 1 and _integers_compare(value, "Lt", values[0]),
}


def ports_free(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether no wanted host port clashes with a used one (NodePorts)."""
    taken = tuple(used)
    return not any(_ports_clash(port, other) for port in wanted for other in taken)


def _ports_clash(one: HostPort, other: HostPort) -> bool:
    if one.port != other.port or one.protocol != other.protocol:
        return False
    return one.ip == other.ip or one.ip in ANY_ADDRESS or other.ip in ANY_ADDRESS


def statically_possible(shape: PodShape, node: Node) -> bool:
    """Whether the node passes the filters that depend on pod and node alone, not on what else runs there."""
    return node_selected(shape, node) and taints_tolerated(shape, node.taints, ("NoSchedule", "NoExecute"))
