"""An AWS account on 127.0.0.1 that answers and forgets: canned answers in AWS's own protocols, in a process of its own.

Requests are read and answers written by the services' models (moto's parsers and serializers). No backend of moto
runs, and nothing is launched: an instance is an id. Answers that depend on nothing are written once.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from moto.core.parse import PROTOCOL_PARSERS, RequestDict
from moto.core.serialize import SERIALIZERS
from moto.core.utils import get_service_model
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from kerf.adapters.aws.ami_families import image_queries
from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.pricing import spot_model

REGION, VERSION, CLUSTER = "us-west-2", "1.34", "benchmark"
ZONES = tuple(f"{REGION}{letter}" for letter in "abcd")
TYPES = 800
ACCOUNT = "123456789012"
Parameters = dict[str, Any]
_SCOPE = re.compile(r"Credential=[^/]+/[0-9]+/[^/]+/([^/]+)/aws4_request")
_XML = "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors></Response>"
_CHANGING = ("CreateFleet", "DescribeInstances", "DescribeLaunchTemplates", "ReceiveMessage", "GetInstanceProfile")
"""Operations that are answered anew each time."""


class _Refused(Exception):
    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.status = status


class _KeptOpen(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: Any) -> None:
        return


class Account:
    """`calls` counts the operations asked for (dry runs as such), `arrived` says when each claim's CreateFleet came
    (seconds of the monotonic clock, which the machine's processes share)."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.arrived: dict[str, float] = {}
        self.messages: deque[str] = deque()
        self._lock = threading.Lock()
        self._written: dict[tuple[str, bytes], Response] = {}
        self._templates: set[str] = set()
        self._started = 0
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._types = _types()
        self._server = make_server("127.0.0.1", 0, self._served, threaded=True, request_handler=_KeptOpen)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "benchmark",
            "AWS_SECRET_ACCESS_KEY": "benchmark",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def warm(self) -> None:
        """Build the models of the services, so that no measured request waits for this side."""
        for service in ("ec2", "ssm", "iam", "sqs", "pricing"):
            get_service_model(service)

    def _served(self, environ: Any, start_response: Any) -> Any:
        arrived = time.monotonic()
        request = Request(environ)
        return self._answer(request, arrived)(environ, start_response)

    def _answer(self, request: Request, arrived: float) -> Response:
        scope = _SCOPE.search(request.headers.get("Authorization", ""))
        model = get_service_model(scope.group(1) if scope else "ec2")
        protocol, body = model.metadata["protocol"], request.get_data()
        target = request.headers.get("X-Amz-Target", "")
        name = target.rpartition(".")[2] if target else str(request.form["Action"])
        operation = model.operation_model(name)
        values = request.form
        dry = values.get("DryRun", "").lower() == "true"
        with self._lock:
            self.calls[f"{name} dry" if dry else name] += 1
        if dry:
            return _error("DryRunOperation", 412)
        if name == "CreateFleet":
            self._note(values, arrived)
        known = self._written.get((name, body))
        if known is not None:
            return Response(known.get_data(), known.status_code, dict(known.headers))
        if name == "CreateFleet":  # hundreds of overrides: reading them all would hold up the others
            parameters = {"Override": _first_override(values)}
        else:
            read = RequestDict(
                method=request.method, values=values, headers=request.headers, body=body, url_path=request.path,
                url_params={},
            )  # fmt: skip
            parameters = PROTOCOL_PARSERS[protocol](operation).parse(read)
        try:
            answer = self._answers(name)(parameters)
        except _Refused as refused:
            return _error(str(refused), refused.status)
        reply = SERIALIZERS[protocol](operation).serialize(answer)
        response = Response(reply["body"], reply["status_code"], dict(reply["headers"]))
        if name not in _CHANGING:
            self._written[name, body] = response
        return response

    def _note(self, values: Any, arrived: float) -> None:
        claims = {
            values[key.replace(".Key", ".Value")]
            for key in values
            if key.endswith(".Key") and values[key] == "karpenter.sh/nodeclaim"
        }
        self.arrived |= dict.fromkeys(claims, arrived)

    def _answers(self, name: str) -> Callable[[Parameters], dict[str, Any]]:
        method = "_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        found: Callable[[Parameters], dict[str, Any]] | None = getattr(self, method, None)
        if found is None:
            raise LookupError(f"this account does not know {name}")
        return found

    # ── EC2 ────────────────────────────────────────────────────────────────────────────────────────────────

    def _describe_instance_types(self, asked: Parameters) -> dict[str, Any]:
        return _page("InstanceTypes", self._types, asked)

    def _describe_instance_type_offerings(self, asked: Parameters) -> dict[str, Any]:
        listed = [
            {"InstanceType": kind["InstanceType"], "LocationType": "availability-zone", "Location": zone}
            for kind in self._types
            for zone in ZONES
        ]
        return _page("InstanceTypeOfferings", listed, asked)

    def _describe_spot_price_history(self, asked: Parameters) -> dict[str, Any]:
        prices, now = tables().prices, datetime.now(UTC)
        listed = [
            {"InstanceType": kind["InstanceType"], "AvailabilityZone": zone, "Timestamp": now,
             "SpotPrice": str(spot_model(prices[kind["InstanceType"]], kind["InstanceType"], zone))}
            for kind in self._types
            for zone in ZONES
        ]  # fmt: skip
        return _page("SpotPriceHistory", listed, asked)

    def _describe_subnets(self, asked: Parameters) -> dict[str, Any]:
        return {
            "Subnets": [
                {"SubnetId": f"subnet-{zone[-1]}", "AvailabilityZone": zone, "AvailabilityZoneId": f"usw2-az{number}",
                 "AvailableIpAddressCount": 8_000}
                for number, zone in enumerate(ZONES, 1)
            ]
        }  # fmt: skip

    def _describe_security_groups(self, asked: Parameters) -> dict[str, Any]:
        return {"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "nodes"}]}

    def _describe_images(self, asked: Parameters) -> dict[str, Any]:
        return {"Images": [_image(query.parameter) for query in image_queries("al2023@latest", VERSION)]}

    def _describe_launch_templates(self, asked: Parameters) -> dict[str, Any]:
        names = asked.get("LaunchTemplateNames") or ()
        if names and not self._templates.issuperset(names):
            raise _Refused("InvalidLaunchTemplateName.NotFoundException")
        return {"LaunchTemplates": [{"LaunchTemplateName": name} for name in names]}

    def _create_launch_template(self, asked: Parameters) -> dict[str, Any]:
        self._templates.add(asked["LaunchTemplateName"])
        return {"LaunchTemplate": {"LaunchTemplateName": asked["LaunchTemplateName"]}}

    def _delete_launch_template(self, asked: Parameters) -> dict[str, Any]:
        self._templates.discard(asked["LaunchTemplateName"])
        return {}

    def _create_fleet(self, asked: Parameters) -> dict[str, Any]:
        with self._lock:
            self._started += 1
            number = self._started
        override = asked["Override"]
        started = {
            "LaunchTemplateAndOverrides": {"Overrides": override},
            "InstanceIds": [f"i-{number:017}"],
            "InstanceType": override["InstanceType"],
        }
        return {"FleetId": f"fleet-{number}", "Instances": [started], "Errors": []}

    def _describe_instances(self, asked: Parameters) -> dict[str, Any]:
        found = [
            {"InstanceId": known, "State": {"Name": "running"}, "Tags": []} for known in asked.get("InstanceIds") or ()
        ]
        return {"Reservations": [{"Instances": found}] if found else []}

    def _describe_instance_status(self, asked: Parameters) -> dict[str, Any]:
        return {"InstanceStatuses": []}

    def _create_tags(self, asked: Parameters) -> dict[str, Any]:
        return {}

    def _terminate_instances(self, asked: Parameters) -> dict[str, Any]:
        ended = {"Name": "shutting-down", "Code": 32}
        return {
            "TerminatingInstances": [{"InstanceId": known, "CurrentState": ended} for known in asked["InstanceIds"]]
        }

    # ── the other services ─────────────────────────────────────────────────────────────────────────────────

    def _get_parameter(self, asked: Parameters) -> dict[str, Any]:
        return {"Parameter": {"Name": asked["Name"], "Value": _image(asked["Name"])["ImageId"]}}

    def _get_products(self, asked: Parameters) -> dict[str, Any]:
        wanted = {entry["Field"]: entry["Value"] for entry in asked["Filters"]}
        metal = "bare metal" in wanted["productFamily"]
        factor = 1.1 if wanted["tenancy"] == "Dedicated" and not metal else 1.0
        names = [kind["InstanceType"] for kind in self._types]
        documents = [_product(name, factor) for name in names if (".metal" in name) == metal]
        return _page("PriceList", documents, asked)

    def _get_instance_profile(self, asked: Parameters) -> dict[str, Any]:
        name = asked["InstanceProfileName"]
        role = {"Path": "/", "RoleName": "node", "RoleId": "AROA", "Arn": "arn", "CreateDate": datetime.now(UTC)}
        profile = {"Path": "/", "InstanceProfileName": name, "InstanceProfileId": "AIPA", "Arn": f"arn:{name}"}
        return {"InstanceProfile": {**profile, "CreateDate": datetime.now(UTC), "Roles": [role]}}

    def _list_instance_profiles(self, asked: Parameters) -> dict[str, Any]:
        return {"InstanceProfiles": [], "IsTruncated": False}

    def _get_queue_url(self, asked: Parameters) -> dict[str, Any]:
        return {"QueueUrl": f"{self.environment['AWS_ENDPOINT_URL']}/{ACCOUNT}/{asked['QueueName']}"}

    def _receive_message(self, asked: Parameters) -> dict[str, Any]:
        with self._lock:
            taken = [self.messages.popleft() for _ in range(min(asked["MaxNumberOfMessages"], len(self.messages)))]
            number = self.calls["ReceiveMessage"]
        if not taken:
            time.sleep(0.2)  # where the queue would be polled for long
        return {
            "Messages": [
                {"MessageId": f"{number}-{index}", "ReceiptHandle": f"{number}-{index}", "Body": body}
                for index, body in enumerate(taken)
            ]
        }

    def _delete_message_batch(self, asked: Parameters) -> dict[str, Any]:
        return {"Successful": [{"Id": entry["Id"]} for entry in asked["Entries"]], "Failed": []}


def _first_override(values: Any) -> dict[str, str]:
    start = next(key for key in values if ".Overrides.1." in key or ".Overrides.Overrides.1." in key).rpartition(".")[0]
    names = ("InstanceType", "SubnetId", "ImageId", "AvailabilityZone")
    return {name: values[f"{start}.{name}"] for name in names}


def _types() -> list[dict[str, Any]]:
    """The first 800 types, by name, of moto's copy of EC2's answers that have a price in kerf's table."""
    data = json.loads(gzip.decompress(files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()))
    return [data[name] for name in sorted(data) if name in tables().prices][:TYPES]


def _image(parameter: str) -> dict[str, Any]:
    number = sum(parameter.encode())
    arch = "arm64" if "arm64" in parameter else "x86_64"
    created = "2026-01-01T00:00:00.000Z"
    return {"ImageId": f"ami-{number:08x}", "Name": parameter, "Architecture": arch, "CreationDate": created}


def _product(name: str, factor: float) -> str:
    dimension = {"pricePerUnit": {"USD": str(tables().prices[name] * factor)}}
    terms = {"OnDemand": {"1": {"priceDimensions": {"1": dimension}}}}
    attributes = {"instanceType": name, "location": "US West (Oregon)", "operatingSystem": "Linux"}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


def _page(key: str, listed: list[Any], asked: Parameters) -> dict[str, Any]:
    start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 100)
    more = {"NextToken": str(start + size)} if start + size < len(listed) else {}
    return {key: listed[start : start + size], **more}


def _error(code: str, status: int) -> Response:
    return Response(_XML.format(code, code), status, content_type="text/xml")
