"""Names that the record does not know are refused with the names most like them."""

from __future__ import annotations

import pytest

from kerf.replay.errors import SubjectUnknown
from kerf.replay.explain.claim import explain_claim, explain_node
from kerf.replay.explain.pod import explain_pod
from kerf.replay.history.story import story
from kerf.replay.subject_names import kind_of, similar_names, with_canonical_kind
from tests.support.lives import claim_of, in_service


def test_the_most_alike_come_first_then_those_that_hold_it() -> None:
    known = ["shop/web-1", "shop/web-2", "shop/database", "other/web-1"]
    assert similar_names("shop/web-3", known) == ("shop/web-2", "shop/web-1")
    assert similar_names("web-1", known) == ("shop/web-1", "other/web-1")
    assert similar_names("data", known) == ("shop/database",)
    assert similar_names("nothing-like-it", known) == ()
    assert similar_names("", known) == ()


def test_each_question_names_what_was_probably_meant() -> None:
    world = in_service()
    claim = claim_of(world).name
    with pytest.raises(SubjectUnknown, match=f"KERF203.*Is it {claim}"):
        explain_claim(world.store, claim + "x")
    with pytest.raises(SubjectUnknown, match=r"KERF203.*Is it default/"):
        explain_pod(world.store, "default/aa")
    with pytest.raises(SubjectUnknown, match=r"KERF203.*Is it n1"):
        explain_node(world.store, "n11")
    with pytest.raises(SubjectUnknown, match=f"KERF203.*Is it .*{claim}"):
        story(world.store, claim[:-1])
    with pytest.raises(SubjectUnknown, match="kerf log RECORD lists what there is"):
        explain_node(world.store, "zzzzzz")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("pod", "pod"), ("Pods", "pod"), ("po", "pod"), ("no", "node"), ("nodes", "node"), ("nodeclaims", "nodeclaim"),
        ("nodeclaim.karpenter.sh", "nodeclaim"), ("nodeclaims.v1.karpenter.sh", "nodeclaim"), ("decisions", "decision"),
        ("nodeclaim.example.com", ""), ("node.karpenter.sh", ""), ("planet", ""), ("", ""),
    ],
)  # fmt: skip
def test_kinds_have_plurals_short_names_and_groups(word: str, kind: str) -> None:
    assert kind_of(word) == kind


def test_a_name_without_a_kind_is_left_as_it_is() -> None:
    assert with_canonical_kind("po/shop/web-1") == "pod/shop/web-1"
    assert with_canonical_kind("shop/web-1") == "shop/web-1"
    assert with_canonical_kind("node/") == "node/"
    assert with_canonical_kind("nodes") == "nodes"


@pytest.mark.parametrize("slip", ["shop/web-0123x4", "shop/wbe-01234", "shpo/web-01234"])
def test_of_very_many_names_one_is_found_whose_begin_or_end_is_right(slip: str) -> None:
    """To compare 200,000 names letter by letter takes seconds."""
    known = [f"shop/web-{number:05}" for number in range(20_000)] + [f"zoo/{number}" for number in range(20_000)]
    assert "shop/web-01234" in similar_names(slip, known)
