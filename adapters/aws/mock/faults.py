"""What goes wrong in the mock cloud: a table that tests write and read. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec import Struct, field

FOREVER = 1 << 30


class Fault(Struct):
    """`count` calls of operations that match `operation` ("CreateFleet", "Describe*") fail in the way of
    `kind`:

    throttled (503 RequestLimitExceeded, not done), unavailable (500 InternalError, not done), refused (403
    UnauthorizedOperation, not done), unreachable (no connection, not done), lost (done, but the answer is
    lost), or any other error that AWS gives, as "400 InvalidAMIID.NotFound message" (not done).
    """

    operation: str
    kind: str
    count: int = 1


_ERRORS = {
    "throttled": (503, "RequestLimitExceeded", "Request limit exceeded."),
    "unavailable": (500, "InternalError", "An internal error has occurred."),
    "refused": (403, "UnauthorizedOperation", "You are not authorized to perform this operation."),
}


def error_of(kind: str) -> tuple[int, str, str] | None:
    """HTTP status, code and message of the error by which a fault of this kind shows; None for one without."""
    if kind[:1].isdigit():
        status, code, message = kind.split(" ", 2)
        return int(status), code, message
    return _ERRORS.get(kind)


class Shortage(Struct):
    """Offerings that match (patterns as in `Fault`) have no capacity for the next `count` launches that try
    them."""

    instance_type: str = "*"
    zone: str = "*"
    capacity_type: str = "*"
    code: str = "InsufficientInstanceCapacity"
    message: str = "There is no capacity available that matches your request."
    count: int = FOREVER


class FaultPlan(Struct):
    """Faults and shortages, used up in order. `hits` lists what struck, as "operation kind" or "type zone capacity
    type"."""

    faults: list[Fault] = field(default_factory=list)
    shortages: list[Shortage] = field(default_factory=list)
    hits: list[str] = field(default_factory=list)

    def fault(self, operation: str) -> str:
        """The kind of fault that this call meets, used up by asking; "" for none."""
        for fault in self.faults:
            if fault.count and fnmatchcase(operation, fault.operation):
                fault.count -= 1
                self.hits.append(f"{operation} {fault.kind}")
                return fault.kind
        return ""

    def shortage(self, instance_type: str, zone: str, capacity_type: str) -> Shortage | None:
        """The lack of capacity that a launch meets in this offering, used up by asking."""
        for shortage in self.shortages:
            wanted = (shortage.instance_type, shortage.zone, shortage.capacity_type)
            found = (instance_type, zone, capacity_type)
            if shortage.count and all(map(fnmatchcase, found, wanted)):
                shortage.count -= 1
                self.hits.append(" ".join(found))
                return shortage
        return None

    def clear(self) -> None:
        self.faults.clear()
        self.shortages.clear()
        self.hits.clear()
