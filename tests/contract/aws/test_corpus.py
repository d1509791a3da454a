"""corpus.yaml: what AWS is documented to answer, and what kerf makes of it. Nothing is launched twice, nothing is lost
sight of, and whatever AWS refuses is told once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.mock.environment import Environment
from kerf.adapters.aws.mock.faults import FOREVER
from kerf.adapters.aws.session import AwsError
from kerf.engine.model import labels
from kerf.engine.record.observations import InputRefused, LaunchError, NodeClassSeen
from kerf.engine.state.nodeclaims.unavailable import remember
from kerf.engine.state.state import Facts
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import AwsWorld

pytestmark = pytest.mark.slow
MINUTE = 60_000


class Fleet(msgspec.Struct, forbid_unknown_fields=True):
    """A fleet that started nothing, and why."""

    code: str
    message: str
    kind: str
    reason: str
    source: str
    remembered: str = ""


class Refused(msgspec.Struct, forbid_unknown_fields=True):
    """A call that was refused `times` times. `after` is how many minutes the class was ready before, `told` whether the
    record hears of it."""

    call: str
    error: str
    then: str
    source: str
    times: int = FOREVER
    after: int = 20
    told: bool = True


class Corpus(msgspec.Struct, forbid_unknown_fields=True):
    fleets: list[Fleet]
    refused: list[Refused]


CORPUS = msgspec.convert(yaml.safe_load(Path(__file__).with_name("corpus.yaml").read_text()), Corpus)
LAUNCH = ("CreateFleet", "CreateLaunchTemplate")


def rows(*calls: str, kept: bool = False) -> list[Any]:
    found = [row for row in CORPUS.refused if (row.call in calls or not calls) and (row.then == "kept") == kept]
    return [pytest.param(row, id=f"{row.call} {row.error.split()[1]}") for row in found]


@pytest.fixture(scope="module")
def cloud(environment: Environment) -> AwsCloud:
    """One process for all rows: to learn EC2's types takes half a second."""
    made = environment.restart()
    made.observe()
    return made


def remembered(error: LaunchError) -> str:
    """What the state remembers of an error."""
    facts = Facts()
    remember(facts, error, 1)
    if facts.full_subnets:
        return "subnet"
    return "spot" if f"{labels.SPOT}||" in facts.unavailable else "offer" if facts.unavailable else ""


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.code} {row.reason}") for row in CORPUS.fleets])
def test_a_290_to_a_313_a_fleet_that_started_nothing(world: AwsWorld, cloud: AwsCloud, row: Fleet) -> None:
    claim, spot = f"fleet-{CORPUS.fleets.index(row)}", row.remembered == "spot"
    wanted = order(world, claim, labels.SPOT if spot else labels.ON_DEMAND)
    world.environment.operator.shortage(code=row.code, message=row.message)
    answer = cloud.launch(wanted, intent="1.0", token=claim)
    assert (answer.kind, answer.code, answer.instance) == (row.kind, row.reason, "")
    assert row.code in answer.message
    assert {remembered(error) for error in answer.errors} == {row.remembered}
    assert world.alive(claim) == []
    world.environment.operator.plan.clear()
    again = cloud.launch(wanted, intent="1.0", token=claim)
    assert world.alive(claim) == [again.instance], "launched once, when there is capacity again"
    cloud.terminate(again.instance, intent="2.0")


@pytest.mark.parametrize("row", rows(*LAUNCH))
def test_a_314_a_launch_that_is_refused(world: AwsWorld, cloud: AwsCloud, row: Refused) -> None:
    claim = f"refused-{CORPUS.refused.index(row)}"
    wanted = replace(order(world, claim), labels={"row": claim})  # a launch template of its own
    world.environment.operator.fault(row.call, row.error, row.times)
    try:
        answer = cloud.launch(wanted, intent="1.0", token=claim)
        told = "launched" if answer.instance else f"{answer.kind} {answer.code}"
    except AwsError as error:
        told = "silence" if error.unknown else "raised"
    assert world.environment.operator.plan.hits
    assert told == row.then
    world.environment.operator.plan.clear()
    found = cloud.find(wanted, intent="1.0", token=claim)
    again = found or cloud.launch(wanted, intent="1.0", token=claim)
    assert world.alive(claim) == [again.instance]
    cloud.terminate(again.instance, intent="2.0")


def test_a_301_a_launch_that_a_policy_forbids_says_which_first(world: AwsWorld, cloud: AwsCloud) -> None:
    said = "UnauthorizedOperation User: kerf is not authorized with an explicit deny in a permissions boundary"
    world.environment.operator.fault("CreateFleet", f"403 {said}", 1)
    answer = cloud.launch(order(world, "forbidden"), intent="1.0", token="forbidden")
    assert (answer.kind, answer.code) == ("error", "Unauthorized")
    assert answer.message.startswith("create_fleet: not allowed by a permissions boundary: Unauthorized")


