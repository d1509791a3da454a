"""Host ports: which pods cannot share a node because both want the same one (S-97)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.kubernetes.pods import HostPort

UNSPECIFIED = frozenset(["", "0.0.0.0", "::"])


def port_conflict(a: HostPort, b: HostPort) -> bool:
    """Whether two host ports conflict: equal port and protocol, and equal addresses or one of them unspecified."""
    if a.port != b.port or a.protocol != b.protocol:
        return False
    return a.ip == b.ip or a.ip in UNSPECIFIED or b.ip in UNSPECIFIED


def port_conflicts(requested: Iterable[HostPort], used: Iterable[HostPort]) -> tuple[HostPort, ...]:
    """The wanted ports that conflict with ports in use."""
    taken = tuple(used)
    return tuple(port for port in requested if any(port_conflict(port, other) for other in taken))
