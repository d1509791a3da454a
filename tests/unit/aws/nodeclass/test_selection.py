"""What an EC2NodeClass selects and which instances there are, by the calls that are made for it (A-95 to A-100, A-287,
A-326 to A-331)."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.adapters.aws.ami_families import image_queries
from kerf.adapters.aws.call_listener import CallListener
from kerf.adapters.aws.instances import ALIVE, VISIBLE, Instances, capacity_type
from kerf.adapters.aws.nodeclass.images import PARAMETER_TTL, Images
from kerf.adapters.aws.nodeclass.resolver import NodeClassResolver
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedAMI,
    SubnetTerm,
)

FACTS = ClusterFacts(endpoint="https://demo", kubernetes_version="1.34", cidr="10.100.0.0/16")
SETTINGS = AwsSettings(cluster="demo", region="us-west-2", facts=FACTS)


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "AWS")


class AWS:
    """Answers every EC2 call with what stands under its name, and remembers what was asked; SSM has parameters."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.listener = answers, CallListener()
        self.parameters: dict[str, str | ClientError] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    @property
    def ec2(self) -> Any:
        return self

    @property
    def ssm(self) -> Any:
        return self

    def __getattr__(self, operation: str) -> Any:
        def call(**given: Any) -> Any:
            self.asked.append((operation, given))
            if operation == "get_parameter":
                value = self.parameters[given["Name"]]
                if isinstance(value, ClientError):
                    raise value
                return {"Parameter": {"Value": value}}
            answer = self.answers.get(operation, {})
            return answer(given) if callable(answer) else answer

        call.__name__ = operation
        return call

    def of(self, operation: str) -> list[dict[str, Any]]:
        return [given for name, given in self.asked if name == operation]


def filters(given: dict[str, Any]) -> dict[str, list[str]]:
    return {condition["Name"]: condition["Values"] for condition in given["Filters"]}


# ── images ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def image(id: str) -> dict[str, Any]:
    return {"ImageId": id, "Name": id, "CreationDate": "2026-01-01T00:00:00Z", "Architecture": "x86_64"}


def selected(aws: AWS, *terms: AMITerm) -> list[str]:
    found, _ = Images(aws, SETTINGS, lambda: 0).resolve(  # type: ignore[arg-type]
        EC2NodeClass("default", EC2NodeClassSpec(ami_selector_terms=terms, ami_family="AL2023"))
    )
    return sorted(resource.id for resource in found)


def test_a99_ids_and_parameters_share_a_query_and_each_other_term_has_its_own() -> None:
    aws = AWS(describe_images={"Images": [image("ami-1")]})
    aws.parameters["/mine"] = "ami-3"
    selected(
        aws,
        AMITerm(id="ami-2"), AMITerm(ssm_parameter="/mine"), AMITerm(id="ami-1"), AMITerm(name="base-*"),
        AMITerm(tags={"team": "a", "stage": "*"}), AMITerm(tags={"team": "a"}, owner="123456789012"),
    )  # fmt: skip
    asked = aws.of("describe_images")
    available = {"state": ["available"]}
    assert [(filters(request), request.get("Owners")) for request in asked] == [
        ({"name": ["base-*"], **available}, ["self", "amazon"]),
        ({"tag-key": ["stage"], "tag:team": ["a"], **available}, None),
        ({"tag:team": ["a"], **available}, ["123456789012"]),
        ({"image-id": ["ami-1", "ami-2", "ami-3"], **available}, None),
    ]
    assert all(request["IncludeDeprecated"] for request in asked)


def test_a100_a_parameter_that_is_not_there_or_no_image_is_skipped() -> None:
    aws = AWS(describe_images={"Images": [image("ami-1")]})
    aws.parameters = {"/gone": refusal("ParameterNotFound"), "/text": "hello", "/mine": "ami-1"}
    terms = [AMITerm(ssm_parameter=name) for name in ("/gone", "/text", "/mine")]
    assert selected(aws, *terms) == ["ami-1"]
    assert filters(aws.of("describe_images")[-1])["image-id"] == ["ami-1"]
    aws.parameters["/gone"] = refusal("AccessDenied")
    with pytest.raises(AwsError, match="AccessDenied"):
        selected(aws, *terms)


