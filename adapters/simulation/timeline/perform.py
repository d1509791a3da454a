"""Carry out the actions of a Timeline on a simulation, when their time comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from kerf.adapters.simulation.cloud.cloud import Instance
from kerf.adapters.simulation.cloud.interruption_queue import REBALANCE, SCHEDULED_CHANGE
from kerf.adapters.simulation.cloud.market import OfferingSelector
from kerf.adapters.simulation.cluster.controllers.workloads import Deployment, StatefulSet
from kerf.adapters.simulation.documents.apply import apply_document, identify
from kerf.adapters.simulation.errors import NoSuchTargetError, TimelineError
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline import timeline as t
from kerf.engine.errors import KerfError
from kerf.engine.model.did_you_mean import did_you_mean, is_it


def schedule_action(simulation: Simulation, scheduled: t.Scheduled, name: str) -> None:
    """Schedule an action of the Timeline `name` ("Timeline x") for its time. What cannot be done then is refused and
    recorded."""

    def happen() -> None:
        try:
            perform_action(simulation, scheduled.action)
        except KerfError as error:
            simulation.refuse(error, source="timeline", item=name, field=scheduled.path)

    simulation.actions.append((name, scheduled.after))
    simulation.clock.at(simulation.start + scheduled.after, "timeline", happen)


def unsold(simulation: Simulation, scheduled: t.Scheduled) -> TimelineError | None:
    """Return what is wrong with an action on an instance type or a zone that the simulation's cloud does not sell: it
    would concern nothing, ever."""
    types = simulation.cloud.market.catalogue_of().types
    names = [kind.name for kind in types]
    zones = sorted({offering.zone for kind in types for offering in kind.offerings})
    name, zone = getattr(scheduled.action, "instance_type", ""), getattr(scheduled.action, "zone", "")
    if name and name not in names:
        hint = is_it(did_you_mean(name, names))
        return TimelineError(f"no instance type {name} is sold", where=f"{scheduled.path}.instanceType", hint=hint)
    if zone and zone not in zones:
        hint = f"Zones are {', '.join(zones)}"
        return TimelineError(f"nothing is sold in zone {zone}", where=f"{scheduled.path}.zone", hint=hint)
    return None


def perform_action(simulation: Simulation, action: t.Action) -> None:
    """Carry out one action now. Raises `NoSuchTargetError` (KERF811); `apply` raises what its document is refused
    with."""
    _PERFORM[type(action)](simulation, action)


# ── objects ─────────────────────────────────────────────────────────────────────────────────────────────────


def _scale(simulation: Simulation, action: t.Scale) -> None:
    workloads = simulation.cluster.workloads
    kind = StatefulSet if action.kind == "StatefulSet" else Deployment
    workload = workloads.find(kind, action.namespace, action.name)
    if workload is None:
        raise _unscalable(simulation, action, kind)
    workloads.apply(replace(workload, replicas=action.replicas))


def _unscalable(
    simulation: Simulation, action: t.Scale, kind: type[Deployment] | type[StatefulSet]
) -> NoSuchTargetError:
    """Make the error for a workload that does not exist, with what may be meant."""
    workloads, asked_for = simulation.cluster.workloads, f"{action.namespace}/{action.name}"
    message, known = f"no {action.kind} {asked_for} to scale", workloads.names(kind)
    other = Deployment if kind is StatefulSet else StatefulSet
    if asked_for in workloads.names(other):
        kind_found = other.__name__
        return NoSuchTargetError(f"{message}, but a {kind_found} of this name", hint=f"Write kind: {kind_found}")
    elsewhere = [key for key in known if key.endswith(f"/{action.name}")]  # the namespace is left out, or another
    hint = is_it(elsewhere or did_you_mean(asked_for, known))
    return NoSuchTargetError(message, hint=hint if known else f"There is no {action.kind}: give its file, too")


def _apply(simulation: Simulation, action: t.Apply) -> None:
    for document, error in apply_document(simulation, action.object):
        simulation.refuse(error, source="timeline", item=identify(document))


def _delete(simulation: Simulation, action: t.Delete) -> None:
    if not _DELETE[action.kind](simulation, action):
        name = action.name if action.kind in _CLUSTER_SCOPED else f"{action.namespace}/{action.name}"
        raise NoSuchTargetError(f"no {action.kind} {name} to delete")


def _delete_pod(simulation: Simulation, action: t.Delete) -> bool:
    pod = simulation.cluster.api.pod_named(action.namespace, action.name)
    if pod is not None:
        simulation.cluster.api.delete_pod(pod, action.grace)
    return pod is not None


def _delete_workload(simulation: Simulation, action: t.Delete) -> bool:
    kind = StatefulSet if action.kind == "StatefulSet" else Deployment
    workload = simulation.cluster.workloads.find(kind, action.namespace, action.name)
    if workload is not None:
        simulation.cluster.workloads.delete(workload)
    return workload is not None


def _delete_daemon_set(simulation: Simulation, action: t.Delete) -> bool:
    for daemon_set in list(simulation.cluster.api.daemon_sets.values()):
        if (daemon_set.namespace, daemon_set.name) == (action.namespace, action.name):
            simulation.cluster.workloads.delete_daemon_set(daemon_set)
            return True
    return False


def _delete_budget(simulation: Simulation, action: t.Delete) -> bool:
    for budget in list(simulation.cluster.api.budgets.values()):
        if (budget.namespace, budget.name) == (action.namespace, action.name):
            simulation.cluster.api.remove(budget)
            return True
    return False


def _delete_pool(simulation: Simulation, action: t.Delete) -> bool:
    pool = simulation.cluster.api.pools.get(action.name)
    if pool is not None:
        simulation.cluster.api.remove(pool)
    return pool is not None


def _delete_extension(simulation: Simulation, action: t.Delete) -> bool:
    """Delete an object of a kind that only some settings look at."""
    api = simulation.cluster.api
    key = action.name if action.kind in _CLUSTER_SCOPED else f"{action.namespace}/{action.name}"
    item = api.table(action.kind.lower()).get(key)
    if item is not None:
        api.remove(item)
    return item is not None


def _delete_node(simulation: Simulation, action: t.Delete) -> bool:
    known = action.name in simulation.cluster.api.nodes
    simulation.cluster.ask_node_deletion(action.name, action.actor)
    return known


def _delete_claim(simulation: Simulation, action: t.Delete) -> bool:
    for instance in selected_instances(simulation, replace(action, claim=action.name or action.claim)):
        simulation.cluster.ask_claim_deletion(instance.machine.claim, action.actor)
    return True


_CLUSTER_SCOPED = ("Node", "NodeClaim", "NodePool", "NodeClass", "NodeOverlay")
_DELETE: dict[str, Callable[[Simulation, t.Delete], bool]] = {
    "Pod": _delete_pod,
    "Deployment": _delete_workload,
    "StatefulSet": _delete_workload,
    "DaemonSet": _delete_daemon_set,
    "Job": lambda simulation, action: simulation.cluster.jobs.delete(action.namespace, action.name),
    "PodDisruptionBudget": _delete_budget,
    "PersistentVolumeClaim": lambda simulation, action: simulation.cluster.volumes.delete_claim(
        f"{action.namespace}/{action.name}"
    ),
    "NodePool": _delete_pool,
    "NodeClass": lambda simulation, action: simulation.cloud.drop_node_class(action.name),
    "Node": _delete_node,
    "NodeClaim": _delete_claim,
    **dict.fromkeys(("Service", "PodTemplate", "NodeOverlay", "CapacityBuffer"), _delete_extension),
}


# ── instances ───────────────────────────────────────────────────────────────────────────────────────────────


_SELECTED_BY = ("claim", "nodePool", "instanceType", "zone", "capacityType", "node")
_MAX_SHOWN = 8


def selected_instances(simulation: Simulation, action: t.OnInstances) -> list[Instance]:
    """Return the instances that the action selects. Raises `NoSuchTargetError` when there are none."""
    node_of = simulation.cluster.kubelets.node_of
    asked_for = (action.claim, action.node_pool, action.instance_type, action.zone, action.capacity_type, action.node)
    chosen, there = [], []
    for instance in simulation.cloud.alive():
        m = instance.machine
        have = (m.claim, m.node_pool, m.type.name, m.zone, m.capacity_type, node_of(m.instance))
        there.append(have)
        if all(not want or want == is_ for want, is_ in zip(asked_for, have, strict=True)):
            chosen.append(instance)
    if not chosen:
        raise NoSuchTargetError("no living instance fits the action", hint=_unfitting(asked_for, there))
    return chosen[: action.count or None]


def _unfitting(asked_for: Sequence[str], there: Sequence[Sequence[str]]) -> str:
    """Say which of the fields no living instance has, with what may be meant or what there is."""
    if not there:
        return "No instance lives at this time"
    for field, want, have in zip(_SELECTED_BY, asked_for, zip(*there, strict=True), strict=True):
        if want and want not in have:
            known = sorted({*have} - {""})
            listed = ", ".join(known[:_MAX_SHOWN]) + (
                f" and {len(known) - _MAX_SHOWN} more" if known[_MAX_SHOWN:] else ""
            )
            return is_it(did_you_mean(want, known)) or f"None has {field} {want}: there is {listed or 'none yet'}"
    return "Each field fits some, and none fits all"


def _for_each_instance(what: Callable[[Simulation, str], None]) -> Callable[[Simulation, Any], None]:
    def perform_on_each(simulation: Simulation, action: t.OnInstances) -> None:
        for instance in selected_instances(simulation, action):
            what(simulation, instance.machine.instance)

    return perform_on_each


def _cordon(simulation: Simulation, action: t.Cordon | t.Uncordon) -> None:
    for node in _nodes(simulation, action):
        simulation.cluster.cordon(node, on=isinstance(action, t.Cordon))


def _not_ready(simulation: Simulation, action: t.NodeNotReady) -> None:
    length = t.duration(action.duration, "for") if action.duration else None
    for node in _nodes(simulation, action):
        simulation.cluster.lifecycle.silence(node, length)


def _condition(simulation: Simulation, action: t.NodeCondition) -> None:
    length = t.duration(action.duration, "for") if action.duration else None
    for node in _nodes(simulation, action):
        simulation.cluster.lifecycle.report(node, action.condition, action.status, length)


def _nodes(simulation: Simulation, action: t.OnInstances) -> list[str]:
    """Return the nodes of the selected instances. A node without an instance is selected by its name only."""
    if action.node in simulation.cluster.api.nodes and simulation.cluster.kubelets.machine_of(action.node) is None:
        return [action.node]
    nodes = [simulation.cluster.kubelets.node_of(i.machine.instance) for i in selected_instances(simulation, action)]
    joined = [node for node in nodes if node in simulation.cluster.api.nodes]
    if not joined:
        raise NoSuchTargetError("the chosen instances have no nodes yet")
    return joined


# ── offerings and the cloud ─────────────────────────────────────────────────────────────────────────────────


def _offering_selector(action: t.OnOfferings) -> OfferingSelector:
    return OfferingSelector(capacity_type=action.capacity_type, instance_type=action.instance_type, zone=action.zone)


def _capacity(simulation: Simulation, action: t.Capacity) -> None:
    simulation.cloud.market.exhaust(_offering_selector(action))


def _restore(simulation: Simulation, action: t.RestoreCapacity) -> None:
    if not simulation.cloud.market.restore(_offering_selector(action)):
        raise NoSuchTargetError("nothing within these offerings lacks capacity")


def _price(simulation: Simulation, action: t.Price) -> None:
    factor = 1.0 if action.factor is None else action.factor
    if not simulation.cloud.market.reprice(_offering_selector(action), price=action.price, factor=factor):
        raise NoSuchTargetError("no offering's price changes by this")
    simulation.cloud.prices_changed()


def _node_class(simulation: Simulation, action: t.NodeClassReady) -> None:
    known = simulation.cloud.node_class(action.name)
    if known is None:
        raise NoSuchTargetError(f"no NodeClass {action.name}")
    simulation.cloud.update_node_class(replace(known, ready=action.ready, reason=action.reason))


def _step_clock(simulation: Simulation, action: t.ClockStep) -> None:
    if action.by:
        simulation.host.step(t.duration(action.by, "by"))
    else:
        simulation.host.correct()


_PERFORM: dict[type, Callable[[Simulation, Any], None]] = {
    t.Scale: _scale,
    t.Apply: _apply,
    t.Delete: _delete,
    t.Interrupt: _for_each_instance(lambda simulation, name: simulation.cloud.interrupt(name)),
    t.Rebalance: _for_each_instance(lambda simulation, name: simulation.queue.send(REBALANCE, name)),
    t.Maintenance: _for_each_instance(lambda simulation, name: simulation.queue.send(SCHEDULED_CHANGE, name)),
    t.Reclaim: _for_each_instance(lambda simulation, name: simulation.cloud.reclaim(name)),
    t.Vanish: _for_each_instance(lambda simulation, name: simulation.cloud.vanish(name)),
    t.EndReservation: _for_each_instance(lambda simulation, name: simulation.cloud.demote(name)),
    t.Cordon: _cordon,
    t.Uncordon: _cordon,
    t.NodeNotReady: _not_ready,
    t.NodeCondition: _condition,
    t.Capacity: _capacity,
    t.RestoreCapacity: _restore,
    t.Price: _price,
    t.NodeClassReady: _node_class,
    t.Throttle: lambda simulation, action: simulation.cloud.throttle(t.duration(action.duration, "for")),
    t.ClockStep: _step_clock,
    t.ClockDrift: lambda simulation, action: simulation.host.drift(
        t.duration(action.by, "by"), t.duration(action.duration, "for")
    ),
    t.Suspend: lambda simulation, action: simulation.host.suspend(t.duration(action.duration, "for")),
    t.LoseAnswer: lambda simulation, action: simulation.cloud.lose_answer(),
    t.BadMessage: lambda simulation, action: simulation.queue.send_garbage(action.body),
}
