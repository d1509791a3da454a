"""One event of an audit log: what was asked for, by whom, and what came of it (F-110…F-121)."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from kerf.adapters.importers.untrusted import name_of, text_of, time_of, whole_number

_API = "audit.k8s.io/"
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_FRACTION = re.compile(r"\.(\d{1,9})")
_LONGEST_NAME = 500  # of a user
REFUSED_BY_BUDGET = 429
"""The answer to an eviction that a PodDisruptionBudget forbids."""


class AuditEvent(Struct, frozen=True):
    """One write, or an eviction that was refused.

    `order` is the time asked for in µs, then the number in the file (F-140). `name` is "" for a create whose name the
    server made up. `request` and `response` are None where the level leaves them out (F-136).
    """

    order: tuple[int, int]
    at: int
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    actor: str
    program: str
    request: Any
    response: Any

    @property
    def is_karpenters(self) -> bool:
        """Whether Karpenter asked: its service account, or the program that it says it is (F-114, F-135)."""
        account = self.actor.startswith("system:serviceaccount:") and "karpenter" in self.actor
        return account or self.program.startswith("karpenter/")

    @property
    def is_somebodys(self) -> bool:
        """Whether a person or a program of the user's asked, and no part of Kubernetes or Karpenter."""
        system = self.actor.startswith(
            ("system:node:", "system:kube-", "system:apiserver", "system:serviceaccount:kube-")
        )
        return not system and not self.program.startswith(("kube-", "kubelet/", "kwok/")) and not self.is_karpenters


def is_audit(fields: dict[str, Any]) -> bool:
    return text_of(fields.get("apiVersion")).startswith(_API) and fields.get("kind") in ("Event", "EventList")


def events_in(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The event, or those of a webhook's batch."""
    if fields.get("kind") != "EventList":
        return [fields]
    items = fields.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def is_complete(fields: dict[str, Any]) -> bool:
    """Whether the event says how a request ended. Others are of its beginning (F-111)."""
    return fields.get("stage") == "ResponseComplete" and bool(text_of(fields.get("auditID")))


def audit_event(fields: dict[str, Any], number: int) -> AuditEvent | None:
    """The event; None for one that has changed nothing: a read, a dry run, a refusal (F-112, F-116), or without a
    time."""
    reference, verb = fields.get("objectRef"), text_of(fields.get("verb"))
    stamp = fields.get("requestReceivedTimestamp")
    at = time_of(stamp)
    if verb not in _WRITES or not isinstance(reference, dict) or at is None:
        return None
    status = fields.get("responseStatus")
    code = whole_number(status.get("code")) if isinstance(status, dict) else 0
    subresource = text_of(reference.get("subresource"))
    blocked = subresource == "eviction" and code == REFUSED_BY_BUDGET
    if "dryRun=All" in text_of(fields.get("requestURI")) or not (blocked or not code or 200 <= code < 300):
        return None
    fraction = _FRACTION.search(text_of(stamp))
    micros = int(fraction[1].ljust(6, "0")[3:6]) if fraction else 0
    return AuditEvent(
        order=(at * 1000 + micros, number),
        at=at,
        verb=verb,
        group=text_of(reference.get("apiGroup")),
        resource=text_of(reference.get("resource")),
        subresource=subresource,
        namespace=name_of(reference.get("namespace")),
        name=name_of(reference.get("name")),
        code=code,
        actor=_actor(fields),
        program=text_of(fields.get("userAgent")),
        request=fields.get("requestObject"),
        response=_object(fields.get("responseObject")),
    )


def _actor(fields: dict[str, Any]) -> str:
    """The user; with impersonation both (F-113)."""
    user, acted_for = _username(fields.get("user")), _username(fields.get("impersonatedUser"))
    return f"{acted_for} (through {user})" if acted_for and user else acted_for or user


def _username(user: object) -> str:
    return text_of(user.get("username"))[:_LONGEST_NAME] if isinstance(user, dict) else ""


def _object(response: Any) -> dict[str, Any] | None:
    """The object after the write; None for a Status (F-118)."""
    return response if isinstance(response, dict) and response.get("kind") != "Status" else None
