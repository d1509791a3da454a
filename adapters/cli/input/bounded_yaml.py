"""One YAML or JSON document from a stranger: its size and depth, and what its aliases may add, are bounded.

libyaml composes by recursion, and a document of 40,000 levels ends the process. So its events are counted first, which
takes a seventh of the time that reading takes.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from contextlib import suppress
from errno import EFBIG
from math import isfinite, nan
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kerf.engine.record.errors import UNDECODABLE

MAX_FILE = 256 << 20
"""Bytes of a file. As text they take as much again."""
MAX_VALUES = 1_000_000
"""Values, and beginnings and ends of lists and objects, of one YAML document. Each takes some 500 bytes and 10 µs."""
MAX_DEPTH = 500
"""Levels of lists and objects in a document. Kubernetes' own objects have some twenty."""
MAX_ALIASED = 1_000_000
"""Characters that aliases may add to a document when they are written out. Each value counts as one more."""


def read_bounded(file: Path) -> bytes:
    """Read a file, a pipe or a device. Raises OSError, also for one of more than `MAX_FILE` bytes."""
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise OSError(EFBIG, f"it has more than {MAX_FILE >> 20} MB")
    return data


class NotFinite(yaml.constructor.ConstructorError):
    """A number that JSON, and so Kubernetes' API, cannot hold: `.nan`, `.inf`, and NaN or Infinity in JSON."""

    def __init__(self, document: Any, mark: yaml.Mark | None = None) -> None:
        self.path, number = next(_not_finite(document), ("", nan))
        super().__init__(problem=f"{self.path}: expected a number that JSON has, got {number}", problem_mark=mark)


def read_document(file: Path) -> Any:
    """Read a file of one document. Raises OSError, YAMLError, ValueError or RecursionError."""
    return read_yaml(read_bounded(file).decode("utf-8-sig"))


def read_yaml(text: str) -> Any:
    """Read one document. None for an empty one. Raises YAMLError, ValueError or RecursionError."""
    if text[:1] in ("{", "["):
        try:
            document = msgspec.json.decode(text)
        except UNDECODABLE:
            _check_json(text)  # YAML in flow style begins like JSON
        else:
            _check_depth(document)
            return document
    _check_events(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        sizes: dict[int, tuple[int, int]] = {}
        if _written_out(node, sizes) > sum(own for own, _ in sizes.values()) + MAX_ALIASED:
            raise yaml.composer.ComposerError(problem=f"aliases stand for more than {MAX_ALIASED:,} characters")
        document = loader.construct_document(node)
        if loader.not_finite is not None:
            raise NotFinite(document, loader.not_finite.start_mark)
        return document
    finally:
        loader.dispose()


def _check_events(text: str) -> None:
    """Raise ComposerError for a document that is too deep, or has too many values."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if number > MAX_VALUES:
            raise yaml.composer.ComposerError(problem=f"the document has more than {MAX_VALUES:,} values ({_HOW})")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise yaml.composer.ComposerError(problem=_TOO_DEEP)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


_HOW = "write it as JSON, or as several documents"
_TOO_DEEP = f"the document is more than {MAX_DEPTH} levels deep"


def _check_json(text: str) -> None:
    """Raise NotFinite for JSON that has NaN, Infinity or 1e999. YAML takes them for texts."""
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        if any(_not_finite(document)):
            raise NotFinite(document)


def _not_finite(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """The paths of numbers that are none, or have no end."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _not_finite(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _not_finite(part, f"{path}[{index}]")
    elif isinstance(value, float) and not isfinite(value):
        yield path, value


def _check_depth(document: Any) -> None:
    """Raise ComposerError for a decoded document that is too deep."""
    collections = [document] if isinstance(document, dict | list) else []
    for _ in range(MAX_DEPTH):
        parts = (found.values() if isinstance(found, dict) else found for found in collections)
        collections = [part for values in parts for part in values if isinstance(part, dict | list)]
    if collections:
        raise yaml.composer.ComposerError(problem=_TOO_DEEP)


def _written_out(node: yaml.Node, sizes: dict[int, tuple[int, int]]) -> int:
    """How many characters a node has with its aliases written out. `sizes` has for each node under it (by identity)
    its own characters and those with all below it."""
    known = sizes.get(id(node))
    if known is not None:
        if not known[1]:
            raise yaml.composer.ComposerError(problem="an alias stands within what it stands for")
        return known[1]
    own = 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
    sizes[id(node)] = own, 0  # begun
    parts = node.value if isinstance(node, yaml.CollectionNode) else ()
    pairs = isinstance(node, yaml.MappingNode)
    inner = (child for part in parts for child in (part if pairs else (part,)))
    size = own + sum(_written_out(child, sizes) for child in inner)
    sizes[id(node)] = own, size
    return size


class _Loader(yaml.CSafeLoader):
    """YAML, but a key that stands twice in a mapping is a mistake, and not a way to say the last one."""

    not_finite: yaml.Node | None = None
    """The first number that is none, or has no end."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # PyYAML's own form
        """Raises ConstructorError also for a tag that does not suit its value, for which PyYAML has no error."""
        try:
            return super().construct_object(node, deep)
        except _UNSUITED as error:
            problem = f"the value cannot be read as {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error


_UNSUITED = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError)
"""What PyYAML raises for `!!bool maybe`, `!!int ""`, `!!timestamp x`, `!!map [a]` and 2001-99-99."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                problem=f"the key {key.value!r} stands there twice", problem_mark=key.start_mark
            )
        seen.add(key.value)
    mapping: dict[Hashable, Any] = loader.construct_mapping(node, deep=True)
    return {_written_key(key): value for key, value in mapping.items()}


def _written_key(key: Hashable) -> Hashable:
    """A key as Kubernetes takes it: YAML reads `on`, `off`, `yes` and `no` as true and false, and JSON's keys are
    texts."""
    return str(key).lower() if isinstance(key, bool) else key


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = loader.construct_yaml_float(node)
    if not isfinite(number) and loader.not_finite is None:
        loader.not_finite = node
    return number


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
