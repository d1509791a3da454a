"""The assertions by name, and a record held against those of a policy."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.record.store import Store
from kerf.engine.state.load import Progress
from kerf.replay.errors import PartialRecord
from kerf.replay.policies import forms, nodes, pods, rules, spending
from kerf.replay.policies.evidence import Evidence
from kerf.replay.policies.found import RECORD, Asked, Check, Found
from kerf.replay.policies.outcomes import BROKEN, HOLDS, UNKNOWN, Breach, RecordResults, Result
from kerf.replay.policies.selectors import OF_NODES, OF_PODS, Selector
from kerf.replay.policies.windows import Between, windows_of

MAX_BREACHES_KEPT = 10
"""At most so many breaches of an assertion are kept; all are counted."""


class Kind(Struct, frozen=True):
    """An assertion: the form of its value, what `for` may name, and how it is checked."""

    form: forms.Form
    about: tuple[str, ...]
    check: Check


_EVICTED = (*OF_PODS, *OF_NODES, "reason")
KINDS: dict[str, Kind] = {
    "never_evicts": Kind(forms.flag, _EVICTED, pods.never_evicts),
    "max_evictions": Kind(forms.count, _EVICTED, pods.max_evictions),
    "pending_at_most": Kind(forms.wait, OF_PODS, pods.pending_at_most),
    "max_launches": Kind(forms.count, OF_NODES, nodes.max_launches),
    "min_nodes": Kind(forms.number, OF_NODES, nodes.min_nodes),
    "max_nodes": Kind(forms.number, OF_NODES, nodes.max_nodes),
    "only_types": Kind(forms.patterns, OF_NODES, nodes.only_types),
    "never_types": Kind(forms.patterns, OF_NODES, nodes.never_types),
    "max_spot_share": Kind(forms.share, OF_NODES, nodes.max_spot_share),
    "zones_at_least": Kind(forms.number, OF_NODES, nodes.zones_at_least),
    "max_cost": Kind(forms.number, (*OF_NODES, "workload"), spending.max_cost),
    "max_hourly_cost": Kind(forms.number, OF_NODES, spending.max_hourly_cost),
    "no_loop": Kind(forms.kinds_of(rules.LOOPS), OF_NODES, rules.no_loop),
    "budget_held": Kind(forms.flag, ("pool",), rules.budget_held),
    "verifies": Kind(forms.flag, (), rules.verifies),
}
"""All assertions of a policy (docs/check.md)."""


class Assertion(Struct, frozen=True, kw_only=True):
    """One assertion of a policy. `between` says when it must hold."""

    name: str
    kind: str
    bound: forms.Bound
    selector: Selector
    between: Between
    where: str


def hold_against(
    store: Store,
    assertions: Sequence[Assertion],
    record: str,
    progress: Progress | None = None,
    *,
    pseudonyms: bool = False,
) -> RecordResults:
    """Hold a record, called `record` in the commands that explain, against assertions. Where its names are
    `pseudonyms`, what selects nothing by a name is unknown. Raises StoreError, and PolicyRefused (KERF221) for a time
    that the record does not have."""
    evidence = Evidence(store, progress)
    results = [_result(evidence, assertion, record) for assertion in assertions]
    if pseudonyms:
        results = [
            _unknown_names(result, assertion.selector) for result, assertion in zip(results, assertions, strict=True)
        ]
    return RecordResults(record=record, results=tuple(results))


def _unknown_names(result: Result, selector: Selector) -> Result:
    """Nobody knows what has a name where all names are pseudonyms."""
    if result.looked_at or result.outcome == UNKNOWN or not selector.by_name:
        return result
    note = f"the record has nothing of {selector.words}, for its names are pseudonyms: ask one that keeps its names"
    return replace(result, outcome=UNKNOWN, broken=0, breaches=(), note=note)


def _result(evidence: Evidence, assertion: Assertion, record: str) -> Result:
    result = Result(name=assertion.name, assertion=assertion.kind, outcome=HOLDS)
    try:
        found = _found(evidence, assertion)
    except PartialRecord as error:
        return replace(result, outcome=UNKNOWN, note=str(error))
    words = assertion.selector.words
    note = f"the record has nothing of {words}" if words and not found.looked_at else found.note
    breaches = tuple(_named(breach, record) for breach in found.breaches[:MAX_BREACHES_KEPT])
    return replace(
        result,
        outcome=BROKEN if found.breaches else HOLDS,
        looked_at=found.looked_at,
        broken=len(found.breaches),
        breaches=breaches,
        note=note,
    )


def _found(evidence: Evidence, assertion: Assertion) -> Found:
    """Return what is found in all windows of the assertion, which must hold in each."""
    windows = windows_of(evidence.store, assertion.between, f"{assertion.where}.between")
    check = KINDS[assertion.kind].check
    found = [check(evidence, Asked(assertion.bound, assertion.selector, window)) for window in windows]
    if len(found) == 1:
        return found[0]
    return Found(
        looked_at=max((part.looked_at for part in found), default=0),
        breaches=[breach for part in found for breach in part.breaches],
        note=next((part.note for part in found if part.note), "" if found else "the record has nothing of these times"),
    )


def _named(breach: Breach, record: str) -> Breach:
    return replace(breach, command=("kerf", *(record if part == RECORD else part for part in breach.command)))
