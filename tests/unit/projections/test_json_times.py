"""Times in JSON stand as RFC 3339 beside the number."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kerf.projections.json_times import with_times

NOON = 1_767_268_800_000


class Part(Struct):
    since: int
    due: int = 0


class Whole(Struct):
    at: int
    position: int
    parts: tuple[Part, ...]
    unavailable: dict[str, int]
    started: bool = True


def test_each_time_has_its_text_beside_it() -> None:
    told = with_times(Whole(NOON, 2_000_000_000_000, (Part(NOON), Part(90_000, NOON)), {"spot|m5.large|z1": NOON}))
    text = "2026-01-01T12:00:00.000Z"
    assert told["at_time"] == text
    assert told["parts"] == [
        {"since": NOON, "since_time": text, "due": 0},
        {"since": 90_000, "due": NOON, "due_time": text},
    ]
    assert told["unavailable_time"] == {"spot|m5.large|z1": text}
    assert not {"position_time", "started_time"} & told.keys(), "a position is no time, and neither is a flag"


class Amount(Struct, frozen=True):
    asked: int


class Said(Struct, omit_defaults=True):
    code: str
    params: dict[str, int] = {}


class Answer(Struct):
    amounts: dict[str, Amount]
    said: list[Said]
    any: Any


def test_what_has_no_times_is_left_to_the_encoder_and_reads_the_same() -> None:
    answer = Answer({"cpu": Amount(NOON)}, [Said("late", {"since": NOON}), Said("fine")], (Part(NOON), Amount(1)))
    told = with_times(answer)
    assert told["amounts"]["cpu"] is answer.amounts["cpu"]
    text = "2026-01-01T12:00:00.000Z"
    assert msgspec.json.decode(msgspec.json.encode(told)) == {
        "amounts": {"cpu": {"asked": NOON}},
        "said": [{"code": "late", "params": {"since": NOON, "since_time": text}}, {"code": "fine"}],
        "any": [{"since": NOON, "since_time": text, "due": 0}, {"asked": 1}],
    }
