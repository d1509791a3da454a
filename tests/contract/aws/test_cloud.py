"""`AwsCloud` through boto3 against moto and the shim: the contract, and what a launch asks EC2 for."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.mock.environment import CLUSTER, Environment
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.user_data import user_data
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model import labels
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclass_terms import user_data_digest
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import draw_of
from tests.contract.cloud_contract import CloudContract, CloudWorld, order
from tests.support.metrics import scraped, value
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, tag_set, with_spec


class TestContract(CloudContract):
    @pytest.fixture
    def world(self, environment: Environment) -> Iterator[CloudWorld]:
        yield AwsWorld(environment)
        environment.operator.plan.clear()


def test_a_483_the_fleet_request(world: AwsWorld) -> None:
    """The fleet request has the offers, capacity type, tags and token of the claim (A-273…A-282, A-321). No tag says
    `karpenter.sh/managed-by` any more."""
    calls = Calls(world.environment, "CreateFleet")
    world.cloud().launch(order(world, "fleet-request", labels.SPOT), intent="1.0", token="token-fleet")
    (request,) = calls.of("CreateFleet")
    assert (request["Type"], request["ClientToken"]) == ("instant", "token-fleet")
    assert request["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 1,
        "DefaultTargetCapacityType": "spot",
    }
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert "OnDemandOptions" not in request
    overrides = [o for config in request["LaunchTemplateConfigs"] for o in config["Overrides"]]
    assert {(o["InstanceType"], o["AvailabilityZone"], o["Priority"]) for o in overrides} == {
        (o.instance_type, o.zone, o.price) for o in world.offers
    }
    assert all(o["SubnetId"].startswith("subnet-") and o["ImageId"].startswith("ami-") for o in overrides)
    expected = {
        "eks:eks-cluster-name": CLUSTER,
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "karpenter.sh/nodepool": "default",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/nodeclaim": "fleet-request",
    }
    assert {s["ResourceType"]: tag_set(s) for s in request["TagSpecifications"]} == dict.fromkeys(
        ("instance", "volume", "fleet"), expected
    )


def test_the_instance_carries_the_tags_and_boots_an_image_of_its_architecture(world: AwsWorld) -> None:
    """A-115, A-321: m6g.large is an Arm type."""
    answer = world.cloud().launch(order(world, "tagged"), intent="1.0", token="tagged")
    (found,) = world.described("tagged")
    assert found["ImageId"] == answer.image
    (image,) = world.environment.operator.ec2.describe_images(ImageIds=[answer.image])["Images"]
    assert image["Architecture"] == ("arm64" if answer.instance_type == "m6g.large" else "x86_64")
    assert {t["Key"]: t["Value"] for t in found["Tags"]}["karpenter.sh/nodeclaim"] == "tagged"


@pytest.mark.parametrize(
    ("capacity_type", "by_price", "options", "strategy"),
    [
        (labels.SPOT, False, "SpotOptions", "price-capacity-optimized"),
        (labels.SPOT, True, "SpotOptions", "capacity-optimized-prioritized"),
        (labels.ON_DEMAND, False, "OnDemandOptions", "lowest-price"),
        (labels.ON_DEMAND, True, "OnDemandOptions", "prioritized"),
    ],
)
def test_a_275_a_276_where_an_overlay_sets_prices_ec2_draws_by_them(
    world: AwsWorld, capacity_type: str, by_price: bool, options: str, strategy: str
) -> None:
    """The overlay calls the type cheap that EC2 sells dearest of the three."""
    calls = Calls(world.environment, "CreateFleet")
    cheap = (replace(world.offers[2], price=0.001), *world.offers[:2])
    wanted = replace(order(world, "drawn", capacity_type), offers=cheap, draw=draw_of(by_price=by_price, relaxed=False))
    answer = world.cloud().launch(wanted, intent="1.0", token=f"drawn-{capacity_type}-{by_price}")
    (request,) = calls.of("CreateFleet")
    assert request[options] == {"AllocationStrategy": strategy}
    assert (answer.instance_type == cheap[0].instance_type) == by_price


@pytest.mark.parametrize("relaxed", [False, True])
def test_a_280_the_context_is_not_for_a_claim_whose_min_values_were_lowered(world: AwsWorld, relaxed: bool) -> None:
    cloud = with_spec(world, context="reserved-context")
    calls = Calls(world.environment, "CreateFleet")
    assert cloud.launch(
        replace(order(world, "c"), draw=draw_of(by_price=False, relaxed=relaxed)), intent="1.0", token=f"c-{relaxed}"
    ).instance
    (request,) = [asked for asked in calls.of("CreateFleet") if not asked.get("DryRun")]
    assert request.get("Context", "") == ("" if relaxed else "reserved-context")


def test_the_launch_template(world: AwsWorld) -> None:
    """The launch template has the image, groups, profile, volumes and metadata options of the NodeClass (A-234…A-252,
    A-255)."""
    fresh = replace(world.environment.node_classes[0].spec, tags={"team": "a"}, detailed_monitoring=True)
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], spec=fresh, generation=2)
    calls = Calls(world.environment, "CreateLaunchTemplate")
    world.cloud().launch(order(world, "template", labels.SPOT), intent="1.0", token="template")
    made = calls.of("CreateLaunchTemplate")
    assert len(made) == 2, "one for the Arm image, one for the other two types, which have equally many pods"
    data = made[0]["LaunchTemplateData"]
    assert data["Monitoring"] == {"Enabled": True}
    assert data["Placement"] == {"Tenancy": "default"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
    assert data["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20}}
    ]
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    (interface,) = data["NetworkInterfaces"]
    assert interface["DeviceIndex"] == 0
    assert [group[:3] for group in interface["Groups"]] == ["sg-"]
    kinds = {s["ResourceType"]: tag_set(s) for s in data["TagSpecifications"]}
    assert set(kinds) == {"network-interface", "spot-instances-request"}
    assert kinds["network-interface"]["team"] == "a"
    assert "karpenter.sh/nodeclaim" not in kinds["network-interface"], "a template serves many claims"
    assert all(params["LaunchTemplateName"].startswith("karpenter.k8s.aws/") for params in made)


def test_the_node_config(world: AwsWorld) -> None:
    """The NodeConfig names the cluster, the labels and taints of the claim, and the kubelet settings (A-258, A-259,
    A-264)."""
    calls = Calls(world.environment, "CreateLaunchTemplate")
    wanted = replace(
        order(world, "booted"),
        offers=world.offers[2:],
        labels={labels.NODEPOOL: "default", labels.ZONE: "us-west-2c", "team": "b"},
        taints=(Taint("dedicated", "NoSchedule", "web"),),
    )
    world.cloud().launch(wanted, intent="1.0", token="booted")
    (made,) = calls.of("CreateLaunchTemplate")
    text = base64.b64decode(made["LaunchTemplateData"]["UserData"]).decode()
    assert text.startswith('MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n')
    config = yaml.safe_load(text.partition("application/node.eks.aws\n\n")[2].partition("--//--")[0])
    assert config["spec"]["cluster"] == {
        "name": CLUSTER,
        "apiServerEndpoint": "https://kerf-demo.invalid",
        "certificateAuthority": "a2VyZg==",
        "cidr": "10.100.0.0/16",
    }
    kubelet = config["spec"]["kubelet"]
    assert kubelet["config"]["maxPods"] == 29
    assert kubelet["config"]["clusterDNS"] == ["10.100.0.10"]
    assert kubelet["config"]["registerWithTaints"] == [
        {"key": "dedicated", "effect": "NoSchedule", "value": "web"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
    ]
    (flag,) = kubelet["flags"]
    assert flag == (
        '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,'
        'karpenter.sh/nodepool=default,team=b"'
    )


def test_a_452_a_template_deleted_behind_our_back_is_made_again(world: AwsWorld) -> None:
    world.cloud().launch(order(world, "before"), intent="1.0", token="before")
    ec2 = world.environment.operator.ec2
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    answer = world.cloud().launch(order(world, "after"), intent="2.0", token="after")
    assert answer.instance


def test_a_236_a_template_is_made_without_asking_and_one_that_is_there_is_taken(world: AwsWorld) -> None:
    calls = Calls(world.environment, "DescribeLaunchTemplates", "CreateLaunchTemplate")
    wanted = order(world, "first")
    for number, cloud in enumerate((world.restarted(), world.restarted())):
        assert cloud.launch(wanted, intent=f"{number}.0", token=f"a236-{number}").instance
    names = [made["LaunchTemplateName"] for made in calls.of("CreateLaunchTemplate")]
    half = len(names) // 2
    assert names[:half] == names[half:]
    assert half
    assert calls.of("DescribeLaunchTemplates") == []


def test_a_237_unused_templates_are_deleted_also_those_of_an_earlier_process(world: AwsWorld) -> None:
    ec2 = world.environment.operator.ec2
    world.cloud().launch(order(world, "swept"), intent="1.0", token="swept")
    assert ec2.describe_launch_templates()["LaunchTemplates"]
    cloud = world.restarted()
    cloud.observe()
    world.advance(59_000)
    cloud.observe()
    assert ec2.describe_launch_templates()["LaunchTemplates"], "a minute has not passed"
    world.advance(2_000)
    cloud.observe()
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert world.cloud().launch(order(world, "swept-2"), intent="2.0", token="swept-2").instance


def test_no_user_data_is_observed_and_a_launch_is_not_repeated_with_other_user_data(world: AwsWorld) -> None:
    """The bytes come from the live NodeClass, and passwords stand in them."""
    classes = world.environment.node_classes
    classes[0] = replace(classes[0], spec=replace(classes[0].spec, user_data="TOKEN=hunter2"), generation=3)
    cloud, calls = world.cloud(), Calls(world.environment, "CreateFleet")
    observed = cloud.observe()
    assert any(isinstance(blob, EC2NodeClass) for each in observed for blob in each.blobs.values())
    assert b"hunter2" not in msgspec.msgpack.encode([[each.payload, *each.blobs.values()] for each in observed])
    repeated = replace(order(world, "other"), again="1.0", user_data=user_data_digest("TOKEN=other"))
    answer = cloud.launch(repeated, intent="1.0", token="token-other")
    assert (answer.code, answer.kind, answer.instance) == ("UserDataChanged", "nodeclass-not-ready", "")
    assert not calls.of("CreateFleet")
    same = replace(repeated, user_data=user_data_digest("TOKEN=hunter2"))
    assert cloud.launch(same, intent="1.0", token="token-other").instance
    assert "hunter2" not in f"{answer}"


def test_a_234_equal_claims_share_a_template_whose_content_is_written_once(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another label, another kubelet, another service address: another template."""
    written: list[str] = []

    def write(boot: Boot) -> str:
        written.append(boot.family)
        return user_data(boot)

    monkeypatch.setattr("kerf.adapters.aws.launch.launch_template.user_data", write)
    settings = replace(world.environment.settings)
    classes = world.environment.node_classes
    cloud = AwsCloud(world.environment.operator.shim, settings, lambda: classes, CLOCK)
    cloud.observe()
    one_type = replace(order(world, "one"), offers=world.offers[1:2])
    calls = Calls(world.environment, "CreateFleet")

    def launched(claim: str, **more: Any) -> str:
        cloud.launch(replace(one_type, claim=claim, **more), intent="1.0", token=f"a234-{claim}")
        (config,) = calls.of("CreateFleet")[-1]["LaunchTemplateConfigs"]
        return str(config["LaunchTemplateSpecification"]["LaunchTemplateName"])

    first = launched("one")
    del written[:]
    assert launched("two", user_data="", requests={**one_type.requests, "pods": 3}) == first
    assert written == []
    names = {first, launched("three", labels={**one_type.labels, "team": "b"})}
    settings.facts = replace(settings.facts, dns="10.100.0.11")
    names.add(launched("four"))
    classes[0] = replace(classes[0], spec=replace(classes[0].spec, detailed_monitoring=True))
    names.add(launched("five"))
    assert len(names) == 4


