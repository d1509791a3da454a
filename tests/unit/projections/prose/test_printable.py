"""What is printed cannot steer a terminal."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from kerf.projections.prose.printable import printable, printable_json

INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_escapes_stand_for_what_steers_a_terminal() -> None:
    assert printable("a\x1b[31mb\x9b2Jc\u202ed\u2066e\x07\r") == r"a\x1b[31mb\x9b2Jc\u202ed\u2066e\x07\x0d"
    assert printable("line 1\n\tline 2 · naïve — “日本”") == "line 1\n\tline 2 · naïve — “日本”"
    assert printable("\U000e0001") == r"\U000e0001"


def test_json_keeps_its_meaning() -> None:
    document = {"na\u202eme": "x\x9b1mя\U000e0001\x1b"}
    text = printable_json(json.dumps(document, ensure_ascii=False))
    assert text == '{"na\\u202eme": "x\\u009b1mя\\udb40\\udc01\\u001b"}'
    assert json.loads(text) == document


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    assert not [each for each in printable(text) if each not in "\n\t" and unicodedata.category(each) in INVISIBLE]


@given(st.dictionaries(st.text(), st.text()))
def test_any_json_reads_the_same_and_shows_nothing_invisible(document: dict[str, str]) -> None:
    text = printable_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(text) == document
    assert not [each for each in text if each != "\n" and unicodedata.category(each) in INVISIBLE]
