"""What botocore's service models say of AWS: which calls there are, what a request may hold, what an answer is made of.

botocore itself checks types and required members. Here enums, lengths, ranges, patterns and the names of filters count,
too: EC2 refuses a call for each of them. Imports botocore, nothing of kerf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel

SERVICES = ("ec2", "ssm", "iam", "sqs", "pricing", "eks", "arc-zonal-shift")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "structure": Mapping, "map": Mapping, "list": (list, tuple), "string": str, "boolean": bool, "integer": int,
    "long": int, "double": (int, float), "float": (int, float), "timestamp": (datetime, str), "blob": (bytes, str),
}  # fmt: skip
_ITEM, _CODE = re.compile(r"<li>(.*?)</li>", re.DOTALL), re.compile(r"<code>(.*?)</code>")
_LOOKED_AT = 20
"""How many entries of a long answer are looked at: they are all made alike."""
_AT = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def service_model(service: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


@cache
def operation_model(method: str) -> OperationModel:
    """The operation of a client's method, such as describe_images. No two services of kerf's share a name."""
    for service in SERVICES:
        model = service_model(service)
        for name in model.operation_names:
            if xform_name(name) == method:
                return model.operation_model(name)
    raise LookupError(f"no service has {method}")


def request_problems(method: str, parameters: Mapping[str, Any]) -> list[str]:
    """What AWS would find wrong with a request, by the model."""
    model = operation_model(method)
    if model.input_shape is None:
        return [f"{method} takes no parameters"] if parameters else []
    found = _problems(model.input_shape, parameters, "")
    return [*found, *(_filter_problems(model, parameters) if model.service_model.service_name == "ec2" else ())]


def answer_problems(method: str, answer: Mapping[str, Any], *, values: bool = True) -> list[str]:
    """What no answer of AWS to this call would have, by the model. Without `values` only members and types count: a
    value may be newer than the model."""
    shape = operation_model(method).output_shape
    told = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
    if shape is None:
        return [f".{name}" for name in told]
    return list(_problems(shape, told, "", first=_LOOKED_AT, values=values))


def whole(shape: Any, value: Any) -> Any:
    """A test's answer with the members added that AWS always gives."""
    if shape.type_name == "structure":
        given = {
            name: whole(shape.members[name], part) if name in shape.members else part for name, part in value.items()
        }
        return {name: _any(shape.members[name]) for name in shape.required_members} | given
    if shape.type_name == "list":
        return [whole(shape.member, entry) for entry in value]
    return value


def _any(shape: Any) -> Any:
    """Some value of a shape."""
    kind: str = shape.type_name
    match kind:
        case "structure":
            return whole(shape, {})
        case "list":
            return []
        case "map":
            return {}
        case "boolean":
            return False
        case "timestamp":
            return _AT
        case "string":
            some = (*shape.enum, "x" * shape.metadata.get("min", 1), "/", "arn:aws:iam::123456789012:x/y")
            return next(text for text in some if not list(_out_of_bounds(shape, text)))
        case _:
            return shape.metadata.get("min", 0)


def _problems(shape: Any, value: Any, where: str, *, first: int | None = None, values: bool = True) -> Iterator[str]:
    kind: str = shape.type_name
    wanted: Any = _KINDS[kind]
    if shape.name == "policyDocumentType" and isinstance(value, Mapping):
        return  # botocore reads these documents itself
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        yield f"{where}: {type(value).__name__} in place of {kind}"
        return
    if values:
        yield from (f"{where}: {problem}" for problem in _out_of_bounds(shape, value))
    inside = partial(_problems, first=first, values=values)
    if kind == "structure":
        yield from (f"{where}.{name}: is missing" for name in shape.required_members if name not in value)
        for name, part in value.items():
            if name in shape.members:
                yield from inside(shape.members[name], part, f"{where}.{name}")
            else:
                yield f"{where}.{name}: there is no such member"
    elif kind == "list":
        for index, entry in enumerate(value[:first]):
            yield from inside(shape.member, entry, f"{where}[{index}]")
    elif kind == "map":
        for key, part in value.items():
            yield from inside(shape.key, key, f"{where} key")
            yield from inside(shape.value, part, f"{where}[{key}]")


def _out_of_bounds(shape: Any, value: Any) -> Iterator[str]:
    limits = shape.metadata
    if (enum := limits.get("enum")) and value not in enum:
        yield f"{value!r} is none of {', '.join(enum[:8])}"
    sized = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if sized is None and shape.type_name in ("string", "list", "map", "blob"):
        sized = len(value)
    if sized is not None and not limits.get("min", sized) <= sized <= limits.get("max", sized):
        yield f"{sized} is not between {limits.get('min', '')} and {limits.get('max', '')}"
    pattern = limits.get("pattern")
    if pattern and isinstance(value, str) and not re.search(rf"^(?:{_python(pattern)})$", value):
        yield f"{value!r} does not match {pattern}"


def _python(pattern: str) -> str:
    """A pattern of the model as Python has it: it names some classes of characters as Java does."""
    return pattern.replace("\\p{L}", "\\w").replace("\\p{Z}", "\\s").replace("\\p{N}", "\\d")


def _filter_problems(model: OperationModel, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Filters that EC2 does not know, or whose values it does not. Only the documentation of `Filters` names them; it
    leaves out that most things can be found by their tags."""
    known = _filters(model.name)
    for wanted in parameters.get("Filters", ()):
        name = wanted["Name"]
        values = known.get(name)
        if values is None and not name.startswith("tag"):
            yield f".Filters: {model.name} has no filter {name}"
        if values and (other := [value for value in wanted["Values"] if value not in values]):
            yield f".Filters.{name}: {', '.join(other)} is none of {', '.join(sorted(values))}"
        if not 0 < len(wanted["Values"]) <= 200:
            yield f".Filters.{name}: {len(wanted['Values'])} values; EC2 takes 1 to 200"


@cache
def _filters(operation: str) -> dict[str, frozenset[str]]:
    """The filters of an operation, with their values where EC2 lists them all."""
    shape = service_model("ec2").operation_model(operation).input_shape
    assert shape is not None
    if "Filters" not in shape.members:
        return {}
    found = {}
    for item in _ITEM.findall(shape.members["Filters"].documentation):
        name, *values = (code.replace("&lt;", "<").replace("&gt;", ">") for code in _CODE.findall(item))
        listed = " | " in re.sub(r"</?code>", "", item)
        found[name] = frozenset(values) if listed else frozenset()
    return found