def test_a100_the_last_value_of_a_parameter_stays_while_ssm_cannot_tell() -> None:
    aws = AWS(describe_images={"Images": [image("ami-1")]})
    aws.parameters["/mine"] = "ami-1"
    now = 0
    images = Images(aws, SETTINGS, lambda: now)  # type: ignore[arg-type]
    spec = EC2NodeClassSpec(ami_selector_terms=(AMITerm(ssm_parameter="/mine"),), ami_family="AL2023")
    assert [found.id for found in images.resolve(EC2NodeClass("default", spec))[0]] == ["ami-1"]
    aws.parameters["/mine"] = refusal("InternalError")
    now += PARAMETER_TTL + 1
    found, verdict = images.resolve(EC2NodeClass("default", spec))
    assert ([each.id for each in found], verdict.status) == (["ami-1"], "True")
    assert len(aws.of("get_parameter")) == 2


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDenied"])
def test_a101_a_class_keeps_its_images_while_ssm_cannot_tell_some_of_an_alias(code: str) -> None:
    """A process that has just begun remembers no parameter. A new class takes what there is."""
    aws = AWS(describe_images={"Images": [image("ami-1")]})
    queries = image_queries("bottlerocket@latest", "1.34")
    aws.parameters = {query.parameter: refusal(code) for query in queries} | {queries[0].parameter: "ami-1"}
    spec = EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias="bottlerocket@latest"),))
    before = tuple(ResolvedAMI(f"ami-{number}") for number in range(4))
    images = Images(aws, SETTINGS, lambda: 0)  # type: ignore[arg-type]
    assert {found.id for found in images.resolve(EC2NodeClass("default", spec))[0]} == {"ami-1"}
    if code == "ThrottlingException":
        with pytest.raises(AwsError, match=code):
            images.resolve(EC2NodeClass("default", spec), before)
    else:
        assert images.resolve(EC2NodeClass("default", spec), before)[1].status == "True"


@pytest.mark.parametrize("family", ["Windows2022", "Custom", ""])
def test_a30_a31_a111_an_alias_of_windows_selects_windows_whatever_the_family(family: str) -> None:
    aws = AWS(describe_images={"Images": [image("ami-1")]})
    (query,) = image_queries("windows2022@latest", "1.34")
    aws.parameters[query.parameter] = "ami-1"
    spec = EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias="windows2022@latest"),), ami_family=family)
    (found,), verdict = Images(aws, SETTINGS, lambda: 0).resolve(EC2NodeClass("default", spec))  # type: ignore[arg-type]
    assert verdict.status == "True"
    assert {need.key: need.values for need in found.requirements} == {
        "kubernetes.io/arch": ("amd64",), "kubernetes.io/os": ("windows",),
        "node.kubernetes.io/windows-build": ("10.0.20348",),
    }  # fmt: skip


def test_a373_a_latest_alias_whose_image_is_deprecated_is_asked_for_again() -> None:
    old = {**image("ami-old"), "DeprecationTime": "1970-01-01T01:00:00Z"}
    aws = AWS(describe_images=lambda given: {"Images": [old if "ami-old" in str(given) else image("ami-new")]})
    latest = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    aws.parameters = {latest: "ami-old"}
    now = 0
    images = Images(aws, SETTINGS, lambda: now)  # type: ignore[arg-type]

    def asked_at(minute: int, alias: str = "al2023@latest") -> tuple[int, list[str]]:
        nonlocal now
        now = minute * 60_000
        before = len([given for given in aws.of("get_parameter") if given["Name"] == latest])
        for name in (query.parameter for query in image_queries(alias, "1.34")):
            aws.parameters.setdefault(name, refusal("ParameterNotFound"))
        spec = EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias=alias),), ami_family="AL2023")
        found, _ = images.resolve(EC2NodeClass("default", spec))
        after = len([given for given in aws.of("get_parameter") if given["Name"] == latest])
        return after - before, [resource.id for resource in found]

    assert asked_at(0) == (1, ["ami-old"])
    assert asked_at(40) == (0, ["ami-old"]), "kept for a day as long as the image is good"
    assert asked_at(60) == (0, ["ami-old"]), "it is deprecated from now on"
    aws.parameters[latest] = "ami-new"
    assert asked_at(61) == (1, ["ami-new"]), "read over half an hour ago"
    assert asked_at(120) == (0, ["ami-new"])


# ── subnets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def subnet(id: str, zone: str, free: int = 10) -> dict[str, Any]:
    return {"SubnetId": id, "AvailabilityZone": zone, "AvailabilityZoneId": zone, "AvailableIpAddressCount": free}


