"""Answers of replay as text: the state at a position, the timeline, a story, a verification report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import some
from kerf.engine.model.missing_knowledge import Missing, words_of
from kerf.engine.model.quantities import format_quantity
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.timeline.event import Event, event_sentence
from kerf.projections.timeline.grouping import group_events
from kerf.replay.history.replacement_chain import ChainLink
from kerf.replay.history.search_gains import SearchGain
from kerf.replay.history.story import Story
from kerf.replay.time_travel.state_summary import StateSummary
from kerf.replay.verify.one_turn import TurnReport
from kerf.replay.verify.report import Report
from kerf.replay.verify.report_lines import beginning_lines, declared_lines, divergence_lines, obstacle_lines, verdict

MAX_OTHERS_SHOWN = 8
"""How many of the things are named that belong to a story."""
MIN_GAIN_SHOWN = 0.00005
"""USD per hour: less than that is shown as nothing."""


def event_line(event: Event, started: int) -> str:
    """Time, time since the beginning, position, sentence."""
    since = duration(event.at - started)
    return f"{moment(event.at)}  +{since:<9} {event.position:>7}  {event_sentence(event)}"


def search_gain_lines(gains: Iterable[SearchGain]) -> Iterator[str]:
    """A line for each pass, then the sums. `gains` may go on while a record is followed."""
    passes, gained, touches, steps = 0, 0.0, 0, 0.0
    for gain in gains:
        passes, gained, touches, steps = passes + 1, gained + gain.gained, touches + gain.touches, steps + gain.steps
        bound = f", at least {dollars(gain.bound)}/h" if gain.bound else ""
        plan = f"{count(gain.pods, 'pod')} on {count(gain.nodes, 'new node')} for {dollars(gain.price)}/h"
        spent = f", {gain.touches:,} touches (about {gain.steps:,.0f} steps)" if gain.touches else ""
        yield f"{moment(gain.at)} {gain.position:>7}  {plan}{bound}: {_gained(gain.gained)}{spent}"
    what = "1 pass searched" if passes == 1 else f"{passes:,} passes searched"
    about = f", about {steps:,.0f} steps of --effort" if touches else ""
    yield f"{what}: {dollars(gained)}/h gained with {touches:,} touches{about}"


def _gained(amount: float) -> str:
    if abs(amount) < MIN_GAIN_SHOWN:
        return "as the first plan"
    return f"{dollars(abs(amount))}/h {'less' if amount > 0 else 'more'} than the first plan"


def story_text(printer: Printer, story: Story, started: int, grouped: Sequence[Event] = ()) -> None:
    """`grouped` are the story's events as `group_events` joins them, where they are at hand."""
    printer.line(f"The story of {story.subject.replace('/', ' ', 1)}", "title")
    if story.others:
        printer.line("with " + some([other.replace("/", " ", 1) for other in story.others], MAX_OTHERS_SHOWN))
    for number, link in enumerate(story.chain):
        printer.line(("the chain: " if not number else "           ") + _link(link))
    positions = {event.position for event in story.events}
    for event in grouped or group_events(story.events):
        because = f"  (because of {event.cause})" if event.cause in positions else ""
        printer.line(event_line(event, started) + because, event.level)


def _link(link: ChainLink) -> str:
    """One node of a chain of replacements."""
    kind = f", a {link.instance_type} at {dollars(link.price)}/h" if link.instance_type else ""
    head = f"{link.claim}{kind}: "
    if not link.why:
        return head + "it is there"
    parts = [link.why, f"replaced by {', '.join(link.launched)}" if link.launched else ""]
    parts.append(f"saving {dollars(link.savings)}/h" if link.savings > 0 else "")
    parts.append(f"pods came for its own on {', '.join(link.pods_to)}" if link.pods_to else "")
    return head + ", ".join(filter(None, parts))