def test_a20_l413_l428_the_time_of_what_is_asked_of_the_cloud(world: AwsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what fails."""
    metrics = AwsMetrics()
    monkeypatch.setattr(world.environment.operator.shim, "listener", metrics)
    cloud = world.restarted()
    world.environment.operator.fault("CreateFleet", "lost", 3)
    with pytest.raises(AwsError):
        cloud.launch(order(world, "timed"), intent="1.0", token="timed")
    found = cloud.find(order(world, "timed"), intent="1.0", token="timed")
    assert found is not None
    cloud.describe([found.instance])
    cloud.listing()
    cloud.terminate(found.instance, intent="2.0")
    took = "karpenter_cloudprovider_duration_seconds"
    counted = scraped(exposition(metrics.families()))
    assert counted[f"{took}_count"] == {
        (("controller", controller), ("method", method), ("provider", "aws")): count
        for controller, method, count in (
            ("nodeclaim.lifecycle", "Create", 1),
            ("nodeclaim.lifecycle", "Get", 2),
            ("nodeclaim.lifecycle", "Delete", 1),
            ("instance.garbagecollection", "List", 1),
        )
    }
    assert value(counted, f"{took}_sum", method="Create") > 0
    for batcher in ("describe_instances", "terminate_instances"):
        assert value(counted, "karpenter_cloudprovider_batcher_batch_size_sum", batcher=batcher) == 1
