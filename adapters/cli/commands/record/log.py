"""`kerf log`: what happened, in order."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.completion import candidates
from kerf.adapters.cli.parameters import Json, Record, Since, Until


def log(
    record: Record,
    /,
    *,
    since: Since | None = None,
    until: Until | None = None,
    subject: Annotated[str | None, Parameter(completer=candidates.subjects)] = None,
    kind: str | None = None,
    name: str | None = None,
    namespace: str | None = None,
    workload: str | None = None,
    reason: str | None = None,
    all: Annotated[bool, Parameter(negative="")] = False,
    karpenter: Annotated[bool, Parameter(negative="")] = False,
    effort: Annotated[bool, Parameter(negative="")] = False,
    follow: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Tell what happened, in order.

    An event is told if one object that it is about is all that the flags ask for.

    Exit codes: 0 told, 1 there is nothing to tell of what was asked for, 2 usage.

    For example:

        kerf log record.kerf
        kerf log record.kerf --since -10m --all
        kerf log record.kerf --since 10:00 --until 10:05
        kerf log record.kerf --subject default/web-1
        kerf log record.kerf --kind nodeclaim --reason underutilized
        kerf log record.kerf --workload default/web --since -1h
        kerf log record.kerf --effort

    Parameters
    ----------
    subject
        Only what concerns this pod, NodePool, NodeClass or node. A node, its NodeClaim and its instance are one.
    kind
        Only what concerns objects of this kind: pod, node, nodeclaim, nodepool, instance, …
    name
        Only objects of this name, or pattern: 'web-*'.
    namespace
        Only objects of this namespace.
    workload
        Only pods of this workload: default/web, or web.
    reason
        Only events for this reason, or of this code: underutilized, interrupted, claim-launched, 'pod-*'.
    all
        Also what is of little interest on most days.
    karpenter
        Print the log lines that Karpenter would write, as JSON lines.
    effort
        What the search for cheaper plans gained in each provisioning pass.
    follow
        Go on with what a controller adds, until Ctrl-C.
    json
        Print one event a line as JSON.
    """
    from kerf.adapters.cli.record_log import LogQuery, RecordLog
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.lines import print_error
    from kerf.engine.errors import InputError
    from kerf.replay.history.event_filter import Asked

    given = {
        "subject": subject,
        "kind": kind,
        "name": name,
        "namespace": namespace,
        "workload": workload,
        "reason": reason,
    }
    for flag, value in given.items():
        if value == "":  # as that of a script's empty variable: it would choose everything
            raise InputError(f"--{flag} has no value", hint="Give one, or leave the flag out", code="KERF200")
    asked = Asked(**{flag: value or "" for flag, value in given.items()})
    if karpenter and effort:
        hint = "Give one of them"
        raise InputError("--karpenter and --effort are two answers", hint=hint, code="KERF200")
    if (karpenter or effort) and asked != Asked():
        what = "--karpenter prints" if karpenter else "--effort tells of"
        hint = "Choose a part with --since and --until; the other flags choose among the events that kerf log tells"
        raise InputError(f"{what} a whole part of the record", hint=hint, code="KERF200")
    with opened(record, endless=follow) as store:
        lines = RecordLog(store, LogQuery(since, until, asked, all, follow))
        if karpenter:
            lines.print_as_karpenter()
            return 0
        if effort:
            lines.print_effort(json=json)
            return 0
        lines.print_timeline(json=json)
    if not lines.told and (nothing := lines.nothing_told()):
        print_error(nothing)
    return int(asked != Asked() and not lines.told)
