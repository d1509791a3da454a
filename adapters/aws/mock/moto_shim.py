"""boto3 against moto in this process, with what moto lacks and with faults on demand.

Nothing leaves the process: the shim takes the place of the HTTP connection in each of its clients, and a
request that moto does not know is an error. Other boto3 clients of the process are not touched, and no
credential is read.

The shim works at two levels of botocore:
- *before the call* it answers what moto answers badly or not at all (prices, spot history, EKS images in
SSM, whole instance type listings), and decides for CreateFleet which offering has capacity, by price, as
the allocation strategies do; - *at the connection* it fails calls as the fault plan says, and gives a
repeated client token the first answer.

Instances are pending, then running; they end through shutting-down; all by the clock that the shim is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from moto.core.botocore_stubber import MockRawResponse
from moto.core.models import botocore_stubber
from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.pricing import spot_model
from kerf.adapters.aws.mock.faults import FaultPlan, error_of
from kerf.adapters.aws.session import CONFIG, Client, Clients
from kerf.engine.errors import KerfError

ACCOUNT = "123456789012"
BOOT, SHUTDOWN = 5_000, 30_000
"""How long (ms) an instance is pending, and is shutting down unless the shim is told otherwise."""
DEDICATED_FACTOR = 1.1
"""How much dedicated hardware costs beside shared. No table has these prices."""
_ERROR_BODIES = {
    "ec2": "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors></Response>",
    "iam": "<ErrorResponse><Error><Code>{}</Code><Message>{}</Message></Error></ErrorResponse>",
}
_JSON_ERROR = '{{"__type": "{}", "message": "{}"}}'


_Pool = tuple[dict[str, Any], dict[str, Any]]
"""One of the LaunchTemplateConfigs, and one of its overrides."""


class _Http(Struct):
    status_code: int


class _Life(Struct):
    """When an instance was started, and when its end began (0: not yet); milliseconds."""

    started: int
    ended: int = 0


class _Choice(Struct):
    """What was decided for one client token: the request that it came with, and the errors met on the way."""

    request: str
    errors: list[dict[str, Any]]
    settled: bool = False  # the token is used up


class MotoShim(Clients):
    """Clients whose AWS is moto. `zones` are the region's zones that have prices; `parameters` SSM's public
    ones."""

    def __init__(self, region: str, zones: Sequence[str], clock: Callable[[], int]) -> None:
        super().__init__(region, _session(region), CONFIG.merge(Config(ignore_configured_endpoint_urls=True)))
        self.zones = tuple(zones)
        self.plan = FaultPlan()
        self.parameters: dict[str, str] = {}
        self.reservations: list[dict[str, Any]] = []
        self.placement_groups: list[dict[str, Any]] = []
        """Entries of DescribeCapacityReservations and DescribePlacementGroups, of which moto knows nothing."""
        self.unwell: list[dict[str, Any]] = []
        """Entries of DescribeInstanceStatus, whatever is asked for: moto knows healthy instances only."""
        self.zonal_shifts: list[dict[str, Any]] = []
        """Entries of ARC's GetManagedResource, which moto does not know."""
        self.product: Callable[[str, float], str | None] = _product
        """Gives the document of GetProducts for a type and its price, None where the price list lacks it."""
        self.shutdown = SHUTDOWN
        self._clock = clock
        self._lives: dict[str, _Life] = {}
        self._choices: dict[str, _Choice] = {}
        self._replies: dict[str, tuple[int, Any, Any]] = {}

    def publish_image(self, parameter: str, name: str, architecture: str) -> None:
        """An image that a public SSM parameter names. moto does not take down an image's architecture or time."""
        image = self.ec2.register_image(Name=name)["ImageId"]
        made = _backend(self.region).amis[image]
        made.architecture = architecture
        made.creation_date = datetime.fromtimestamp(self._clock() / 1000, UTC)
        self.parameters[parameter] = image

    # ── the clients ────────────────────────────────────────────────────────────────────────────────────────

    def _client(self, service: str, **options: str) -> Client:
        client = super()._client(service, **options)
        events = client.meta.events
        events.unregister("before-send", botocore_stubber)
        events.register("before-send", self._connection)
        events.register("before-call", self._answer)
        if service == "ec2":
            events.register("provide-client-params.ec2.CreateFleet", self._choose)
            events.register("after-call.ec2.CreateFleet", self._add_errors)
            events.register("after-call.ec2.DescribeInstances", _add_spot_requests)
        return client

    # ── at the connection ──────────────────────────────────────────────────────────────────────────────────

    def _connection(self, request: Any, event_name: str, **_: Any) -> AWSResponse:
        service, operation = event_name.split(".")[1:]
        fault = self.plan.fault(operation)
        if fault == "unreachable":
            raise ConnectTimeoutError(endpoint_url=request.url)
        if (failure := error_of(fault)) is not None:
            status, code, message = failure
            reply: tuple[int, Any, Any] = (
                status,
                {},
                _ERROR_BODIES.get(service, _JSON_ERROR).format(code, escape(message)),
            )
        elif operation == "CreateFleet":
            reply = self._create_fleet(request)
        else:
            self._age()
            reply = self._moto(request)
            if operation == "TerminateInstances":
                self._end()
        if fault == "lost":
            raise ReadTimeoutError(endpoint_url=request.url)
        status, headers, body = reply
        return AWSResponse(request.url, status, headers, MockRawResponse(body))

    @staticmethod
    def _moto(request: Any) -> tuple[int, Any, Any]:
        reply = botocore_stubber.process_request(request)
        if reply is None:
            raise KerfError(f"moto does not know {request.url}, and nothing may leave the process", code="KERF510")
        return reply

    def _create_fleet(self, request: Any) -> tuple[int, Any, Any]:
        """One launch for one token: a repetition gets the first answer (moto would start a second
        instance)."""
        token = _field(request, "ClientToken")
        if token in self._replies:
            return self._replies[token]
        before = set(_instances(self.region))
        reply = self._moto(request)
        if reply[0] == 200:  # a refused request uses no token up
            self._replies[token] = reply
            self._choices[token].settled = True
        for instance in sorted(_instances(self.region).keys() - before):
            self._born(instance)
        return reply

    def _born(self, instance: str) -> None:
        now = self._clock()
        self._lives[instance] = _Life(now)
        made = _instances(self.region)[instance]
        made.launch_time = datetime.fromtimestamp(now / 1000, UTC)
        self._age()

    def _end(self) -> None:
        for instance, life in sorted(self._lives.items()):
            if not life.ended and _instances(self.region)[instance].state == "terminated":
                life.ended = self._clock()
        self._age()

    def _age(self) -> None:
        """Put moto's instances into the states that they have by now."""
        now, known = self._clock(), _instances(self.region)
        for instance, life in self._lives.items():
            if life.ended:
                name, code = ("shutting-down", 32) if now < life.ended + self.shutdown else ("terminated", 48)
            else:
                name, code = ("pending", 0) if now < life.started + BOOT else ("running", 16)
            state = known[instance]._state
            state.name, state.code = name, code

    # ── CreateFleet ────────────────────────────────────────────────────────────────────────────────────────

    def _choose(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any] | None:
        """Leave in the request the one offering that a launch would draw, and remember why not the cheaper
        ones."""
        if params.get("DryRun"):
            return None
        token, text = params.get("ClientToken", ""), json.dumps(params, sort_keys=True)
        context["kerf-token"] = token
        known = self._choices.get(token)
        if known is not None and not known.settled:
            known = None
        if known is not None and known.request != text:
            context["kerf-answer"] = _error(400, "IdempotentParameterMismatch", "The token was used before.")
            return None
        kind = params["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
        if known is None:
            known = self._choices[token] = _Choice(text, [])
            config, override = self._draw(self._ranked(params, kind), kind, known.errors)
        else:
            config, override = self._first(self._ranked(params, kind), known.errors)
        if override is None:
            known.settled = True
            answer = {"FleetId": f"fleet-{token}", "Errors": known.errors, "Instances": []}
            context["kerf-answer"] = (_Http(200), answer)
            return None
        target = params["TargetCapacitySpecification"]
        if kind in ("capacity-block", "reserved-capacity"):  # moto launches nothing for them
            target = {**target, "DefaultTargetCapacityType": "on-demand"}
        chosen = [{**config, "Overrides": [override]}]
        return {**params, "TargetCapacitySpecification": target, "LaunchTemplateConfigs": chosen}

    def _draw(
        self, ranked: list[_Pool], kind: str, errors: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        for config, override in ranked:
            lack = self.plan.shortage(override["InstanceType"], override["AvailabilityZone"], kind)
            if lack is None:
                return config, override
            pool = {"LaunchTemplateSpecification": config["LaunchTemplateSpecification"], "Overrides": override}
            errors.append(
                {
                    "LaunchTemplateAndOverrides": pool,
                    "Lifecycle": kind,
                    "ErrorCode": lack.code,
                    "ErrorMessage": lack.message,
                }
            )
        return {}, None

    @staticmethod
    def _first(ranked: list[_Pool], errors: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The offering drawn when the token was first used: the first after those that had errors."""
        return ranked[len(errors)] if len(errors) < len(ranked) else ({}, None)

    def _ranked(self, params: dict[str, Any], kind: str) -> list[_Pool]:
        """All overrides: by priority if the strategy says so, else cheapest first by this cloud's own prices; types
        without a price last."""
        options = params.get("SpotOptions") or params.get("OnDemandOptions") or {}
        prioritized = options.get("AllocationStrategy", "").endswith("prioritized")

        def rank(pool: _Pool) -> tuple[float, str, str]:
            name, zone = pool[1]["InstanceType"], pool[1]["AvailabilityZone"]
            return pool[1]["Priority"] if prioritized else self.price(name, zone, kind), name, zone

        return sorted(((c, override) for c in params["LaunchTemplateConfigs"] for override in c["Overrides"]), key=rank)

    def price(self, name: str, zone: str, kind: str) -> float:
        """USD per hour of an offering of this cloud."""
        price = tables().prices.get(name, float("inf"))
        return spot_model(price, name, zone) if kind == "spot" else price

    def _add_errors(self, parsed: dict[str, Any], context: Mapping[str, Any], **_: Any) -> None:
        choice = self._choices.get(context.get("kerf-token", ""))
        if choice is not None and "Instances" in parsed:
            parsed["Errors"] = choice.errors

    # ── before the call ────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, model: Any, params: dict[str, Any], context: Mapping[str, Any], **_: Any) -> Any:
        if "kerf-answer" in context:
            return context["kerf-answer"]
        answerer = {
            "GetProducts": self._products,
            "GetParameter": self._parameter,
            "DescribeSpotPriceHistory": self._spot_history,
            "DescribeInstanceTypes": self._instance_types,
            "DescribeInstanceTypeOfferings": self._type_offerings,
            "DescribeInstanceStatus": self._instance_status,
            "DescribeCapacityReservations": self._capacity_reservations,
            "DescribePlacementGroups": self._placement_groups,
            "GetManagedResource": self._managed_resource,
        }.get(model.name)
        body = params["body"] or {}
        dry = isinstance(body, dict) and str(body.get("DryRun", "")).lower() == "true"
        if answerer is None and not dry:
            return None
        fault = self.plan.fault(model.name)
        if (failure := error_of(fault)) is not None:
            return _error(*failure)
        if fault:
            raise ConnectTimeoutError(endpoint_url=params["url"])
        if dry or answerer is None:
            return _error(412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        return answerer(body if isinstance(body, dict) else json.loads(body))

    def _products(self, body: Mapping[str, Any]) -> Any:
        filters = {entry["Field"]: entry["Value"] for entry in body.get("Filters", ())}
        metal = "bare metal" in filters.get("productFamily", "")
        factor = DEDICATED_FACTOR if filters.get("tenancy") == "Dedicated" and not metal else 1.0
        prices = [pair for pair in sorted(tables().prices.items()) if (".metal" in pair[0]) == metal]
        documents = (self.product(name, price * factor) for name, price in prices)
        return _page("PriceList", [document for document in documents if document is not None], body)

    def _parameter(self, body: Mapping[str, Any]) -> Any:
        """None leaves parameters that are not public ones to moto."""
        value = self.parameters.get(body["Name"])
        return None if value is None else (_Http(200), {"Parameter": {"Name": body["Name"], "Value": value}})

    def _spot_history(self, body: Mapping[str, Any]) -> Any:
        now = datetime.fromtimestamp(self._clock() / 1000, UTC)
        prices = [(name, zone, price) for name, price in sorted(tables().prices.items()) for zone in self.zones]
        answer, page = _page("SpotPriceHistory", prices, body)
        entries = [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "SpotPrice": str(spot_model(price, name, zone)),
                "Timestamp": now,
            }
            for name, zone, price in page["SpotPriceHistory"]
        ]
        return answer, page | {"SpotPriceHistory": entries}

    def _instance_types(self, body: Mapping[str, Any]) -> Any:
        from moto.ec2.models.instance_types import INSTANCE_TYPES

        return _page("InstanceTypes", [entry for _, entry in sorted(INSTANCE_TYPES.items())], body)

    def _managed_resource(self, _: Mapping[str, Any]) -> Any:
        return _Http(200), {"appliedWeights": {}, "autoshifts": [], "zonalShifts": self.zonal_shifts}

    def _capacity_reservations(self, body: Mapping[str, Any]) -> Any:
        """By id, or all of them."""
        asked = body.get("CapacityReservationId.1")
        known = [
            reservation for reservation in self.reservations if asked in (None, reservation["CapacityReservationId"])
        ]
        if asked and not known:
            return _error(400, "InvalidCapacityReservationId.NotFound", f"{asked} does not exist")
        return _page("CapacityReservations", known, body)

    def _placement_groups(self, body: Mapping[str, Any]) -> Any:
        """The available ones, by name or id; EC2 says so of one that it does not know."""
        asked = body.get("GroupName.1") or body.get("GroupId.1")
        known = [
            placement_group
            for placement_group in self.placement_groups
            if asked in (placement_group["GroupName"], placement_group["GroupId"])
        ]
        if not known:
            return _error(400, "InvalidPlacementGroup.Unknown", f"The Placement Group {asked} is unknown.")
        available = [group for group in known if group.get("State", "available") == "available"]
        return _Http(200), {"PlacementGroups": available}

    def _instance_status(self, body: Mapping[str, Any]) -> Any:
        return _page("InstanceStatuses", self.unwell, body)

    def _type_offerings(self, body: Mapping[str, Any]) -> Any:
        from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

        listed = INSTANCE_TYPE_OFFERINGS["availability-zone"][self.region]
        return _page("InstanceTypeOfferings", [o for o in listed if o["Location"] in self.zones], body)


def _product(name: str, price: float) -> str:
    """A document of GetProducts, as far as kerf reads it."""
    dimension = {"pricePerUnit": {"USD": str(price)}}
    terms = {"OnDemand": {"1": {"priceDimensions": {"1": dimension}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def _page(key: str, entries: list[Any], body: Mapping[str, Any]) -> tuple[_Http, dict[str, Any]]:
    start, size = int(body.get("NextToken") or 0), int(body.get("MaxResults") or 100)
    answer = {key: entries[start : start + size]}
    if start + size < len(entries):
        answer["NextToken"] = str(start + size)  # type: ignore[assignment]
    return _Http(200), answer


def _error(status: int, code: str, message: str) -> tuple[_Http, dict[str, Any]]:
    failure = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return _Http(status), failure


def _add_spot_requests(parsed: dict[str, Any], **_: Any) -> None:
    """Name the spot request of spot instances, which moto does not."""
    for reservation in parsed.get("Reservations", ()):
        for instance in reservation["Instances"]:
            if instance.get("InstanceLifecycle") == "spot":
                instance.setdefault("SpotInstanceRequestId", "sir-" + instance["InstanceId"].removeprefix("i-"))


def _field(request: Any, name: str) -> str:
    body = request.body.decode() if isinstance(request.body, bytes) else request.body
    return str(parse_qs(body).get(name, [""])[0])


def _backend(region: str) -> Any:
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT][region]


def _instances(region: str) -> dict[str, Any]:
    reservations = _backend(region).reservations.values()
    return {instance.id: instance for reservation in reservations for instance in reservation.instances}


def _session(region: str) -> boto3.Session:
    """A session that reads no file and no environment variable for who it is."""
    bare = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
    for file in ("config_file", "credentials_file"):
        bare.set_config_variable(file, os.devnull)
    return boto3.Session(
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name=region,
        botocore_session=bare,
    )
