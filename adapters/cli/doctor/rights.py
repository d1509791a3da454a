"""What kerf must be allowed to do on the API server, by mode (L-343 to L-354). The chart's roles give exactly this."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED

READ = ("get", "list", "watch")
NODE_CLASSES = {"kwok": ("karpenter.kwok.sh", "kwoknodeclasses"), "aws": ("karpenter.k8s.aws", "ec2nodeclasses")}
"""API group and resource, by provider."""

REVIEWS = (("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews"))


class Right(Struct, frozen=True, order=True):
    """`resource` may have a subresource behind a slash; `namespace` and `name` are empty for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" {self.namespace}/{self.name}".rstrip("/") if self.namespace else ""
        return f"{self.verb} {place}{where}"


def needed(
    mode: str,
    provider: str,
    *,
    lease_namespace: str,
    lease_name: str,
    metrics_authorization: bool = False,
    kinds: Sequence[WatchedKind] = WATCHED,
) -> list[Right]:
    """All of them, in a fixed order."""
    group, resource = NODE_CLASSES[provider]
    watched = [(served.group, served.plural) for kind in kinds for served in kind.served]
    rights = [Right(*served, verb) for served in (*watched, (group, resource)) for verb in READ]
    if metrics_authorization:
        rights += [Right(*review, "create") for review in REVIEWS]
    if mode == "observe":
        return sorted(rights)
    rights += [right for kind in kinds for right in _written(kind)]
    rights += [Right("", "events", verb) for verb in ("create", "patch")]
    if provider == "kwok":
        rights.append(Right("", "nodes", "create"))
    else:  # finalizer and hash; status
        rights += [Right(group, target, "patch") for target in (resource, f"{resource}/status")]
    leases = ("coordination.k8s.io", "leases")
    rights.append(Right(*leases, "create", lease_namespace))
    rights += [Right(*leases, verb, lease_namespace, lease_name) for verb in ("get", "update")]
    return sorted(rights)


def _written(kind: WatchedKind) -> list[Right]:
    """What control mode does to the objects of a kind."""
    return [
        Right(served.group, f"{served.plural}/{part}" if part else served.plural, verb)
        for served in kind.served
        for part, verbs in kind.writes
        for verb in verbs
    ]
