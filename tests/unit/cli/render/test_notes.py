"""Notes are sentences, each of them (the list of the conversion is closed)."""

from __future__ import annotations

import pytest

from kerf.adapters.cli.render.notes import SIMULATED, note_sentence
from kerf.engine.model import mistyped
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.reasons import Reason


def test_a_note_of_the_conversion_is_a_sentence() -> None:
    note = Reason("v1beta1-alias", {"family": "AL2", "alias": "al2@latest"})
    assert note_sentence(note) == "amiFamily AL2 without terms became the alias al2@latest"
    changed = Reason("v1beta1-ubuntu", {"changed": ["amiFamily", "blockDeviceMappings"]})
    assert note_sentence(changed).endswith("changed were amiFamily, blockDeviceMappings")


def test_a_kubelet_that_moved_from_a_pool_says_that_a_simulation_leaves_it_out() -> None:
    """A kubelet that moved from a pool says that a simulation leaves it out (L-131)."""
    note = Reason("v1beta1-kubelet-on-pool", {"annotation": v1beta1.KUBELET_CONVERSION})
    assert "not applied in a simulation" in note_sentence(note)


@pytest.mark.parametrize("code", sorted({*v1beta1.NOTES, *mistyped.NOTES, *SIMULATED}))
def test_every_note_has_a_sentence(code: str) -> None:
    names = "group kind annotation family alias changed value gate near field path given key known scheduler actions"
    params = dict.fromkeys(names.split(), "what was found")
    words = note_sentence(Reason(code, dict(params)))
    assert code not in words
    assert "{" not in words
