"""A NodeClass can be asked about: whether it is ready, what it selects, and which NodePools use it."""

from __future__ import annotations

import pytest

from kerf.adapters.cli.render.explain.explanation import explanation_text
from kerf.adapters.cli.render.output import Printer
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedAMI,
    ResolvedSecurityGroup,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import Image, NodeClassTerms
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.labels import ARCH
from kerf.engine.record.observations import NodeClassSeen, ObjectGone, Observation
from kerf.projections.timeline.event import event_sentence
from kerf.replay.explain.subject import explain
from kerf.replay.explain.user_objects.nodeclass import GONE, NOT_READY, READY, NodeClassExplanation, PoolOfClass
from kerf.replay.history.story import story
from tests.support.manifests.nodeclaim_objects import claim
from tests.support.world import NODE_CLASS, World, pool
from tests.support.worlds.drift import KEY, TERMS, in_service, node_class

WHY = "no subnet is selected"
AMD64 = RequirementSpec(ARCH, "In", ("amd64",))
WITH_GPUS, WITHOUT = (RequirementSpec("karpenter.k8s.aws/instance-gpu-count", f) for f in ("Exists", "DoesNotExist"))


def broken() -> Observation:
    """An EC2NodeClass whose subnets are gone. Its one image is for types with GPUs and without (A-110)."""
    spec = EC2NodeClassSpec(
        (SubnetTerm({"team": "a"}), SubnetTerm(id="subnet-9")),
        ami_selector_terms=(AMITerm(alias="bottlerocket@latest"),),
        role="nodes",
    )
    status = EC2NodeClassStatus(
        security_groups=(ResolvedSecurityGroup("sg-1", "open"),),
        amis=(
            ResolvedAMI("ami-1", "br", requirements=(WITH_GPUS, AMD64)),
            ResolvedAMI("ami-1", "br", False, (WITHOUT,)),
        ),
        instance_profile="profile",
        conditions=(
            Condition("Ready", "False", "UnhealthyDependents", "SubnetsReady=False"),
            Condition("AMIsReady", "True", "AMIsReady"),
            Condition("SubnetsReady", "False", "SubnetsNotFound", WHY),
        ),
    )
    known = EC2NodeClass(NODE_CLASS.name, spec, status)
    digest, _ = content(known)
    terms = NodeClassTerms(hash="h2", static={"role": "nodes"}, images=(Image("ami-1"),), security_groups=("sg-1",))
    seen = NodeClassSeen(
        NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="UnhealthyDependents", digest=digest, terms=terms
    )
    return Observation(seen, {digest: known})


def asked(world: World, name: str = "ec2nodeclass/default", position: int | None = None) -> NodeClassExplanation:
    found = explain(world.store, name, position)
    assert isinstance(found, NodeClassExplanation)
    return found


def text_of(world: World, capsys: pytest.CaptureFixture[str]) -> list[str]:
    explanation_text(Printer(), asked(world))
    return capsys.readouterr().out.splitlines()


def test_one_that_is_not_ready_says_why_and_what_it_selects(capsys: pytest.CaptureFixture[str]) -> None:
    world = in_service()
    world.see(broken())
    world.after(1_000)
    title, *lines = text_of(world, capsys)
    assert title.startswith("EC2NodeClass default: not ready, as of position ")
    assert lines == [
        "it is not ready: UnhealthyDependents: SubnetsReady=False",
        "condition AMIsReady is met",
        f"condition SubnetsReady is False: SubnetsNotFound: {WHY}",
        "images by alias bottlerocket@latest:",
        "  br (ami-1): instance-gpu-count Exists, arch In amd64 or instance-gpu-count DoesNotExist",
        "subnets by tags team=a or id subnet-9: none",
        "security groups:",
        "  open (sg-1)",
        "role nodes, instance profile profile",
        "NodePool default uses it for 1 node, 1 drifted (1 NodeClassDrift); "
        "it launches nothing while this NodeClass is not ready",
    ]


def test_what_the_terms_tell_stands_in_for_an_object_that_is_not_in_the_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = in_service()
    found = asked(world, "nodeclasses.karpenter.k8s.aws/default")
    assert (found.status, found.node_pools) == (READY, (PoolOfClass("default", 1, 0),))
    selected = {each.what: [one.id for one in each.found] for each in found.selected}
    assert selected == {"images": ["ami-1"], "subnets": ["subnet-1"], "security groups": ["sg-1"]}
    assert "role old" in text_of(world, capsys)


def test_one_that_is_being_deleted_is_not_ready_for_that(capsys: pytest.CaptureFixture[str]) -> None:
    world = in_service()
    world.see(node_class(ready=False, reason="Deleting"))
    assert asked(world).status == NOT_READY
    assert "it is not ready: Deleting" in text_of(world, capsys)


def test_nodes_of_nodeclaims_that_somebody_wrote_have_no_nodepool(capsys: pytest.CaptureFixture[str]) -> None:
    """kerf takes over whatever is of its NodeClasses (L-48)."""
    world = World()
    world.prepare(pool())
    world.see(Observation(claim(1, labels={})))
    assert text_of(world, capsys)[-2:] == ["1 node without a NodePool", "NodePool default uses it for 0 nodes"]
    world.see(Observation(ObjectGone("nodepool", "default")))
    assert text_of(world, capsys)[-2:] == ["1 node without a NodePool", "no NodePool uses it"]


def test_one_that_is_gone_is_told_as_gone(capsys: pytest.CaptureFixture[str]) -> None:
    world = in_service()
    there = world.runtime.state.facts.position
    world.see(Observation(ObjectGone("nodeclass", KEY)))
    assert (asked(world).status, asked(world, position=there).status) == (GONE, READY)
    (title,) = text_of(world, capsys)
    assert title.startswith("NodeClass default: gone, as of position ")


def test_its_story_tells_what_was_changed_and_its_end() -> None:
    world = in_service()
    for seen in (broken(), node_class(TERMS), Observation(ObjectGone("nodeclass", KEY))):
        world.after(1_000)
        world.see(seen)
    told = story(world.store, "nodeclass/default")
    assert told.subject == "nodeclass/default"
    sentences = [event_sentence(event) for event in told.events]
    gone = sentences.index("NodeClass default is not ready: UnhealthyDependents")
    assert "status.subnets [subnet-1] → none" in sentences[gone - 1]
    assert "spec.role old → nodes" in sentences[gone - 1]
    assert "NodeClass default is ready" in sentences[gone + 1 :]
    assert sentences[-1] == "NodeClass default is gone"
