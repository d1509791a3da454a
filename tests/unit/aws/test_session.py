"""What is said of calls that never left."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ParamValidationError
from botocore.parsers import ResponseParserError

from kerf.adapters.aws.session import AwsError, Clients, call


def refused(failure: Exception) -> AwsError:
    def describe_instances(**_: Any) -> dict[str, Any]:
        raise failure

    with pytest.raises(AwsError) as caught:
        call(describe_instances)
    return caught.value


def test_without_credentials_the_hint_says_where_they_come_from() -> None:
    assert "Give the pod a role" in str(refused(NoCredentialsError()))


def test_what_the_sdk_itself_refuses_was_not_sent() -> None:
    """It would be looked for, and asked for again, for ever."""
    found = refused(ParamValidationError(report="Missing required parameter"))
    assert (found.code, found.unknown) == ("KERF501", False)


@pytest.mark.parametrize(
    ("code", "unknown"),
    [("InsufficientInstanceCapacity", False), ("RequestLimitExceeded", False), ("Unavailable", True)],
)
def test_what_ec2_did_not_do_though_it_answers_with_a_fault_of_the_server(code: str, unknown: bool) -> None:
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 500}}
    assert refused(ClientError(answer, "CreateFleet")).unknown is unknown


def test_without_an_answer_the_effect_is_looked_for() -> None:
    found = refused(EndpointConnectionError(endpoint_url="https://ec2.example.com"))
    assert (found.code, found.unknown) == ("KERF502", True)
    assert str(found).endswith("Look for its effect before trying again")


def test_an_answer_that_cannot_be_read_is_none() -> None:
    """A proxy answers with a page of its own, or cuts an answer off: an instance may have been started."""
    found = refused(ResponseParserError("Unable to parse response, invalid XML received"))
    assert (found.code, found.unknown) == ("KERF502", True)


@pytest.mark.parametrize(
    ("region", "services", "iam", "pricing"),
    [
        ("eu-west-1", "eu-west-1.amazonaws.com", "iam.amazonaws.com", "api.pricing.eu-central-1.amazonaws.com"),
        (
            "cn-north-1",
            "cn-north-1.amazonaws.com.cn",
            "iam.cn-north-1.amazonaws.com.cn",
            "api.pricing.cn-northwest-1.amazonaws.com.cn",
        ),
    ],
)
def test_a402_each_service_is_asked_in_the_cluster_s_region_but_iam_and_prices(
    region: str, services: str, iam: str, pricing: str
) -> None:
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name=region)
    clients = Clients(region, session)
    asked = [clients.ec2, clients.ssm, clients.sqs, clients.eks, clients.arc_zonal_shift, session.client("sts")]
    hosts = [client.meta.endpoint_url.removeprefix("https://") for client in (*asked, clients.iam, clients.pricing)]
    regional = [f"{service}.{services}" for service in ("ec2", "ssm", "sqs", "eks", "arc-zonal-shift", "sts")]
    assert hosts == [*regional, iam, pricing]
