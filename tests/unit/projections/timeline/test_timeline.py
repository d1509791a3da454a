"""The timeline tells each change once, in order, as entries come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodeclass_terms import Image, NodeClassTerms
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Taint
from kerf.engine.model.labels import INSTANCE_TYPE
from kerf.engine.model.reasons import Reason
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordCorrupt
from kerf.engine.record.observations import (
    Imported,
    InputRefused,
    InterruptionSeen,
    LaunchAnswered,
    LaunchError,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    ObjectGone,
    Observation,
    RecordStarted,
    WatchGap,
)
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.prose.reasons import sentences
from kerf.projections.timeline.event import DEBUG, INFO, Event, event_sentence
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline
from tests.support.lives import claim_of, in_service, show_taint
from tests.support.records import whole_life
from tests.support.world import NODE_CLASS, World, pool


def told(entries: list[Entry]) -> list[Event]:
    timeline = Timeline()
    return [event for entry in entries for event in timeline.apply(entry)]


@pytest.fixture(scope="module")
def life() -> list[Event]:
    return told(whole_life().store.entries)


def test_a_life_is_told_step_by_step(life: list[Event]) -> None:
    codes = [event.code for event in life if event.level != DEBUG and event.subject.startswith("nodeclaim/")]
    assert codes == [
        "claim-requested", "claim-launched", "claim-registered", "claim-initialized", "claim-condemned",
        "claim-tainted", "claim-drain-started", "claim-drained", "claim-terminated",
    ]  # fmt: skip


def test_every_event_has_its_sentence(life: list[Event]) -> None:
    said = [event_sentence(event) for event in life]
    assert all(said)
    assert not any("{" in line for line in said)


def test_the_launch_says_what_where_and_for_how_much(life: list[Event]) -> None:
    (launched,) = [event for event in life if event.code == "claim-launched"]
    assert event_sentence(launched).endswith("is launched: m5.large (on-demand) in us-west-2a at $0.0960/h, after 2s")
    assert "instance/i-1" in launched.related


def test_pods_of_one_turn_are_told_in_one_line(life: list[Event]) -> None:
    (waiting,) = [event for event in group_events(life) if event.code == "pod-waiting"]
    assert event_sentence(waiting) == "cannot be scheduled, waiting for a node: default/a and 4 more"
    assert {f"pod/default/{name}" for name in "bcde"} <= set(waiting.related)


def test_only_pods_are_grouped(life: list[Event]) -> None:
    others = [event for event in life if not event.subject.startswith("pod/")]
    assert list(group_events(others)) == others


def test_what_comes_before_damage_is_told(life: list[Event]) -> None:
    """Neither the events of a long stretch without pods nor those of a turn that ends early are kept back."""

    def damaged(until: int) -> Iterator[Event]:
        yield from life[:until]
        raise RecordCorrupt("the entry was changed")

    for until in range(1, len(life) + 1):
        events, given = group_events(damaged(until)), list(group_events(life[:until]))
        assert [next(events) for _ in given] == given
        with pytest.raises(RecordCorrupt):
            next(events)


def test_what_is_seen_again_is_not_told_again() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    before = len(told(world.store.entries))
    world.see(Observation(world.pods["a"]))
    world.see(Observation(pool()))
    assert len(told(world.store.entries)) == before


def test_a_changed_nodepool_names_the_fields() -> None:
    world = World()
    world.prepare()
    world.see(Observation(pool(weight=7)))
    (changed,) = [event for event in told(world.store.entries) if event.code == "nodepool-changed"]
    assert event_sentence(changed) == "NodePool default was changed: spec.weight none → 7"


def test_capacity_errors_are_told_in_one_line() -> None:
    """Hundreds of offerings may lack capacity for one reason."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    lacking = [
        LaunchError("InsufficientInstanceCapacity", "", f"c{number}.large", "us-west-2a", "on-demand")
        for number in range(1, 371)
    ]
    errors = (*lacking, LaunchError("Unsupported", "", "m1.small", "us-west-2b", "on-demand"))
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=errors)))
    said = [event_sentence(event) for event in told(world.store.entries)]
    assert [line for line in said if line.startswith("no on-demand")] == [
        "no on-demand c1.large in us-west-2a, c2.large in us-west-2a, c3.large in us-west-2a, c4.large in us-west-2a, "
        f"c5.large in us-west-2a and 365 more for {order.claim}: InsufficientInstanceCapacity",
        f"no on-demand m1.small in us-west-2b for {order.claim}: Unsupported",
    ]
    assert any("could not be launched" in line for line in said)


