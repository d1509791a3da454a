"""Refuses what the API server refuses in the resources of a container or a pod, and in the devices that it claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.manifests.rules.checks import Check, domain_name, needs, size_of, unique, values_at
from kerf.engine.model.manifests.rules.names import check_label_name
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import LARGEST_AMOUNT, parse_quantity

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"
_OF_PODS = frozenset({"cpu", "memory"})
"""What a pod can ask for as a whole, beside huge pages."""
_MILLI = "cpu"
"""Quantities are read as of this resource to see thousandths."""


def check_resources(resources: dict[str, Any], path: str, report: Report, *, beside: Iterable[str] = ()) -> None:
    """Report resources that none has, what is no quantity, and requests that do not suit their limits. `beside`: what
    the containers of a pod name, of which its own resources are made."""
    amounts = {
        holder: {
            name: report.attempt(f"{path}.{holder}[{name}]", parse_quantity, written, name, otherwise=None)
            for name, written in _written(resources, holder).items()
        }
        for holder in ("requests", "limits")
    }
    for holder, found in amounts.items():
        for name, amount in found.items():
            if amount is not None and amount < 0:
                report.add("KERF306", f"{path}.{holder}[{name}]", f"{resources[holder][name]!r} is less than zero")
            _check_name(name, resources[holder][name], f"{path}.{holder}[{name}]", report)
    named = {name for found in amounts.values() for name in found}
    if any(name.startswith(_HUGE_PAGES) for name in named) and named.union(beside).isdisjoint({"cpu", "memory"}):
        report.add("KERF304", path, "Huge pages need cpu or memory beside them", "Ask for some of either, too")
    for name, amount in amounts["requests"].items():
        at, most = f"{path}.requests[{name}]", amounts["limits"].get(name)
        whole = not _may_be_exceeded(name)
        if whole and not _names(resources, "limits", name):
            report.add("KERF309", at, f"{name} needs a limit too", "Write the same amount into limits, or only there")
        if amount is None or most is None:
            continue
        requested, limit = resources["requests"][name], resources["limits"][name]
        if amount > most:
            message = f"{name} requests {requested}, which is more than its limit {limit}"
            report.add("KERF309", at, message, "Raise the limit, or ask for less")
        elif whole and amount < most:
            message = f"{name} requests {requested}, and its limit is {limit}: the two have to be equal"
            report.add("KERF309", at, message, "Leave out the request: it is the limit then")


def _check_name(name: str, written: Any, path: str, report: Report) -> None:
    """Report a name without a domain that is not one of Kubernetes' own, and a part of a device."""
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        hint = "Names of other resources have a domain, such as nvidia.com/gpu"
        report.add("KERF305", path, f"{name!r} is not one of {', '.join(sorted(_STANDARD))}", hint)
    elif _is_extended(name):
        amount = report.attempt(path, parse_quantity, written, _MILLI, otherwise=0)
        if amount % 1000 and amount < LARGEST_AMOUNT:  # at which it is cut off
            report.add("KERF306", path, f"{written} of {name} is not a whole number")


def _claim(report: Report, path: str, value: Any) -> None:
    """Report a claim of devices that is not one object, or its template."""
    if isinstance(value, dict):
        given = [field for field in _CLAIMED_BY if value.get(field) is not None]
        if len(given) != 1:
            code, so = ("KERF309", "both") if given else ("KERF304", "neither")
            report.add(code, path, f"It needs one of {' and '.join(_CLAIMED_BY)}, and has {so}")
        needs("name")(report, path, value)


_CLAIMED_BY = ("resourceClaimName", "resourceClaimTemplateName")
RULES_OF_CLAIMS: dict[str, Check] = {
    "resourceClaims": unique,
    "resourceClaims[]": _claim,
    "resourceClaims[].name": check_label_name,
    **{f"resourceClaims[].{field}": domain_name for field in _CLAIMED_BY},
    **{f"{holder}[].resources.claims[]": needs("name") for holder in ("containers", "initContainers")},
    **{f"{holder}[].resources.claims[].request": check_label_name for holder in ("containers", "initContainers")},
}


def check_claims(spec: dict[str, Any], path: str, report: Report) -> None:
    """Report containers that use a claim which their pod does not have, and amounts that no pod has as a whole."""
    if not isinstance(spec.get("resourceClaims"), list | None):
        return  # its type is what is wrong
    names = [str(name) for _, name in values_at(spec, "resourceClaims[].name", path)]
    for holder in ("containers", "initContainers"):
        for at, name in values_at(spec, f"{holder}[].resources.claims[].name", path):
            if isinstance(name, str) and name and name not in names:
                hint = is_it(did_you_mean(name, names)) or "Write it into resourceClaims"
                report.add("KERF305", at, f"The pod has no claim {name}", hint)
    resources = spec.get("resources")
    if isinstance(resources, dict) and resources.get("claims") is not None:
        report.add("KERF305", f"{path}.resources.claims", "Only containers use claims", "Write it into a container")
    for field in ("requests", "limits"):
        for name in _written(resources, field) if isinstance(resources, dict) else ():
            if name not in _OF_PODS and not name.startswith(_HUGE_PAGES):
                message = f"A pod as a whole asks for cpu, memory and huge pages, not for {name}"
                report.add("KERF305", f"{path}.resources.{field}[{name}]", message, "Write it into a container")
    for name, written in _written(spec, "overhead").items():
        at = f"{path}.overhead[{name}]"
        _check_name(name, written, at, report)
        size_of(0)(report, at, written)


def _is_extended(name: str) -> bool:
    """Returns whether it is a resource of devices. Those with kubernetes.io in their domain are Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name


def _may_be_exceeded(name: str) -> bool:
    """Returns whether containers may use more of it than they request. Nobody shares devices and huge pages."""
    return not _is_extended(name) and not name.startswith(_HUGE_PAGES)


def _names(resources: dict[str, Any], holder: str, name: str) -> bool:
    part = resources.get(holder)
    return not isinstance(part, dict | None) or name in (part or {})  # of another type: that is what is wrong


def _written(resources: dict[str, Any], holder: str) -> dict[str, Any]:
    part = resources.get(holder)
    entries = part.items() if isinstance(part, dict) else ()
    return {
        str(name): value
        for name, value in entries
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