# ── verify ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def report_text(printer: Printer, report: Report) -> None:
    for divergence, level in [
        *((d, "warning") for d in report.differences),
        *((d, "error") for d in report.divergences),
    ]:
        title, *lines = divergence_lines(divergence)
        printer.line(title if level == "error" else f"as declared: {title}", level)
        for line in lines:
            printer.line("  " + line)
    hidden = report.diverged - len(report.divergences)
    if hidden > 0:
        printer.line(f"… and {count(hidden, 'more divergence')}", "warning")
    for line in declared_lines(report):
        printer.line(line)
    for line in obstacle_lines(report):
        printer.line(line, "warning")
    for line in beginning_lines(report):
        printer.line(line)
    printer.line(verdict(report), "good" if report.exit_code == 0 else "title")
    rate = report.entries / report.seconds if report.seconds else 0.0
    snapshots = f" and {count(report.snapshots, 'snapshot')}" if report.snapshots else ""
    printer.line(
        f"{count(report.entries, 'entry').replace('entrys', 'entries')} up to position {report.last} in "
        f"{count(report.turns, 'turn')}: {count(report.decisions, 'decision')} and "
        f"{count(report.claim_events, 'claim event')}{snapshots} made again from "
        f"{count(report.observations, 'observation')} in {report.seconds:.2f}s ({rate:,.0f} entries/s)"
    )


def turn_report_text(printer: Printer, report: TurnReport) -> None:
    made = f"{count(report.decisions, 'decision')} of the turn from position {report.turn}"
    if report.unsupported is not None:
        told = f"{report.unsupported.reason}: {report.unsupported.detail}"
        printer.line(
            f"unsupported: this version cannot decide the turn from position {report.turn} again ({told})", "warning"
        )
    elif report.divergence is not None:
        printer.line(f"diverged: today's engine decides otherwise, on the state of then ({made})", "error")
        for line in divergence_lines(report.divergence):
            printer.line("  " + line)
    else:
        printer.line(f"same: today's engine decides as recorded, byte for byte ({made})", "good")


# ── at ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def summary_text(printer: Printer, summary: StateSummary) -> None:
    printer.line(f"position {summary.position} at {moment(summary.at)}", "title")
    printer.line(f"record {summary.record}, epoch {summary.epoch}, state digest {summary.digest}")
    states = ", ".join(f"{number} {state}" for state, number in summary.claim_states.items()) or "none"
    prices_known, pods_known = Missing.PRICES not in summary.lacks, Missing.PODS not in summary.lacks
    printer.line(f"NodeClaims: {states}" + (f"; {dollars(summary.price)}/h" if prices_known else ""))
    printer.line(
        f"nodes: {summary.nodes} ({summary.unmanaged_nodes} not kerf's); NodePools: {', '.join(summary.node_pools)}"
    )
    pods = ", ".join(f"{number} {what}" for what, number in summary.pods.items()) or "none"
    pods = pods if pods_known else "not known"
    printer.line(f"pods: {pods}" + ("; the latest plan left some without a place" if summary.without_place else ""))
    for pool in () if summary.lacks else summary.pools:
        for wrong in pool.wrong:
            printer.line(f"NodePool {pool.name} is not ready: {wrong}", "warning")
        if pool.registration:
            printer.line(f"nodes of NodePool {pool.name} do not register: {pool.registration}", "warning")
        if pool.drifted:
            printer.line(f"NodePool {pool.name}: {count(pool.drifted, 'NodeClaim')} not as it asks for any more")
    if summary.window_closes and not summary.lacks:
        printer.line(f"provisioning window open, closes at {moment(summary.window_closes)}")
    if summary.claims:
        printer.table(
            ("NODECLAIM", "STATE", "NODE", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "AGE", "PODS", "BECAUSE"),
            [
                (
                    c.name, c.state, c.node or "-", c.instance_type or "-", c.zone or "-", c.capacity_type or "-",
                    dollars(c.price) if prices_known else "?", duration(c.age), str(c.pods) if pods_known else "?",
                    c.why or c.verdict or "-",
                )
                for c in summary.claims
            ],
        )  # fmt: skip
    for key, until in summary.unavailable.items():
        printer.line(f"avoided until {moment(until)}: {key.replace('|', ' ').strip()}", "warning")
    for unanswered in summary.in_flight:
        printer.line(
            f"in flight for {duration(unanswered.age)}: {unanswered.effect} {unanswered.claim} ({unanswered.ref})"
        )
    for orphan in summary.orphans:
        printer.line(f"orphan to be ended: {orphan}", "warning")
    if summary.lacks:
        printer.line(f"partial; not known: {', '.join(map(words_of, summary.lacks))}")
    if summary.unknown_entries:
        printer.line(f"{summary.unknown_entries} entries of unknown types were skipped", "warning")


def quantities(amounts: dict[str, int]) -> str:
    return ", ".join(f"{format_quantity(amount, name)} {name}" for name, amount in sorted(amounts.items()) if amount)
