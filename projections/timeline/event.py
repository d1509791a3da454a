"""An event of the timeline: a code with parameters, and its sentence."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.projections.prose.amounts import count, dollars, duration
from kerf.projections.prose.reasons import sentence

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"
Parameter = str | int | float | list[str]


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened.

    `subject` is what it is about ("pod/default/web-1", "node/ip-10-0-1-2", "nodeclaim/default-x7k2m",
    "nodepool/default", "instance/i-0abc", "record"); `related` are the others that it touches. `code` and `params` make
    the sentence; `reason` is the coded reason, where there is one. `cause` is the position of the entry that brought it
    about, 0 for the outside.
    """

    position: int
    turn: int
    at: int
    code: str
    level: str
    subject: str
    related: tuple[str, ...] = ()
    params: dict[str, Parameter] = {}
    reason: Reason | None = None
    cause: int = 0

    @property
    def name(self) -> str:
        """The subject without its kind."""
        return self.subject.partition("/")[2] or self.subject


SENTENCES: dict[str, str] = {
    "record-started": "the record {record} begins, written by kerf {engine}",
    "record-imported": "the record {record} was imported from {sources} by kerf {engine}: {since} to {until}. "
    "It is partial; not in it: {lacks}",
    "record-captured": "the record {record} was captured from {sources} by kerf {engine} at {since}. "
    "It is partial; not in it: {lacks}",
    "controller-decided": "{controller} takes away {who} ({why}{first}{saves})",
    "controller-gave-up": "{controller} did not carry out its decision: {who}",
    "controller-said": "{controller}: {text}",
    "who-changed": "{controller}: {text}",
    "office-taken": "{holder} takes office (epoch {epoch})",
    "record-cut": "the record is cut: it begins after position {base} from now on",
    "clocks-differ": "the clocks disagree: nothing expires, is consolidated or repaired until they agree{how}",
    "clocks-agree": "the clocks agree again{moved}",
    "time-set-back": "the record was ahead of the clock: time goes on {by} earlier",
    "settings-seen": "the settings are recorded",
    "pod-waiting": "cannot be scheduled, waiting for a node: {name}",
    "pod-not-waiting": "no longer waiting: {name}",
    "pod-seen": "there: {name}",
    "pod-bound": "bound to {node}: {name}",
    "pod-bound-elsewhere": "bound to {node}, and not to {planned} as planned: {name}",
    "pod-running": "running on {node}: {name}",
    "pod-terminating": "terminating: {name}",
    "pod-ended": "ended ({phase}): {name}",
    "pod-gone": "gone: {name}",
    "node-joined": "node {name} has joined",
    "node-seen": "node {name} is there",
    "node-ready": "node {name} is ready",
    "node-not-ready": "node {name} is not ready",
    "node-cordoned": "node {name} was cordoned: it takes no more pods",
    "node-uncordoned": "node {name} was uncordoned: it takes pods again",
    "node-tainted": "node {name} got the taint {taints}",
    "node-untainted": "node {name} lost the taint {taints}",
    "node-deleting": "node {name} is being deleted",
    "node-gone": "node {name} is gone",
    "nodepool-seen": "NodePool {name} is there",
    "nodepool-changed": "NodePool {name} was changed: {fields}",
    "nodepool-gone": "NodePool {name} is gone",
    "nodeclass-ready": "NodeClass {name} is ready",
    "nodeclass-not-ready": "NodeClass {name} is not ready: {reason}",
    "nodeclass-changed": "NodeClass {name} was changed: {fields}",
    "nodeclass-gone": "NodeClass {name} is gone",
    "catalogue-seen": "the instance types and prices of NodeClass {name} are known anew",
    "reservations-seen": "left of the capacity reservations of NodeClass {name}: {left}",
    "object-seen": "{kind} {name} is there",
    "object-created": "{kind} {name} was created: {fields}",
    "workload-changed": "pods of {kind} {name} ask for something else: {fields}",
    "object-fields-changed": "{kind} {name} was changed: {fields}",
    "object-gone": "{kind} {name} is gone",
    "object-changed": "{kind} {name} was changed",
    "deletion-seen": "NodeClaim {name} is being deleted",
    "deletion-asked": "{actor} asks for the deletion of {name}",
    "launch-answered": "the cloud started {instance} ({instance_type}, {zone}, {capacity_type}) for {name}",
    "launch-adopted": "{instance} was found to have been started for {name} before",
    "launch-refused": "the cloud started nothing for {name}: {message}",
    "offering-refused": "no {capacity_type} {offerings} for {name}: {error}",
    "instance-unclaimed": "the cloud lists {name}, tagged for {claim}, and nobody has it",
    "instance-demoted": "the reservation of {name} is over: it runs on as on-demand",
    "instance-unlisted": "the cloud does not list {name}",
    "instance-seen": "the cloud reports {name} as {status}",
    "effect-done": "{effect} of {name} is done",
    "effect-refused": "{effect} of {name} was refused: {error}",
    "pod-effect-done": "{effect} of {pod} on {name} is done",
    "pod-effect-refused": "{effect} of {pod} on {name} was refused: {error}",
    "interruption-announced": "the cloud announces for {name}: {kind}",
    "input-refused": "refused {source} {object}: {error}",
    "watch-gap": "the watch of {kind} had a gap: {changed} changed, {gone} gone in between",
    "claim-requested": "{name} is requested for {pods}: {types}, from {price}/h",
    "claim-launched": "{name} is launched: {instance_type} ({capacity_type}) in {zone} at {price}/h, after {took}",
    "claim-launch-failed": "{name} could not be launched: {error}",
    "claim-launch-timed-out": "{name} had no instance after {waited} and is given up",
    "claim-cancelled": "{name} is given up before launch",
    "claim-adopted": "{name} was found {state} and is adopted",
    "claim-registered": "{name} has registered as node {node}, {took} after the request",
    "claim-initialized": "{name} is in service, {took} after the request",
    "claim-tainted": "{name} is to go: {why}",
    "claim-reason-raised": "{name} is to go because it is {why}, no longer because it is {was}",
    "claim-untainted": "{name} stays after all",
    "claim-drain-started": "{name} is being drained: {pods} to leave",
    "claim-pod-evicted": "evicted from {name}: {pod}",
    "claim-pod-forced": "deleted by force from {name}, with {grace}s of grace: {pod}",
    "claim-drained": "{name} is drained after {took}",
    "claim-volumes-detached": "the volumes of {name} are {outcome} after {took}",
    "claim-instance-vanished": "the instance of {name} has vanished ({status}) after {lifetime}, at a cost of {cost}",
    "claim-terminated": "{name} is gone after {lifetime}, at a cost of {cost}",
    "plan-made": "a place is found for {pods}: {outcome}",
    "plan-repeated": "looked again at the pods that wait: the result is that of {repeats}",
    "pods-without-place": "no place for {who}: {because}",
    "pods-ignored": "not looked at, {who}: {because}",
    "pods-later": "not planned for yet, {who}: {because}",
    "pods-not-reached": "{pods} were not looked at, for the steps of the pass were used up: it goes on at once",
    "move-proposed": "a move is proposed ({why}{first}) and will be looked at again: {who}",
    "move-started": "a move begins ({why}{first}): {who}",
    "move-withdrawn": "a move is withdrawn: {who}: {because}",
    "move-abandoned": "a move is given up: {who}: {because}",
    "claim-kept": "{name} stays: {because}",
    "claim-condemned": "{name} has to go: {because}",
    "claim-noted": "of {name}: {because}",
    "claim-drifted": "{name} has drifted: {because}",
    "claim-drifted-fields": "{name} has drifted: {because}: {differences}",
    "claim-as-asked": "{name} is as its NodePool and NodeClass ask for again",
    "effect-asked": "{name}: {because}",
    "pool-resized": "NodePool {name} has {running} of {replicas} nodes: {because}",
    "entry-unknown": "an entry of type {type} (schema {schema}), which this version does not know",
}
"""Code → sentence. `name` is the name of the subject. A parameter's name says whether it is a duration or a price."""

