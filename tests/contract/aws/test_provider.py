"""The provider of `kerf run --provider aws` on the mock: what it writes of EC2NodeClasses."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.adapters.aws.nodeclass.resolved import image_of
from kerf.adapters.aws.session import AwsError as NoAnswer
from kerf.adapters.aws.settings import ClusterFacts
from kerf.adapters.kubernetes.objects.nodeclasses import NodeClassObjects
from kerf.adapters.manager.manager import NODE_CLASS_KINDS
from kerf.adapters.manager.providers.aws import AwsProvider
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import CatalogueSeen, InterruptionSeen, NodeClassSeen, Observation
from tests.support.aws.boundary import Boundary
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, resolved


async def while_it_runs(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Wait for an event without a timer: virtual time would run ahead of the threads that bring it."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert event.is_set(), f"ended before: {task}"


class Queue:
    """A queue that meets two defects before it gives its message."""

    def __init__(self) -> None:
        self.polled = 0
        self.acknowledged = asyncio.Event()

    def poll(self) -> list[Observation]:
        self.polled += 1
        if self.polled < 3:
            raise RecursionError("a defect")
        told = InterruptionSeen("m-1", "spot_interrupted", "i-1")
        return [Observation(told), Observation(InterruptionSeen("m-2", "instance_terminated", "i-others"))]

    def acknowledge(self, waiting: Collection[str] = ()) -> None:
        self.acknowledged.set()


class Host:
    def __init__(self, *joined: tuple[NodeClaim, Node]) -> None:
        self.told: list[Any] = []
        self.nodes = list(joined)
        self.pools: list[NodePool] = []
        self.owned = {"i-1"}
        self.news = asyncio.Event()

    async def joined(self) -> list[tuple[NodeClaim, Node]]:
        return self.nodes

    async def node_pools(self, group: str) -> list[NodePool]:
        return [pool for pool in self.pools if pool.node_class.group == group]

    async def own(self, instances: Iterable[str]) -> set[str]:
        return self.owned & set(instances)

    async def awaited(self, instances: Iterable[str]) -> set[str]:
        return {"i-found"} & set(instances)

    def put(self, observations: Iterable[Observation]) -> None:
        self.told += [observation.payload for observation in observations]
        self.news.set()

    async def record(self, observations: Iterable[Observation]) -> None:
        self.put(observations)


def test_a20_the_classes_of_aws_are_ec2nodeclasses(world: AwsWorld) -> None:
    environment = world.environment
    provider = AwsProvider(environment.operator.shim, environment.settings, objects=None, interruptions=None)
    assert provider.node_classes.api == "karpenter.k8s.aws/v1/EC2NodeClass"
    assert NODE_CLASS_KINDS["aws"] == "karpenter.k8s.aws/EC2NodeClass"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_343_a_defect_met_in_the_queue_does_not_end_the_provider(world: AwsWorld) -> None:
    queue, host = Queue(), Host()
    interruptions = cast(AwsInterruptions, queue)
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=interruptions
    )
    listening = asyncio.create_task(provider._listen(cast(ProviderHost, host), interruptions))
    await while_it_runs(listening, queue.acknowledged)
    listening.cancel()
    refused, seen = host.told[:2]
    assert (refused.code, refused.source) == ("KERF605", "queue"), "told once"
    assert seen == InterruptionSeen("m-1", "spot_interrupted", "i-1")
    assert "i-others" not in repr(host.told), "A-354: it is deleted all the same"


class Sqs:
    """A queue with warnings for instances, by the name of each message. It gives ten in any order, and again what is
    not deleted."""

    def __init__(self, instances: Mapping[str, str]) -> None:
        detail_type = "EC2 Spot Instance Interruption Warning"
        head = {"version": "0", "source": "aws.ec2", "detail-type": detail_type}
        self.bodies = {
            name: json.dumps({**head, "id": f"warning-{instance}", "detail": {"instance-id": instance}})
            for name, instance in instances.items()
        }
        self.deleted, self._dice, self._one_by_one = asyncio.Event(), random.Random(18), threading.Lock()

    def get_queue_url(self, **_: Any) -> dict[str, str]:
        return {"QueueUrl": f"https://sqs.us-west-2.amazonaws.com/123456789012/{CLUSTER}"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        with self._one_by_one:
            names = self._dice.sample(sorted(self.bodies), min(10, len(self.bodies)))
            return {"Messages": [{"MessageId": n, "ReceiptHandle": n, "Body": self.bodies[n]} for n in names]}

    def delete_message_batch(self, Entries: list[dict[str, str]], **_: Any) -> dict[str, Any]:  # noqa: N803
        with self._one_by_one:
            for entry in Entries:
                self.bodies.pop(entry["ReceiptHandle"], None)
        self.deleted.set()
        return {}


@pytest.mark.asyncio(loop_scope="function")
async def test_a354_a_message_that_comes_before_its_claim_stays_in_the_queue_until_the_claim_is_adopted(
    world: AwsWorld,
) -> None:
    """In the first minute of a new record a NodeClaim waits for its types and its Node."""
    sqs, host = Sqs({name: name for name in ("i-1", "i-found", "i-others")}), Host()
    queue = AwsInterruptions(sqs, CLUSTER)
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=queue
    )
    listening = asyncio.create_task(provider._listen(cast(ProviderHost, host), queue))
    await while_it_runs(listening, sqs.deleted)
    assert list(sqs.bodies) == ["i-found"]
    assert {seen.instance for seen in host.told} == {"i-1"}
    sqs.deleted.clear()
    host.owned.add("i-found")
    await while_it_runs(listening, sqs.deleted)
    listening.cancel()
    assert not sqs.bodies
    assert {seen.instance for seen in host.told} == {"i-1", "i-found"}


@pytest.mark.asyncio(loop_scope="function")
async def test_a343_a354_hundreds_of_messages_in_any_order_and_twice_are_recorded_and_deleted(world: AwsWorld) -> None:
    own, others = {f"i-own-{number}" for number in range(100)}, {f"i-others-{number}" for number in range(200)}
    sent = {f"{instance}/{again}": instance for instance in own | others for again in range(2)}
    sqs, host = Sqs(sent), Host()
    host.owned = own
    queue = AwsInterruptions(sqs, CLUSTER)
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=queue
    )
    listening = asyncio.create_task(provider._listen(cast(ProviderHost, host), queue))
    while sqs.bodies:
        sqs.deleted.clear()
        await while_it_runs(listening, sqs.deleted)
    listening.cancel()
    assert {seen.instance for seen in host.told} == own
    assert {seen.message for seen in host.told} == {f"warning-{instance}" for instance in own}, "twice is as once"


async def seen_after(world: AwsWorld, host: Host, **changed: str) -> tuple[NodeClassTerms, NodeClassTerms]:
    """The class's terms at the start, and after the provider had learned that the cluster changed."""
    settings = world.environment.settings
    first = settings.facts
    answers: list[ClusterFacts | NoAnswer] = [
        first,
        NoAnswer("cluster", "NoAnswer", "none", unknown=True),
        replace(first, **changed),
    ]

    async def facts() -> ClusterFacts:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, NoAnswer):
            raise answer
        return answer

    provider = AwsProvider(
        world.environment.operator.shim, settings, objects=cast(NodeClassObjects, Objects()), interruptions=None,
        clock=CLOCK, facts=facts,
    )  # fmt: skip
    provider.put(world.environment.node_classes[0])
    before = [entry.payload for entry in await provider.first(cast(ProviderHost, Host()))]
    following = asyncio.create_task(provider._follow(cast(ProviderHost, host), facts))
    await provider._news.wait()
    following.cancel()
    after = [entry.payload for entry in await provider._looked(cast(ProviderHost, host))]
    (was,), (now,) = ([seen for seen in some if isinstance(seen, NodeClassSeen)] for some in (before, after))
    assert was.terms is not None
    assert now.terms is not None
    return was.terms, now.terms


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("missing", ["CIDR", "answer"])
async def test_a129_what_classes_of_al2023_wait_for_is_asked_again_within_a_minute(
    world: AwsWorld, missing: str
) -> None:
    settings = world.environment.settings
    known, asked = settings.facts, list[float]()

    async def facts() -> ClusterFacts:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) < 3 and missing == "answer":
            raise NoAnswer("cluster", "NoAnswer", "none", unknown=True)
        return known if len(asked) > 2 else replace(known, cidr="")

    provider = AwsProvider(world.environment.operator.shim, settings, objects=None, interruptions=None, facts=facts)
    provider.put(world.environment.node_classes[0])
    settings.facts = replace(known, cidr="")
    following = asyncio.create_task(provider._follow(cast(ProviderHost, Host()), facts))
    try:
        while len(asked) < 4:
            await asyncio.sleep(30)
            assert not following.done()
    finally:
        following.cancel()
        settings.facts = known
    pauses = [round(after - before) for before, after in pairwise(asked)]
    assert pauses == [60, 60, 300]