def test_a_pod_bound_elsewhere_than_planned_is_a_warning() -> None:
    """k#2005, a#5406: where the prediction missed, it shows."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.node("n1", "aws:///us-west-2a/i-1", registered="true")
    world.bind("a", "other")
    (missed,) = [event for event in told(world.store.entries) if event.code == "pod-bound-elsewhere"]
    assert event_sentence(missed) == "bound to other, and not to n1 as planned: default/a"
    assert missed.level == "warning"


def test_a_cordon_is_told_and_so_is_a_taint_that_is_not_kubernetes_own() -> None:
    cordon = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
    pressure = Taint("node.kubernetes.io/memory-pressure", effect="NoSchedule")
    own = Taint("maintenance", "NoSchedule", "tonight")
    world = in_service()
    (node,) = world.runtime.state.facts.nodes.values()
    before = len(told(world.store.entries))
    for taints in ((cordon,), (cordon, pressure), (pressure, own), ()):
        world.see(Observation(replace(node, taints=taints)))
    lines = [event_sentence(event) for event in told(world.store.entries)[before:] if event.level != DEBUG]
    assert lines == [
        "node n1 was cordoned: it takes no more pods",
        "node n1 was uncordoned: it takes pods again",
        "node n1 got the taint maintenance:NoSchedule",
    ]


def test_interruptions_gaps_and_refused_input_are_warnings() -> None:
    """A-R8: what was missing is visible."""
    world = whole_life()
    world.see(
        Observation(InterruptionSeen("m-1", "spot_interrupted", "i-7")),
        Observation(WatchGap("pod", "1", "2", changed=3, gone=1)),
        Observation(InputRefused("KERF306", "manifest", "Deployment other/inflate", "spec.replicas", "not a number")),
    )
    interruption, gap, refused = told(world.store.entries)[-3:]
    assert interruption.level == DEBUG, "no instance of ours"
    assert event_sentence(gap) == "the watch of pod had a gap: 3 changed, 1 gone in between"
    assert event_sentence(refused) == "refused manifest Deployment other/inflate: KERF306 spec.replicas not a number"


def test_a_pod_that_ends_is_told_once() -> None:
    world = World()
    world.prepare()
    done = Pod("u", "default", "job", "", node="n1", phase="Succeeded")
    world.see(Observation(done))
    world.see(Observation(done))
    world.see(Observation(ObjectGone("pod", "u")))
    codes = [event.code for event in told(world.store.entries) if event.subject == "pod/default/job"]
    assert codes == ["pod-ended", "pod-gone"]


def test_entries_one_by_one_or_all_at_once_tell_the_same() -> None:
    entries = whole_life().store.entries
    timeline = Timeline()
    one_by_one = [timeline.apply(entry) for entry in entries]
    assert [event for events in one_by_one for event in events] == told(entries)
    assert timeline.started == entries[0].at


def test_a_nodepool_and_a_node_of_one_name_are_told_apart() -> None:
    world = World()
    world.prepare()
    world.see(Observation(NodePool("twin", pool().node_class)))
    world.node("twin", "aws:///x/i-9")
    world.see(Observation(ObjectGone("nodepool", "twin")))
    world.node("twin", "aws:///x/i-9", ready=False)
    assert told(world.store.entries)[-1].code == "node-not-ready"


def test_l193_a_deleted_node_is_not_told_as_somebody_of_that_name() -> None:
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "node deleted")))
    assert f"the deletion of its Node asks for the deletion of {claim_of(world).name}" in plain(world)


def draining() -> World:
    """Evictions of the five pods are asked for."""
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name)))
    world.answer_all()
    show_taint(world)
    return world


def plain(world: World) -> list[str]:
    return [event_sentence(event) for event in group_events(e for e in told(world.store.entries) if e.level != DEBUG)]


def test_a_refused_eviction_names_its_pod_and_is_told_again_only_when_it_changes() -> None:
    """L-205: thousands of equal refusals are one line; what ends them says how many there were."""
    world = draining()
    claim = claim_of(world).name
    for code in ("429", "429", "429", "500"):
        world.answer_all(ok=False, code=code)
        world.after(60_000)
    refusals = [line for line in plain(world) if line.startswith("evict of")]
    assert refusals == [
        f"evict of default/a and 4 more on {claim} was refused: 429",
        f"evict of default/a and 4 more on {claim} was refused: 500",
    ]
    said = [event_sentence(event) for event in told(world.store.entries)]
    assert f"evict of default/a on {claim} was refused: 429 (3 times so far)" in said
    world.answer_all()
    assert f"evicted from {claim}: default/a and 4 more, after 1 refusal" in plain(world)


def test_a_pod_without_a_place_is_named_and_told_once() -> None:
    world = World()
    world.prepare()
    world.pending("big", "huge", memory=10**13)
    world.after(1_000)
    world.prepare(pool(weight=1))  # something changed: the window opens again
    world.after(1_000)
    world.pending("more", memory=10**13)
    world.after(1_000)
    reason = "NodePool default: none of the 4 types that meet the requirements has enough memory"
    assert [line for line in plain(world) if line.startswith("no place")] == [
        f"no place for default/big and 1 more: {reason}",
        f"no place for default/more and 2 more: {reason}",
    ]


def test_the_reason_shown_is_that_of_the_pool_nearest_to_a_place() -> None:
    """A pool with types that would do is nearer, although its limits are used up, than one without such types."""
    taints = Reason("taints-not-tolerated", {"node_pool": "a", "taints": ["x"]})
    other = Reason("requirements-conflict", {"node_pool": "b", "keys": ["karpenter.sh/nodepool"]})
    arch = Reason("requirements-conflict", {"node_pool": "c", "keys": ["kubernetes.io/arch"]})
    small = Reason("types-resources", {"node_pool": "d", "types": 338, "resources": ["nvidia.com/gpu"]})
    full = Reason("limits", {"node_pool": "e", "resources": ["nvidia.com/gpu"]})
    assert nearest_first([other, taints]) == [taints, other]
    assert nearest_first([taints, other, arch]) == [arch, taints, other]
    assert nearest_first([taints, small, arch]) == [small, arch, taints]
    assert nearest_first([small, full, Reason("topology", {})])[0].code == "topology"
    assert sentences([small, full]).startswith("NodePool e: every suitable type exceeds")
    assert nearest_first([]) == []


def test_what_users_change_is_told_and_what_its_status_says_is_a_detail() -> None:
    world, ds = World(), DaemonSet("ds", "default", "logs", "")
    small, large = PodShape(requests={"cpu": 50}), PodShape(requests={"cpu": 1800})
    shapes = {content(shape)[0]: shape for shape in (small, large)}
    budget = PodDisruptionBudget("u1", "default", "web", max_unavailable="1", disruptions_allowed=1)
    now = replace(budget, max_unavailable="0", disruptions_allowed=0)
    seen = (replace(ds, shape=digest) for digest in shapes)
    for thing in (budget, replace(budget, disruptions_allowed=0), now, *seen):
        world.see(Observation(thing, dict(shapes)))
    timeline = Timeline(shapes.__getitem__)
    events = [event for entry in world.store.entries for event in timeline.apply(entry)]
    assert [(event.level, event_sentence(event)) for event in events if event.code == "object-fields-changed"] == [
        (DEBUG, "PodDisruptionBudget default/web was changed: disruptionsAllowed 1 → 0"),
        (INFO, "PodDisruptionBudget default/web was changed: maxUnavailable 1 → 0"),
        (INFO, "DaemonSet default/logs was changed: template.requests.cpu 50m → 1800m"),
    ]


def test_a_changed_object_is_told_with_its_fields_and_not_again() -> None:
    world = World()
    world.prepare()
    for allowed in (1, 0, 0):
        world.see(Observation(PodDisruptionBudget("u1", "default", "web", disruptions_allowed=allowed)))
    events = [event for event in told(world.store.entries) if event.subject.endswith("/default/web")]
    assert [event_sentence(event) for event in events] == [
        "PodDisruptionBudget web is there".replace("web", "default/web"),
        "PodDisruptionBudget default/web was changed: disruptionsAllowed 1 → 0",
    ]


def infos(world: World, shapes: dict[str, PodShape], seen: Sequence[Any]) -> list[str]:
    """What is told without --all of objects that are seen one after the other."""
    for thing in seen:
        world.see(Observation(thing, dict(shapes)))
    timeline, own = Timeline(shapes.__getitem__), ("poddisruptionbudget/", "daemonset/")
    events = [event for entry in world.store.entries for event in timeline.apply(entry)]
    return [event_sentence(e) for e in events if e.level == INFO and e.subject.startswith(own)]


def test_budgets_and_daemonsets_that_are_made_and_deleted_are_told_with_what_they_ask() -> None:
    shape = PodShape(requests={"cpu": 100}, labels={"app": "agent"})
    digest = content(shape)[0]
    budget = PodDisruptionBudget("u1", "default", "checkout", min_available="6")
    agent = DaemonSet("d1", "kube-system", "agent", digest)
    gone = (ObjectGone("pdb", "u1"), ObjectGone("daemonset", "d1"), ObjectGone("pdb", "never-seen"))
    seen = (Node("n1", created=1), budget, replace(budget, expected_pods=6, desired_healthy=6), agent, *gone)
    assert infos(World(), {digest: shape}, seen) == [
        "PodDisruptionBudget default/checkout was created: minAvailable 6",
        "DaemonSet kube-system/agent was created: template.requests.cpu 100m",
        "PodDisruptionBudget default/checkout is gone",
        "DaemonSet kube-system/agent is gone",
    ]


def test_an_object_that_is_gone_is_called_as_users_call_its_kind() -> None:
    world = World()
    world.see(Observation(ObjectGone("nodeclaim", "default-x")))
    (gone,) = [event for event in told(world.store.entries) if event.code == "object-gone"]
    assert event_sentence(gone) == "NodeClaim default-x is gone"


def test_what_the_first_lists_show_and_a_new_budget_without_numbers() -> None:
    old, new = (PodDisruptionBudget(uid, "default", uid) for uid in ("old", "new"))
    assert infos(World(), {}, (old, Node("n1", created=1), new)) == ["PodDisruptionBudget default/new was created"]


def test_a_new_overlay_is_told_with_what_it_changes() -> None:
    """A price that is wrong leads to nodes that nobody understands."""
    world = World(node_overlays=True)
    few = RequirementSpec(INSTANCE_TYPE, "In", ("m5.xlarge",))
    for thing in (Node("n1", created=1), NodeOverlay("discount", requirements=(few,), price=0.01)):
        world.see(Observation(thing))
    (event,) = (event for event in told(world.store.entries) if event.subject == "nodeoverlay/discount")
    key = f"requirements[{INSTANCE_TYPE}]"
    said = f"{key}.operator In, {key}.values [m5.xlarge], price 0.01"
    assert (event.level, event_sentence(event)) == (INFO, f"NodeOverlay discount was created: {said}")


def test_nobody_knows_when_what_an_imported_record_shows_first_was_created() -> None:
    world, budget = World(), PodDisruptionBudget("u1", "default", "web", min_available="2")
    for thing in (Node("n1", created=1), budget):
        world.see(Observation(thing))
    first, *others = world.store.entries
    imported = replace(first, payload=RecordStarted("r", "test", Imported(("an audit log",))))
    (seen,) = (event for event in told([imported, *others]) if event.subject == "poddisruptionbudget/default/web")
    assert (seen.level, event_sentence(seen)) == (DEBUG, "PodDisruptionBudget default/web is there")


def test_a_changed_nodeclass_is_told_with_its_fields() -> None:
    world = World()
    world.prepare()
    name = (NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name)
    for size in ("100Gi", "200Gi"):
        terms = NodeClassTerms(hash=size, static={"blockDeviceMappings /dev/xvda.ebs.volumeSize": size})
        world.see(Observation(NodeClassSeen(*name, ready=True, terms=terms)))
    changed = [event for event in told(world.store.entries) if event.code == "nodeclass-changed"]
    assert event_sentence(changed[-1]) == (
        "NodeClass default was changed: spec.blockDeviceMappings[/dev/xvda.ebs.volumeSize] 100Gi → 200Gi"
    )


def test_an_image_for_several_uses_is_told_once() -> None:
    # an image that boots types with accelerators, too, stands twice in a NodeClass's status
    world, with_accelerators = World(), RequirementSpec("karpenter.k8s.aws/instance-accelerator-count", "Exists")
    world.prepare()
    name = (NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name)
    shared = (Image("ami-2"), Image("ami-2", (with_accelerators,)), Image("ami-3"))
    for images in ((Image("ami-1"),), shared):
        terms = NodeClassTerms(hash="same", images=images)
        world.see(Observation(NodeClassSeen(*name, ready=True, terms=terms)))
    *_, changed = (event for event in told(world.store.entries) if event.code == "nodeclass-changed")
    assert event_sentence(changed) == "NodeClass default was changed: status.amis [ami-1] → [ami-2 ami-3]"