def test_a95_a97_subnets_are_those_of_the_terms_whatever_their_network_and_zone() -> None:
    """One call for each term of tags, one for all ids; what comes twice counts once; nothing else is asked of them."""
    local = subnet("subnet-3", "us-west-2-lax-1a")
    aws = AWS(describe_subnets={"Subnets": [local, subnet("subnet-1", "us-west-2a", 7)]})
    classes = NodeClassResolver(aws, SETTINGS, lambda: 0)  # type: ignore[arg-type]
    terms = (SubnetTerm(tags={"a": "b"}), SubnetTerm(id="subnet-3"), SubnetTerm(id="subnet-1"))
    spec = EC2NodeClassSpec(subnet_selector_terms=terms, instance_profile="mine")
    status = classes.resolve(EC2NodeClass("default", spec), EC2NodeClassStatus())
    assert [(chosen.id, chosen.zone) for chosen in status.subnets] == [
        ("subnet-1", "us-west-2a"), ("subnet-3", "us-west-2-lax-1a"),
    ]  # fmt: skip
    assert [filters(request) for request in aws.of("describe_subnets")] == [
        {"tag:a": ["b"]}, {"subnet-id": ["subnet-1", "subnet-3"]},
    ]  # fmt: skip
    assert classes.free_addresses.known()["subnet-1"] == 7


# ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────


def instances(aws: AWS) -> Instances:
    return Instances(aws, "demo", lambda: 0, ZonalShifts(aws, "", lambda: 0))  # type: ignore[arg-type]


def reservations(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"Reservations": [{"Instances": [entry]} for entry in entries]}


def running(id: str, state: str = "running") -> dict[str, Any]:
    return {"InstanceId": id, "State": {"Name": state}}


def test_a326_a_terminated_instance_is_one_that_is_not_there() -> None:
    aws = AWS(describe_instances=reservations(running("i-1"), running("i-2", "shutting-down")))
    seen = instances(aws).describe(["i-1", "i-2", "i-3"])
    assert [(instance.instance, instance.status) for instance in seen] == [
        ("i-1", "running"), ("i-2", "shutting-down"), ("i-3", "gone"),
    ]  # fmt: skip
    (asked,) = aws.of("describe_instances")
    assert filters(asked)["instance-state-name"] == list(VISIBLE)
    assert "terminated" not in VISIBLE
    assert set(VISIBLE) - set(ALIVE) == {"shutting-down"}


def test_a287_a328_five_hundred_in_a_call_and_halves_of_it_where_an_id_is_unknown() -> None:
    def answer(given: dict[str, Any]) -> dict[str, Any]:
        if "i-gone" in given["InstanceIds"]:
            raise refusal("InvalidInstanceID.NotFound")
        return reservations(*(running(instance_id) for instance_id in given["InstanceIds"]))

    aws = AWS(describe_instances=answer)
    instances(aws).describe([f"i-{number}" for number in range(501)])
    assert [len(request["InstanceIds"]) for request in aws.of("describe_instances")] == [500, 1]
    aws.asked.clear()
    seen = instances(aws).describe(["i-1", "i-gone", "i-2"])
    assert [instance.status for instance in seen] == ["running", "gone", "running"]
    assert [request["InstanceIds"] for request in aws.of("describe_instances")] == [
        ["i-1", "i-gone", "i-2"], ["i-1"], ["i-gone", "i-2"], ["i-gone"], ["i-2"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "ok"),
    [({}, True), (refusal("InvalidInstanceID.NotFound"), True), (refusal("UnauthorizedOperation"), False)],
)
def test_a330_an_instance_that_is_gone_is_as_good_as_ended(answer: Any, ok: bool) -> None:
    def terminate(given: dict[str, Any]) -> Any:
        if isinstance(answer, ClientError):
            raise answer
        return answer

    aws = AWS(terminate_instances=terminate)
    assert instances(aws).terminate("i-1", intent="1.0").ok == ok
    assert aws.of("terminate_instances") == [{"InstanceIds": ["i-1"]}]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, "on-demand"),
        ({"SpotInstanceRequestId": "sir-1"}, "spot"),
        ({"CapacityReservationId": "cr-1"}, "on-demand"),
        (
            {
                "CapacityReservationId": "cr-1",
                "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
            },
            "on-demand",
        ),
        (
            {
                "CapacityReservationId": "cr-1",
                "CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"},
            },
            "reserved",
        ),
        (
            {"CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"}},
            "on-demand",
        ),
    ],
)
def test_a331_what_an_instance_runs_as(entry: dict[str, Any], expected: str) -> None:
    assert capacity_type(entry) == expected