_WITHOUT: dict[str, tuple[tuple[str, str], ...]] = {
    "claim-requested": (("types", "{name} is requested"), ("price", "{name} is requested: {types}")),
    "claim-launched": (
        ("instance_type", "{name} is launched; as what is not known"),
        ("capacity_type", "{name} is launched: {instance_type}"),
        ("zone", "{name} is launched: {instance_type} ({capacity_type})"),
        ("took", "{name} is launched: {instance_type} ({capacity_type}) in {zone}"),
        ("price", "{name} is launched: {instance_type} ({capacity_type}) in {zone}, after {took}"),
    ),
    "object-created": (("fields", "{kind} {name} was created"),),
    "claim-adopted": (("state", "{name} is there, in which state is not known"),),
    "claim-registered": (
        ("node", "{name} has registered; as which node is not known"),
        ("took", "{name} has registered as node {node}"),
    ),
    "claim-initialized": (("took", "{name} is in service"),),
    "claim-terminated": (("lifetime", "{name} is gone"), ("cost", "{name} is gone after {lifetime}")),
}
"""Code → what is said where a parameter is not known, the first that fits: imported records lack prices and times."""

_DURATIONS = ("took", "waited", "lifetime")
_PRICES = ("price", "cost")


def event_sentence(event: Event) -> str:
    """Write the event as a sentence."""
    more, of_pod = event.params.get("more"), "pod" in event.params
    shown: dict[str, object] = {"name": f"{event.name} and {more} more" if more and not of_pod else event.name}
    for key, value in event.params.items():
        if key in _DURATIONS and isinstance(value, int):
            shown[key] = duration(value)
        elif key in _PRICES and isinstance(value, int | float):
            shown[key] = dollars(value)
        elif key == "pods" and isinstance(value, int):
            shown[key] = count(value, "pod")
        elif key == "pod" and more:
            shown[key] = f"{value} and {more} more"
        else:
            shown[key] = ", ".join(value) if isinstance(value, list) else value
    if event.reason is not None:
        shown["because"] = sentence(event.reason)
    known = (said for parameter, said in _WITHOUT.get(event.code, ()) if parameter not in event.params)
    return next(known, SENTENCES[event.code]).format_map(shown) + _repetition(event)


def _repetition(event: Event) -> str:
    times, refusals = event.params.get("times", 1), event.params.get("refusals", 0)
    if refusals:
        return f", after {count(int(str(refusals)), 'refusal')}"
    return f" ({times} times so far)" if times != 1 else ""
