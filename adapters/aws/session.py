"""boto3 clients, and how their failures become kerf's errors.

Clients are made when first used: each costs tens of megabytes of service model. boto3 clients are safe to
share between threads. Retries are the SDK's standard mode, three attempts (A-22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.parsers import ResponseParserError

from kerf.adapters.aws.call_listener import CallHooks, CallListener
from kerf.adapters.aws.catalogue.pricing import pricing_region
from kerf.adapters.aws.pacing import Pace
from kerf.engine.errors import REPORT, KerfError

Client = Any  # boto3 makes its clients' classes at run time

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 3},
    connect_timeout=10,
    read_timeout=60,
    max_pool_connections=64,  # as many effects as the controller carries out at a time
    user_agent_extra="kerf",
)
NOT_FOUND = frozenset(
    {
        "InvalidCapacityReservationId.NotFound",
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchEntity",
        "ParameterNotFound",
    }
)
"""Error codes that say that a thing does not exist (A-314)."""


NOT_DONE = frozenset(
    {
        "RequestLimitExceeded",
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
    }
)
"""Error codes that EC2 gives with HTTP 5xx, and that say all the same that nothing was done."""


_OF_THE_CALLER = frozenset(
    {
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "Throttling",
        "UnrecognizedClientException",
    }
)
"""Error codes that say something of who calls, and how often, and nothing of what the call is about."""


THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Error codes that say that there were too many calls."""


NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError"})
"""Errors of the SDK before it has asked AWS: it has no credentials."""


class AwsError(KerfError):
    """AWS refused a call (KERF501), or its answer never came and nobody knows whether it happened (KERF502).

    `aws_code` is the API's own error code, `detail` its message, `unknown` whether the call may have taken
    effect.
    """

    code = "KERF501"

    def __init__(self, operation: str, aws_code: str, detail: str, *, unknown: bool = False) -> None:
        self.operation = operation
        self.aws_code = aws_code
        self.detail = detail
        self.unknown = unknown
        super().__init__(
            f"{operation}: {aws_code}: {detail}",
            where=operation,
            hint=_hint(aws_code, unknown),
            code="KERF502" if unknown else "KERF501",
        )

    @property
    def of_anything(self) -> bool:
        """Whether a call about something else would have ended alike: without an answer, throttled, not let in."""
        return self.unknown or self.aws_code in NOT_DONE | _OF_THE_CALLER

    @property
    def not_found(self) -> bool:
        return self.aws_code in NOT_FOUND

    @property
    def passing(self) -> bool:
        """Whether it says nothing of what was asked, so that the same call may well be answered a minute later."""
        return self.unknown or self.aws_code in THROTTLED


def _hint(aws_code: str, unknown: bool) -> str:
    if aws_code in NO_CREDENTIALS:
        return (
            "Give the pod a role (docs/install.md), or this shell credentials: `aws sts get-caller-identity` shows them"
        )
    return "Look for its effect before trying again" if unknown else ""


class Clients:
    """The clients of one region, from the SDK's usual chain of credentials, or from the given session's. Requests to
    EC2 keep the `pace`, where one is given. The `listener` is told of all calls."""

    def __init__(
        self,
        region: str,
        session: boto3.Session | None = None,
        config: Config = CONFIG,
        pace: Pace | None = None,
        listener: CallListener | None = None,
    ) -> None:
        self.region = region
        self.listener = listener or CallListener()
        self._pace = pace
        self._session = session or boto3.Session(region_name=region)
        self._config = config

    @cached_property
    def ec2(self) -> Client:
        return self._client("ec2")

    @cached_property
    def ssm(self) -> Client:
        return self._client("ssm")

    @cached_property
    def iam(self) -> Client:
        return self._client("iam")

    @cached_property
    def sqs(self) -> Client:
        return self._client("sqs")

    @cached_property
    def eks(self) -> Client:
        return self._client("eks")

    @cached_property
    def arc_zonal_shift(self) -> Client:
        return self._client("arc-zonal-shift")

    @cached_property
    def pricing(self) -> Client:
        return self._client("pricing", region_name=pricing_region(self.region))

    def _client(self, service: str, **options: str) -> Client:
        client = self._session.client(service, config=self._config, **options)
        if service == "ec2" and self._pace is not None:
            self._pace.hold(client)
        CallHooks(self.listener, str(client.meta.service_model.service_id)).hold(client)
        return client


class ReadingClients(Clients):
    """The clients of observe mode: they change nothing, whatever the credentials allow. Raises `AwsWriteRefused`
    (KERF503)."""

    def _client(self, service: str, **options: str) -> Client:
        client = super()._client(service, **options)
        client.meta.events.register_first("before-call", _only_reads)
        return client


class AwsWriteRefused(KerfError):
    """Something tried to change AWS in observe mode. No call was made."""

    code = "KERF503"


def _only_reads(model: Any, **_: Any) -> None:
    if not model.name.startswith(("Describe", "Get", "List")):
        where = f"{model.service_model.service_name} {model.name}"
        raise AwsWriteRefused("observe mode changes nothing", where=where, hint=REPORT)


def call(operation: Callable[..., Any], **parameters: Any) -> dict[str, Any]:
    """The answer of one API call. Raises `AwsError`. After a 5xx, or without an answer that can be read, it is open
    whether the call took effect; a throttled call did not, nor did one for which EC2 has no capacity."""
    name = operation.__name__
    try:
        answer: dict[str, Any] = operation(**parameters)
    except ClientError as failure:
        error = failure.response.get("Error", {})
        status = failure.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = error.get("Code", "Unknown")
        unknown = status >= 500 and code not in NOT_DONE
        raise AwsError(name, code, error.get("Message", ""), unknown=unknown) from failure
    except ParamValidationError as failure:  # before anything was sent
        raise AwsError(name, type(failure).__name__, str(failure)) from failure
    except (BotoCoreError, ResponseParserError) as failure:
        raise AwsError(name, type(failure).__name__, str(failure), unknown=True) from failure
    return answer


def pages(operation: Callable[..., Any], key: str, **parameters: Any) -> Iterator[Any]:
    """The entries under `key` of all pages of an answer."""
    token: str | None = ""
    while token is not None:
        answer = call(operation, **parameters, **({"NextToken": token} if token else {}))
        yield from answer.get(key, ())
        token = answer.get("NextToken") or None


def filters(**conditions: Any) -> list[dict[str, Any]]:
    """EC2 filters from names with underscores: `filters(subnet_id=["s-1"])`."""
    return [{"Name": name.replace("_", "-"), "Values": list(values)} for name, values in conditions.items()]


def tag_filters(tags: dict[str, str]) -> list[dict[str, Any]]:
    """EC2 filters for tags. The value `*` means that the key is present, whatever its value (A-47)."""
    return [
        {"Name": "tag-key", "Values": [key]} if value == "*" else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted(tags.items())
    ]