def test_a_236_a_template_that_another_process_made_meanwhile_is_used(world: AwsWorld, cloud: AwsCloud) -> None:
    wanted = replace(order(world, "first"), labels={"row": "meanwhile"})
    first = cloud.launch(wanted, intent="1.0", token="first").instance
    missing = "400 InvalidLaunchTemplateName.NotFoundException The specified launch template does not exist."
    world.environment.operator.fault("DescribeLaunchTemplates", missing, FOREVER)
    answer = world.restarted().launch(replace(wanted, claim="second"), intent="1.0", token="second")
    assert world.alive("second") == [answer.instance]
    for instance in (first, answer.instance):
        cloud.terminate(instance, intent="2.0")


@pytest.mark.parametrize("row", rows(kept=True))
def test_a_136_a_class_stays_as_it_was_and_the_refusal_is_told_once(
    world: AwsWorld, cloud: AwsCloud, row: Refused
) -> None:
    before = {known.name: cloud.resolved(known.name) for known in world.environment.node_classes}
    world.environment.operator.fault(row.call, row.error, row.times)
    world.advance(row.after * MINUTE)
    seen = [observation.payload for observation in cloud.observe()]
    assert world.environment.operator.plan.hits
    told = [payload.message for payload in seen if isinstance(payload, InputRefused)]
    assert len(told) == row.told, told
    assert all(row.error.split()[1] in message for message in told)
    assert not [payload for payload in seen if isinstance(payload, NodeClassSeen)]
    assert {name: cloud.resolved(name) for name in before} == before
    world.advance(2 * MINUTE)
    assert cloud.observe() == [], "said once"
    world.environment.operator.plan.clear()
    world.advance(2 * MINUTE)
    assert cloud.observe() == []


@pytest.mark.parametrize("row", rows("TerminateInstances", "DescribeInstances", "CreateTags"))
def test_what_is_refused_of_an_instance(world: AwsWorld, cloud: AwsCloud, row: Refused) -> None:
    claim = f"instance-{CORPUS.refused.index(row)}"
    instance = cloud.launch(order(world, claim), intent="1.0", token=claim).instance
    world.environment.operator.fault(row.call, row.error, row.times)
    try:
        match row.call:
            case "TerminateInstances":
                answer = cloud.terminate(instance, intent="2.0")
                told = "ended" if answer.ok else "refused"
                assert answer.ok or answer.code == row.error.split()[1]
            case "DescribeInstances":
                (seen,) = cloud.describe([instance])
                told = seen.status
            case _:
                against = cloud.name({instance: "node-1"})
                told = against[instance].code if against else "named"
    except AwsError as error:
        told = "silence" if row.then == "silence" and error.unknown else error.code
    assert told == row.then
    world.environment.operator.plan.clear()
    assert cloud.terminate(instance, intent="3.0").ok
    assert world.alive(claim) == []


def test_a_351_a_refused_look_at_the_health_of_instances(world: AwsWorld, cloud: AwsCloud) -> None:
    (row,) = (row for row in CORPUS.refused if row.call == "DescribeInstanceStatus")
    world.environment.operator.fault(row.call, row.error, row.times)
    with pytest.raises(AwsError, match=row.then) as caught:
        cloud.unhealthy()
    assert caught.value.aws_code == row.error.split()[1]


def listen(queue: AwsInterruptions) -> list[Any]:
    found = [observation.payload for observation in queue.poll()]
    queue.acknowledge()
    return found


@pytest.mark.parametrize("row", rows("GetQueueUrl", "ReceiveMessage", "DeleteMessageBatch"))
def test_a_343_no_message_is_lost_while_the_queue_refuses(world: AwsWorld, row: Refused) -> None:
    operator = world.environment.operator
    queue = AwsInterruptions(operator.sqs, world.environment.settings.interruption_queue, wait=0)
    event = operator.interrupt_spot("i-kept")
    operator.fault(row.call, row.error, row.times)
    with pytest.raises(AwsError, match=row.then) as caught:
        listen(queue)
    assert caught.value.aws_code == row.error.split()[1]
    operator.plan.clear()
    if row.call == "DeleteMessageBatch":  # it comes back after its visibility timeout
        asked = operator.sqs.get_queue_attributes(QueueUrl=operator.queue_url, AttributeNames=["All"])
        assert asked["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "1"
        operator.sqs.purge_queue(QueueUrl=operator.queue_url)
        return
    assert [seen.message for seen in listen(queue)] == [event]


def test_every_row_names_its_source_and_is_tried() -> None:
    tried = {*LAUNCH, "TerminateInstances", "DescribeInstances", "CreateTags", "DescribeInstanceStatus", "GetQueueUrl"}
    tried |= {"ReceiveMessage", "DeleteMessageBatch"}
    assert all(row.source for row in CORPUS.fleets)
    assert all(row.source for row in CORPUS.refused)
    assert {row.call for row in CORPUS.refused if row.then != "kept"} == tried
