"""What stands on a NodePool object (L-36…L-39, L-65…L-68, L-182, L-252…L-255, L-276, D-128)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.nodepools import pool_status
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepool_validation import violations
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.observations import InterruptionSeen, LaunchAnswered, NodeClassSeen, ObjectGone, Observation
from kerf.projections.status.nodeclaim import claim_conditions
from kerf.projections.status.nodepool import NodePoolStatus, nodepool_status
from tests.support.lives import asked, claim_of, in_service, launched
from tests.support.world import NODE_CLASS, World, pool

KEY = f"{NODE_CLASS.group}/{NODE_CLASS.kind}/{NODE_CLASS.name}"


def status(world: World, *before: Condition) -> NodePoolStatus:
    return nodepool_status(world.runtime.state, "default", before)


def node_class(world: World, **changes: Any) -> NodePoolStatus:
    world.see(Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, **changes)))
    return status(world)


def told(found: NodePoolStatus, kind: str) -> tuple[str, str]:
    condition = found.condition(kind)
    return condition.status, condition.reason


def test_a_pool_with_a_node_in_service() -> None:
    found = status(in_service())
    assert found.ready
    assert {c.type: c.status for c in found.conditions} == {
        "ValidationSucceeded": "True", "NodeClassReady": "True", "NodeRegistrationHealthy": "True", "Ready": "True",
    }  # fmt: skip


def test_l34_l252_a_long_list_of_faults_is_cut_to_what_the_api_server_takes() -> None:
    """It lets through any number of bad values, and would refuse a status that names each."""
    world = in_service()
    wrong = RequirementSpec("example.com/team", "In", tuple(f"not a value {number}" for number in range(2_000)))
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], requirements=(wrong,))))
    found = status(world)
    shown = pool_status(found.conditions, found.resources, found.nodes, found.node_class_generation)
    (message,) = (each["message"] for each in shown["conditions"] if each["type"] == "ValidationSucceeded")
    assert message.startswith("requirement example.com/team has the invalid value not a value 0; ")
    assert (len(message), message[-1]) == (32_768, "…")


def test_l82_l184_launches_that_fail_are_told_as_on_their_nodeclaims() -> None:
    """KWOK's code is an HTTP status, which is no reason to the API server: it refused the status of the NodePool."""
    world, shown = asked(), Condition("", "")
    while status(world).condition("NodeRegistrationHealthy").status != "False":
        for ref, order in world.launches():
            answer = LaunchAnswered(ref, order.claim, kind="error", code="422", message="refused " * 100)
            world.see(Observation(answer))
        for claim in world.runtime.state.facts.claims.values():
            shown = claim_conditions(claim, world.runtime.state, world.now)[0]
        world.after(20_000)
    found = status(world).condition("NodeRegistrationHealthy")
    assert (shown.type, shown.reason) == ("Launched", "LaunchFailed")
    assert (found.reason, found.message) == (shown.reason, shown.message)


def test_l253_a_nodeclass_that_is_not_ready_says_why_on_its_nodepools() -> None:
    """What its condition Ready says is what there is to do something about."""
    why = "SubnetsReady=False (SubnetsNotFound: no subnet has the tags)"
    shown = EC2NodeClassStatus(conditions=(Condition("Ready", "False", "UnhealthyDependents", why),))
    known = EC2NodeClass(NODE_CLASS.name, EC2NodeClassSpec(), shown)
    digest, _ = content(known)
    seen = NodeClassSeen(
        NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="UnhealthyDependents", digest=digest
    )
    world = in_service()
    world.see(Observation(seen, {digest: known}))
    assert told(status(world), "NodeClassReady") == ("False", "UnhealthyDependents")
    assert status(world).condition("NodeClassReady").message == f"NodeClass {NODE_CLASS.name} is not ready: {why}"


