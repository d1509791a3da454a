"""Valid documents and bytes, with a few things changed as somebody might who means harm."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

_DEEP: Any = "x"
for _ in range(300):
    _DEEP = [_DEEP]

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 0.5, -0.0, 1e-320, 1e308, "", " ",
    "0", "-1", "1e999", "9" * 5_000, "1" + "0" * 30, "NaN", "Infinity", "Never", "\x00", "\x1b]0;x\x07",
    "\u202e", "\ud7ff",
    "٣", "a" * 5_000, "a/b/c", "/", "%s{0}", "true", "null", "~", "*", "100%", "-5%", "1h", "999999999h", "-1s", "1Gi",
    "9999-12-31T23:59:59.999999999-23:59", "0001-01-01T00:00:00+23:59", "2026-02-30T00:00:00Z", "In", "Exists", "Gt",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"key": "a", "operator": "Gt", "values": ["x"]}, _DEEP,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, documents: Sequence[Any], most: int = 4) -> Any:
    """One of the documents, changed in up to `most` places."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, most))):
        places = list(_places(document))
        if not places:
            return copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        how = draw(st.sampled_from(["hostile", "other", "remove", "twice", "wrap", "add"]))
        if how == "hostile":
            container[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        elif how == "other":  # what stands elsewhere in the document: of a likely form, and in the wrong place
            elsewhere, other = places[draw(st.integers(0, len(places) - 1))]
            container[key] = copy.deepcopy(elsewhere[other])
        elif how == "remove":
            del container[key]
        elif how == "twice" and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif how == "wrap":
            container[key] = [container[key]]
        elif isinstance(container, dict):
            name = draw(st.sampled_from(["", "name", "values", "a" * 300, "\x00", "x-unknown"]))
            container[name] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document that holds a value: its container, and the key or index there."""
    containers = [document]
    while containers:
        container = containers.pop()
        if isinstance(container, dict):
            pairs = list(container.items())
        elif isinstance(container, list):
            pairs = list(enumerate(container))
        else:
            continue
        for key, value in pairs:
            yield container, key
            containers.append(value)


@st.composite
def damaged(draw: st.DrawFn, contents: Sequence[bytes]) -> bytes:
    """One of the contents, with bytes changed, removed, inserted or repeated in up to four places."""
    content = bytearray(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        how = draw(st.sampled_from(["change", "cut", "remove", "insert", "repeat"]))
        if how == "change":
            content[at : at + 1] = bytes([draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xC1, 0xDD, 0xFF, 0x22, 0x5B]))])
        elif how == "cut":
            del content[at:]
        elif how == "remove":
            del content[at : at + draw(st.integers(1, 64))]
        elif how == "insert":
            content[at:at] = draw(st.binary(min_size=1, max_size=8))
        else:
            content[at:at] = content[at : at + draw(st.integers(1, 200))] * draw(st.sampled_from([1, 3, 50]))
    return bytes(content)
