"""Names in reasons and under keys of labels: they have the pseudonyms of the objects, and what is public stays."""

from __future__ import annotations

import pytest

from kerf.adapters.store.pseudonyms.reasons import params
from kerf.adapters.store.pseudonyms.record import Pseudonyms
from kerf.adapters.store.pseudonyms.replacements import key_map
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.labels import ALIASES
from kerf.engine.record.observations import (
    Observation,
)
from tests.support.world import World


@pytest.mark.parametrize(
    ("key", "kind"),
    [("karpenter.sh/nodepool", "nodepool"), ("karpenter.k8s.aws/ec2nodeclass", "nodeclass"),
     ("karpenter.kwok.sh/kwoknodeclass", "nodeclass"),
     ("kubernetes.io/hostname", "node"), ("acme.example/tier", "value")],
)  # fmt: skip
def test_a_value_in_a_reason_gets_the_pseudonym_that_it_has_under_its_key(key: str, kind: str) -> None:
    """All sorts of things have the same name here: deciding again writes the one that stands under the key."""
    names = Pseudonyms(b"s")
    said = {"incoming": [f"{key} In [acme zeta and 2 others]", f"acme.example/tier=acme:NoSchedule, {key} Exists"]}
    for gathered in ("nodepool", "nodeclass", "node", "value", "pod"):
        names.name(gathered, "acme")
    params(said, names)
    names.settle()
    label, custom = key_map({key: ("acme", "zeta")}, names), key_map({"acme.example/tier": "acme"}, names)
    ((shown, values),), ((taint, value),) = label.items(), custom.items()
    assert params(said, names) == {
        "incoming": [
            f"{shown} In [{values[0]} {values[1]} and 2 others]",
            f"{taint}={value}:NoSchedule, {shown} Exists",
        ]
    }
    assert kind in values[0]


def test_labels_of_kwok_are_as_public_as_those_of_ec2() -> None:
    """Else a bundle diverges: a node has to carry its NodeClass's name (L-242), and well-known keys deny nothing."""
    names = Pseudonyms(b"s")
    node_class, family = "karpenter.kwok.sh/kwoknodeclass", "karpenter.kwok.sh/instance-family"
    key_map({node_class: "acme", family: "c"}, names)
    names.settle()
    assert key_map({node_class: "acme", family: "c"}, names) == {
        node_class: names.name("nodeclass", "acme"),
        family: "c",
    }


def test_the_annotations_that_kerf_gives_claims_keep_their_keys() -> None:
    """Else a launch would be decided otherwise, with the real keys."""
    world = World(node_overlays=True)
    world.prepare()
    world.see(Observation(NodeOverlay("cheap", price=0.01)), Observation(NodeOverlay("fuse", capacity={"a.io/b": 8})))
    world.pending("a")
    world.after(1_000)
    (claim,) = world.runtime.state.facts.claims.values()
    assert {"karpenter.sh/price-overlay-applied", "karpenter.sh/capacity-overlay-applied"} <= claim.annotations.keys()
    names = Pseudonyms(b"s")
    key_map(claim.annotations, names)
    names.settle()
    assert key_map(claim.annotations, names).keys() == claim.annotations.keys()


def test_a_budget_and_a_pod_in_a_reason_have_the_pseudonyms_of_the_objects() -> None:
    """Though a label has the value that the PodDisruptionBudget and the pod are named by."""
    names = Pseudonyms(b"s")
    said = {"pod": "shop/web", "budgets": ["shop/web"]}
    params(said, names)
    names.name("value", "web")
    names.settle()
    namespace = names.name("namespace", "shop")
    shown = {"pod": f"{namespace}/{names.name('pod', 'web')}", "budgets": [f"{namespace}/{names.name('pdb', 'web')}"]}
    assert params(said, names) == shown


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_s5_a_key_that_is_read_as_another_stays(alias: str) -> None:
    """A volume's zone stands under its driver's key."""
    names = Pseudonyms(b"s")
    names.settle()
    assert key_map({alias: "us-west-2a"}, names) == {alias: "us-west-2a"}


def test_a_well_known_value_in_a_reason_stays_though_a_label_of_ones_own_has_it_too() -> None:
    names = Pseudonyms(b"s")
    names.name("value", "amd64")
    names.settle()
    assert params({"here": "kubernetes.io/arch In [amd64]"}, names) == {"here": "kubernetes.io/arch In [amd64]"}


def test_a_resource_in_a_reason_stays_though_an_app_is_called_like_its_last_word() -> None:
    """As in requests: decided again, the reason names the resource that the pod asks for."""
    names = Pseudonyms(b"s")
    names.name("value", "gpu")
    names.settle()
    assert params({"resources": ["nvidia.com/gpu"]}, names) == {"resources": ["nvidia.com/gpu"]}
    assert params({"said": "gpu"}, names) != {"said": "gpu"}


def test_a_public_label_in_a_reason_stays_though_an_app_is_called_like_its_last_word() -> None:
    names = Pseudonyms(b"s")
    names.name("value", "zone")
    said = {
        "key": "topology.kubernetes.io/zone",
        "keys": ["topology.kubernetes.io/zone", "node.kubernetes.io/not-ready"],
    }
    own = {"key": "zone", "keys": ["zone"]}
    params(own, names)
    names.settle()
    assert params(said, names) == said
    assert params(own, names) == {"key": names.name("key", "zone"), "keys": [names.name("key", "zone")]}


def test_words_of_kerf_s_own_stay_though_a_label_has_them_as_its_value() -> None:
    """Else deciding again writes the word: a pod of `app: spread` made every pass without a place differ."""
    names = Pseudonyms(b"s")
    for word in ("spread", "no", "empty", "is"):
        names.name("value", word)
    names.name("volume", "pv-1"), names.name("storage-class", "fast")
    names.name("node", "n-1"), names.name("node", "n-2")
    names.settle()
    assert params({"rule": "spread"}, names, "topology") == {"rule": "spread"}
    assert params({"why": "empty"}, names, "churn") == {"why": "empty"}
    for problem, shown in (
        ("there is no such claim", "there is no such claim"),
        ("volume pv-1 is gone", f"volume {names.name('volume', 'pv-1')} is gone"),
        (
            "volume pv-1 is on node n-1 or n-2, which is gone",
            f"volume {names.name('volume', 'pv-1')} is on node {names.name('node', 'n-1')} or "
            f"{names.name('node', 'n-2')}, which is gone",
        ),
        ("there is no storage class fast", f"there is no storage class {names.name('storage-class', 'fast')}"),
    ):
        assert params({"problem": problem}, names, "volume") == {"problem": shown}


def test_l193_a_deleted_node_is_no_user() -> None:
    names = Pseudonyms(b"s")
    names.settle()
    assert params({"detail": "node deleted"}, names, "deleted") == {"detail": "node deleted"}