def test_l253_the_nodeclass_decides_readiness() -> None:
    world = in_service()
    assert told(node_class(world, reason="SubnetsNotFound"), "NodeClassReady") == ("False", "SubnetsNotFound")
    unknown = node_class(world, reason="ReconcilingDependents")
    assert told(unknown, "NodeClassReady") == ("False", "NodeClassReadinessUnknown")
    assert told(node_class(world, reason="Deleting"), "NodeClassReady") == ("False", "NodeClassTerminating")
    world.see(Observation(ObjectGone("nodeclass", KEY)))
    found = status(world)
    assert told(found, "NodeClassReady") == ("False", "NodeClassNotFound")
    assert told(found, "Ready") == ("False", "UnhealthyDependents")
    assert found.condition("Ready").message == "NodeClassReady=False"
    assert not found.ready


def test_l253_the_generation_of_the_nodeclass_is_told() -> None:
    assert node_class(in_service(), ready=True, generation=7).node_class_generation == 7


def test_l252_what_is_invalid_is_told_with_all_messages() -> None:
    world = in_service()
    bad = pool(labels={"karpenter.sh/foo": "a", "ok": "-"})
    world.see(Observation(bad))
    found = status(world).condition("ValidationSucceeded")
    assert (found.status, found.reason) == ("False", "NodePoolValidationFailed")
    assert found.message == "label karpenter.sh/foo is restricted; label ok has the invalid value -"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"labels": {"team": "a", lbl.CAPACITY_TYPE: "on-demand"}}, 0),
        ({"labels": {lbl.NODEPOOL: "x"}}, 1),
        ({"labels": {lbl.HOSTNAME: "x"}}, 1),
        ({"labels": {"a" * 64: "x"}}, 1),
        ({"taints": (Taint("k", "NoSchedule"), Taint("k", "NoExecute"))}, 0),
        ({"taints": (Taint("k", "NoSchedule"),), "startup_taints": (Taint("k", "NoSchedule", "v"),)}, 1),
        ({"taints": (Taint("k", ""),)}, 0),
        ({"taints": (Taint("", "Never"),)}, 2),
        ({"requirements": (RequirementSpec("beta.kubernetes.io/arch", "In", ("amd64",)),)}, 0),
        ({"requirements": (RequirementSpec("karpenter.sh/nodepool", "Exists"),)}, 1),
        ({"requirements": (RequirementSpec("team", "In"),)}, 1),
        ({"requirements": (RequirementSpec("team", "Near", ("a",)),)}, 1),
        ({"requirements": (RequirementSpec("team", "In", ("a",), 2),)}, 1),
        ({"requirements": (RequirementSpec("team", "Gt", ("1",)),)}, 0),
        ({"requirements": (RequirementSpec("team", "Gt", ("-1",)),)}, 2),
        ({"requirements": (RequirementSpec("team", "Lt", ("1", "2")),)}, 1),
        ({"requirements": (RequirementSpec("team", "NotIn"),)}, 0),
        ({"requirements": (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("spot", "preemptible")),)}, 0),
        ({"requirements": (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("preemptible",)),)}, 1),
        ({"requirements": (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("spot", "preemptible"), 2),)}, 1),
    ],
)
def test_l36_to_l39_what_the_controller_refuses(changes: dict[str, Any], wrong: int) -> None:
    assert len(violations(replace(pool(), **changes))) == wrong


ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
LISTED = RequirementSpec("team", "In", ("a", "b"))


