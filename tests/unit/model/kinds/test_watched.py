"""The watched kinds and what cannot be derived from them agree."""

from __future__ import annotations

import typing

import pytest

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.state.objects.kept import keeping
from kerf.engine.state.objects.rules import object_rules
from kerf.engine.state.state import Facts

KEPT = [kind for kind in WATCHED if kind.facts]


@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.name)
def test_the_state_has_the_field_that_a_kind_names(kind: WatchedKind) -> None:
    assert typing.get_type_hints(Facts)[kind.facts] == dict[str, kind.struct]  # type: ignore[name-defined]


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.name)
def test_objects_have_the_key_and_the_digest_that_a_kind_names(kind: WatchedKind) -> None:
    assert hasattr(kind.struct, kind.key)
    assert not kind.digest_field or kind.digest_field in kind.struct.__struct_fields__
    assert ("namespace" in kind.struct.__struct_fields__) == kind.namespaced


def test_names_apis_and_fields_are_unique() -> None:
    names = [kind.name for kind in WATCHED]
    apis = [served.api for kind in WATCHED for served in kind.served]
    fields = [kind.facts for kind in KEPT]
    assert all(len(set(column)) == len(column) for column in (names, apis, fields))


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.name)
def test_a_kind_that_no_plan_is_said_to_look_at_has_rules_of_its_own(kind: WatchedKind) -> None:
    own = object_rules()[kind.name].seen.__qualname__ != keeping(kind).seen.__qualname__
    assert own or kind.planned_with is not None
