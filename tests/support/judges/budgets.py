"""Disruption budgets, read a second time: how many nodes they let go, minute by minute (D-43…D-48)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.engine.model.karpenter.nodepools import Budget, NodePool

EVERY = {
    "@annually": "0 0 1 1 *", "@yearly": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""Of the minute, the hour, the day of the month, the month and the day of the week."""
UNLIMITED = 2_147_483_647


def allowed(pool: NodePool, reason: str, total: int, now: int) -> int:
    """How many of so many nodes the budgets let go for a reason (D-47, D-48)."""
    if any(budget.schedule is not None and not _readable(budget.schedule) for budget in pool.budgets):
        return 0
    in_force = [b for b in pool.budgets if (not b.reasons or reason in b.reasons) and _in_force(b, now)]
    return min((_share(budget.nodes, total) for budget in in_force), default=UNLIMITED)


def _share(text: str, total: int) -> int:
    return -(-int(text[:-1]) * total // 100) if text.endswith("%") else int(text)


def _in_force(budget: Budget, now: int) -> bool:
    """D-45: whether one of the minutes of the window's length before now fires."""
    if budget.schedule is None or budget.duration is None:
        return True
    moment = datetime.fromtimestamp(now / 1000, UTC)
    first = moment - timedelta(milliseconds=budget.duration)
    minute = moment.replace(second=0, microsecond=0)
    while minute > first:
        if _fires(budget.schedule, minute):
            return True
        minute -= timedelta(minutes=1)
    return False


def _fields(schedule: str) -> list[str]:
    return EVERY.get(schedule, schedule).split()


def _readable(schedule: str) -> bool:
    """Numbers within their bounds; names of days and months are not read here."""
    numbers = [
        (int(number), bounds)
        for field, bounds in zip(_fields(schedule), BOUNDS, strict=True)
        for part in field.split("/")[0].split(",")
        for number in part.split("-")
        if number.isdigit()
    ]
    return all(least <= number <= most for number, (least, most) in numbers)


def _fires(schedule: str, minute: datetime) -> bool:
    now = (minute.minute, minute.hour, minute.day, minute.month, minute.isoweekday() % 7)
    fields = _fields(schedule)
    holds = [_matches(field, value, least) for field, value, (least, _) in zip(fields, now, BOUNDS, strict=True)]
    day = holds[2] or holds[4] if "*" not in (fields[2], fields[4]) else holds[2] and holds[4]
    return holds[0] and holds[1] and holds[3] and day


def _matches(field: str, value: int, least: int) -> bool:
    """Of the forms that generators write: stars, numbers, lists, ranges and steps of stars."""
    if field.startswith("*/"):
        return (value - least) % int(field[2:]) == 0
    if field == "*":
        return True
    spans = [(part.split("-")[0], part.split("-")[-1]) for part in field.split(",")]
    return any(int(first) <= value <= int(last) for first, last in spans)