@pytest.mark.parametrize(
    ("labels", "requirements", "told"),
    [
        ({"team": "a"}, (LISTED,), ""),
        ({"team": "c"}, (LISTED,), "no value of label team meets team=c and team In [a b]"),
        (
            {"team": "a"},
            (RequirementSpec("team", "DoesNotExist"),),
            "no value of label team meets team=a and team DoesN",
        ),
        ({}, (LISTED, RequirementSpec("team", "In", ("b", "c"))), ""),
        ({}, (LISTED, RequirementSpec("team", "NotIn", ("a", "b"))), "no value of label team meets team In [a b] and"),
        ({}, (RequirementSpec("n", "Gt", ("5",)), RequirementSpec("n", "Lt", ("5",))), "meets n Gt 5 and n Lt 5"),
        ({}, (RequirementSpec("n", "Gte", ("5",)), RequirementSpec("n", "Lte", ("5",))), ""),
        ({}, (RequirementSpec("team", "NotIn", ("a",)), RequirementSpec("team", "DoesNotExist")), ""),
        ({}, (RequirementSpec("team", "Exists"), RequirementSpec("team", "DoesNotExist")), "no value of label team"),
        (
            {"topology.kubernetes.io/zone": "z1", ZONE_BETA: "z2"},
            (),
            "meets topology.kubernetes.io/zone=z1 and failure",
        ),
        (
            {"topology.kubernetes.io/zone": "z1"},
            (RequirementSpec(ZONE_BETA, "In", ("z2",)),),
            "kubernetes.io/zone=z1 and",
        ),
    ],
)
def test_l38_a_label_that_can_have_no_value_is_told(
    labels: dict[str, str], requirements: tuple[RequirementSpec, ...], told: str
) -> None:
    """Three nodes were launched for it, and each came with the label of the template."""
    found = "; ".join(violations(replace(pool(), labels=labels, requirements=requirements)))
    assert told in found
    assert bool(told) == bool(found)


def test_l38_nothing_is_launched_for_such_a_nodepool() -> None:
    world = World()
    world.prepare(replace(pool(labels={"team": "c"}), requirements=(LISTED,)))
    world.pending("a")
    world.after(1_000)
    assert not world.launches()
    world.see(Observation(replace(pool(labels={"team": "b"}), requirements=(LISTED,))))
    world.after(1_000)
    assert len(world.launches()) == 1


def test_l66_since_moves_only_with_the_status() -> None:
    world = in_service()
    at = world.now
    before = status(world).conditions
    world.after(60_000)
    node_class(world, reason="SubnetsNotFound")
    after = status(world, *before)
    assert after.condition("ValidationSucceeded").since == at
    assert after.condition("Ready").since == world.now
    world.after(60_000)
    node_class(world, reason="ImagesNotFound")
    assert status(world, *after.conditions).condition("NodeClassReady").since == world.now - 60_000


def test_d128_the_pools_hash_is_told() -> None:
    world = in_service()
    world.see(Observation(hashed(pool())))
    assert status(world).annotations == {lbl.NODEPOOL_HASH: hashed(pool()).hash, lbl.NODEPOOL_HASH_VERSION: "v3"}


def test_l255_resources_of_a_node_in_service_are_its_own() -> None:
    world = in_service()
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, capacity={"cpu": 1_900, "memory": 5, "pods": 29})))
    found = status(world)
    assert found.resources == {"cpu": 1_900, "memory": 5, "pods": 29, "ephemeral-storage": 0, "nodes": 1}
    assert found.nodes == 1


def test_l266_before_that_they_are_the_catalogues() -> None:
    world = launched()
    claim = claim_of(world)
    assert status(world).resources["cpu"] == claim.capacity["cpu"]


def test_l276_a_node_on_its_way_out_does_not_count() -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim_of(world).instance)))
    found = status(world)
    assert found.resources == dict.fromkeys(("cpu", "ephemeral-storage", "memory", "nodes", "pods"), 0)
    assert found.nodes == 0


def test_l67_a_nodepools_conditions_say_which_generation_they_are_about() -> None:
    world = World()
    world.prepare(replace(pool(), generation=7))
    found = nodepool_status(world.runtime.state, "default")
    shown = pool_status(found.conditions, found.resources, found.nodes, found.node_class_generation, found.generation)
    assert {condition["observedGeneration"] for condition in shown["conditions"]} == {7}