@pytest.mark.asyncio(loop_scope="function")
async def test_a342_after_an_upgrade_of_the_control_plane_aliases_select_other_images(world: AwsWorld) -> None:
    world.environment.operator.publish_images("1.35")
    host = Host()
    was, now = await seen_after(world, host, kubernetes_version="1.35")
    assert {image.id for image in was.images}.isdisjoint(image.id for image in now.images)
    assert was.hash == now.hash
    assert [refused.code for refused in host.told] == ["KERF502"], "no answer: said once, and nothing changed by it"


@pytest.mark.asyncio(loop_scope="function")
async def test_a372_a_version_that_kerf_does_not_know_is_used_and_told_once(world: AwsWorld) -> None:
    world.environment.operator.publish_images("1.99")
    host = Host()
    _, now = await seen_after(world, host, kubernetes_version="1.99")
    assert now.images
    assert [refused.code for refused in host.told] == ["KERF502", "KERF504"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a64_another_certificate_authority_is_another_hash(world: AwsWorld) -> None:
    was, now = await seen_after(world, Host(), ca_bundle="bmV3")
    assert was.hash != now.hash
    assert [name for name in now.static if now.static[name] != was.static.get(name)] == ["clusterCA"]


class Objects:
    """Keeps what is written of each class. Writing of "bad" fails in a way that nobody foresaw."""

    def __init__(self) -> None:
        self.written: dict[str, dict[str, str]] = {}

    async def mark(self, name: str, finalizer: str, annotations: Any) -> None:
        if name == "bad":
            raise TypeError("a defect")

    async def write_status(self, name: str, generation: int, status: Any, conditions: Any) -> None:
        self.written[name] = {condition.type: condition.status for condition in conditions}


@pytest.mark.asyncio(loop_scope="function")
async def test_a74_a_class_has_its_finalizer_before_anything_is_made_for_it(
    world: AwsWorld, boundary: Boundary
) -> None:
    """One that is being deleted gets none."""
    marked: list[tuple[str, int]] = []

    class Marking(Objects):
        async def mark(self, name: str, finalizer: str, annotations: Any) -> None:
            marked.append((finalizer, len(boundary.calls)))

    (default,) = world.environment.node_classes
    provider = AwsProvider(
        world.environment.operator.shim,
        world.environment.settings,
        objects=cast(NodeClassObjects, Marking()),
        interruptions=None,
        clock=CLOCK,
    )
    provider.put(replace(default, name="young", uid="uid-young"))
    provider.put(replace(default, name="old", uid="uid-old", deleting=1))
    await provider.first(cast(ProviderHost, Host()))
    assert marked == [("karpenter.k8s.aws/termination", 0)]
    made = [call for call in boundary.calls if call.method == "create_instance_profile"]
    assert [call.parameters["Path"].split("/")[-2] for call in made if "young" in str(call)] == ["uid-young"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a66_a367_a_class_that_changes_gets_its_new_hash_at_once(world: AwsWorld) -> None:
    written: list[tuple[float, str]] = []
    loop = asyncio.get_running_loop()

    class Marking(Objects):
        async def mark(self, name: str, finalizer: str, annotations: Any) -> None:
            digest = annotations.get("karpenter.k8s.aws/ec2nodeclass-hash", "")
            if digest and digest not in [known for _, known in written]:
                written.append((loop.time(), digest))

    (default,) = world.environment.node_classes
    objects, host = cast(NodeClassObjects, Marking()), cast(ProviderHost, Host())
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=objects, interruptions=None, clock=CLOCK
    )
    provider.put(default)
    await provider.first(host)
    keeping = asyncio.create_task(provider._keep(host))
    while not written:
        await asyncio.sleep(0.1)
    changed = loop.time()
    provider.put(replace(default, spec=replace(default.spec, tags={"team": "b"}), generation=2))
    async with asyncio.timeout(10):
        while len(written) < 2:
            await asyncio.sleep(0.1)
    keeping.cancel()
    assert written[1][0] - changed < 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_136_a_class_that_cannot_be_written_keeps_no_other_from_being_written(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    objects = Objects()
    provider = AwsProvider(
        world.environment.operator.shim,
        world.environment.settings,
        objects=cast(NodeClassObjects, objects),
        interruptions=None,
        clock=CLOCK,
    )
    malformed = replace(default.spec, kubelet={"podsPerCore": "x"})
    for name, spec in (("aaa", default.spec), ("bad", default.spec), ("malformed", malformed), ("zzz", default.spec)):
        provider.put(replace(default, name=name, spec=spec))
    seen = [entry.payload for entry in await provider.first(cast(ProviderHost, Host()))]
    assert {node_class.name: node_class.ready for node_class in seen if isinstance(node_class, NodeClassSeen)} == {
        "aaa": True, "bad": True, "malformed": False, "zzz": True,
    }  # fmt: skip
    for node_class in list(provider._classes.values()):
        await provider._bring(node_class, cast(ProviderHost, None))
    assert {name: written["Ready"] for name, written in objects.written.items()} == {
        "aaa": "True", "malformed": "False", "zzz": "True",
    }  # fmt: skip
    assert provider.error is not None
    assert (provider.error.code, provider.error.where) == ("KERF605", "EC2NodeClass/bad")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_56_a_status_names_the_generation_that_was_resolved(world: AwsWorld) -> None:
    """A class may change while another look at AWS is under way: nobody has looked at what it asks for now."""
    generations: list[int] = []

    class Told(Objects):
        async def write_status(self, name: str, generation: int, status: Any, conditions: Any) -> None:
            generations.append(generation)

    (default,) = world.environment.node_classes
    provider = AwsProvider(
        world.environment.operator.shim,
        world.environment.settings,
        objects=cast(NodeClassObjects, Told()),
        interruptions=None,
        clock=CLOCK,
    )
    provider.put(replace(default, generation=4))
    await provider.first(cast(ProviderHost, Host()))
    await provider._bring(replace(default, generation=5), cast(ProviderHost, None))
    assert generations == [4]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_219_a_class_that_goes_while_ec2_is_asked_does_not_come_back(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record would have it for ever, and its NodePools would launch for it."""
    (default,) = world.environment.node_classes
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=None, clock=CLOCK
    )
    observe = provider._cloud.observe

    def observed_as_it_goes() -> list[Observation]:
        seen = observe()
        provider.drop("default")
        return seen

    monkeypatch.setattr(provider._cloud, "observe", observed_as_it_goes)
    provider.put(default)
    provider.put(replace(default, name="other"))
    seen = await provider.first(cast(ProviderHost, Host()))
    assert [entry.payload.name for entry in seen if isinstance(entry.payload, NodeClassSeen)] == ["other"]


def pool_of(family: str, group: str = "karpenter.k8s.aws") -> NodePool:
    wanted = RequirementSpec("karpenter.k8s.aws/instance-family", "In", (family,))
    return NodePool(family, NodeClassRef(group, "EC2NodeClass", "default"), requirements=(wanted,))


@pytest.mark.asyncio(loop_scope="function")
async def test_a_135_what_nodepools_can_have_is_tried_at_the_start_and_after_they_change(world: AwsWorld) -> None:
    """The first look decides whether a class is ready: an account may forbid the usual types."""
    calls, host = Calls(world.environment, "CreateFleet"), Host()
    host.pools = [pool_of("r5"), pool_of("m5", group="another")]
    provider = AwsProvider(
        world.environment.operator.shim,
        replace(world.environment.settings, dry_run=True),
        objects=cast(NodeClassObjects, Objects()),
        interruptions=None,
        clock=CLOCK,
    )

    def tried() -> list[set[str]]:
        return [
            {override["InstanceType"].partition(".")[0] for override in config["Overrides"]}
            for request in calls.of("CreateFleet")
            for config in request["LaunchTemplateConfigs"]
        ]

    provider.put(world.environment.node_classes[0])
    await provider.first(cast(ProviderHost, host))
    assert tried() == [{"r5"}]
    host.pools = [pool_of("c5")]
    world.advance(61_000)
    keeping = asyncio.create_task(provider._keep(cast(ProviderHost, host)))
    provider.put(world.environment.node_classes[0])
    async with asyncio.timeout(60):
        await host.news.wait()
    keeping.cancel()
    assert tried() == [{"r5"}, {"c5"}]


@pytest.mark.asyncio(loop_scope="function")
async def test_a170_the_memory_that_nodes_show_takes_the_place_of_the_estimate(world: AwsWorld) -> None:
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=None, clock=CLOCK
    )
    provider.put(resolved(world.restarted().observe()))

    def types(observations: list[Observation]) -> dict[str, InstanceType]:
        (seen,) = (entry for entry in observations if isinstance(entry.payload, CatalogueSeen))
        (made,) = seen.blobs.values()
        assert isinstance(made, Catalogue)
        return {kind.name: kind for kind in made.types}

    estimated = types(await provider.first(cast(ProviderHost, Host())))
    image = image_of(provider._classes["default"].status.amis, estimated["m5.large"])
    claim = NodeClaim("one", instance_type="m5.large", image=image, node="n1", registered=1)
    other = replace(claim, name="other", image="ami-before", instance_type="c5.large")
    less = estimated["m5.large"].capacity["memory"] - (100 << 20)
    host = Host(
        (claim, Node("n1", capacity={"memory": less})),
        (claim, Node("n2", capacity={"memory": less + 1})),  # the least counts
        (other, Node("n3", capacity={"memory": 1})),  # of an image that no class would boot today
    )
    measuring = asyncio.create_task(provider._instances.measure(cast(ProviderHost, host)))
    await asyncio.sleep(6)
    measuring.cancel()
    await asyncio.to_thread(provider._pool.shutdown)
    now = types(await asyncio.to_thread(provider._cloud.observe))
    changed = {name: kind.capacity["memory"] for name, kind in now.items() if kind != estimated[name]}
    assert changed == {"m5.large": less}
