"""The built-in instance types, and files of one's own."""

from __future__ import annotations

import json

import pytest

from kerf.adapters.kwok.catalogue import built_in, read_catalogue
from kerf.adapters.kwok.errors import CatalogueRefused
from kerf.engine.model import labels
from kerf.engine.model.kubernetes.devices import AttributeBinding, Device

TYPES = {instance_type.name: instance_type for instance_type in built_in().types}


def test_there_are_144_types_in_the_reference_s_order() -> None:
    """There are 144 types in the reference's order (L-467)."""
    names = list(TYPES)
    assert len(names) == 144
    assert names[:5] == [
        "c-1x-amd64-linux", "c-1x-arm64-linux", "c-1x-amd64-windows", "c-1x-arm64-windows", "s-1x-amd64-linux",
    ]  # fmt: skip
    assert names[-1] == "m-256x-arm64-windows"


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        ("c-1x-amd64-linux", 0.027147483648, 0.0190032385536),
        ("s-4x-arm64-linux", 0.117179869184, 0.0820259084288),
        ("m-256x-amd64-windows", 8.599023255552, 6.0193162788864),
    ],
)
def test_prices_follow_the_formula(name: str, on_demand: float, spot: float) -> None:
    """L-468: eight offerings, spot before on-demand in each zone."""
    offerings = TYPES[name].offerings
    zones = [f"test-zone-{letter}" for letter in "abcd" for _ in range(2)]
    assert [(o.zone, o.capacity_type) for o in offerings] == list(zip(zones, ["spot", "on-demand"] * 4, strict=True))
    assert [o.price for o in offerings] == pytest.approx([spot, on_demand] * 4)


def test_what_a_node_of_a_type_can_take() -> None:
    """What a type has to give to pods is its capacity less the overhead (L-467, L-470)."""
    allocatable = TYPES["s-4x-amd64-linux"].allocatable()
    assert allocatable == {
        "cpu": 3900,
        "memory": (16 << 30) - (10 << 20),
        "pods": 64,
        "ephemeral-storage": 20 << 30,
    }
    assert TYPES["m-256x-amd64-linux"].capacity["pods"] == 1024


def test_a_file_replaces_the_list_with_names_of_fields_in_any_case() -> None:
    """A file replaces the list with names of fields in any case (L-466, L-469)."""
    offering = {
        "Price": 0.1,
        "Available": False,
        "Requirements": [
            {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot"]},
            {"key": labels.ZONE, "operator": "In", "values": ["z1"]},
        ],
    }
    item = {
        "name": "m5.large",
        "architecture": "amd64",
        "operatingSystems": ["linux", "windows"],
        "resources": {"cpu": "2", "memory": "8Gi"},
        "offerings": [offering],
    }
    catalogue = read_catalogue(json.dumps([item, {**item, "name": "old", "offerings": [{"price": 1}]}]).encode(), "f")
    kind, old = catalogue.types
    assert kind.capacity == {"cpu": 2000, "memory": 8 << 30, "pods": 110}
    assert [(o.zone, o.capacity_type, o.price, o.available) for o in kind.offerings] == [("z1", "spot", 0.1, True)]
    assert kind.requirements["karpenter.kwok.sh/instance-size"] == ("large",)
    assert kind.requirements["karpenter.kwok.sh/instance-family"] == ("m5",)
    assert kind.requirements[labels.OS] == ("linux", "windows")
    assert [(o.zone, o.capacity_type) for o in old.offerings] == [("", "")]


def test_s196_a_file_says_what_the_nodes_of_a_type_will_publish() -> None:
    device = {"name": "gpu-0", "attributes": {"model": {"string": "a"}}}
    spec = {"driver": "d.io", "pool": {"name": "gpus", "resourceSliceCount": 1}, "devices": [device]}
    bound = {"attribute": "r.io/root", "devices": [{"driver": "d.io", "pool": "gpus", "device": "gpu-0"}]}
    item = {"name": "a", "resources": {"cpu": "2"}, "resourceSlices": [spec], "attributeBindings": [bound]}
    ((kind),) = read_catalogue(json.dumps([item]).encode(), "f").types
    ((template),) = kind.slices
    assert (template.driver, template.pool, template.devices) == (
        "d.io",
        "gpus",
        (Device("gpu-0", {"d.io/model": "a"}),),
    )
    assert kind.bindings == (AttributeBinding("r.io/root", (("d.io", "gpus", "gpu-0"),)),)
    with pytest.raises(CatalogueRefused, match=r"f\[0\]"):
        read_catalogue(json.dumps([{**item, "attributeBindings": [{"attribute": "x"}]}]).encode(), "f")


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"a": 1}',
        b'[{"architecture": "amd64"}]',
        b'[{"name": "a", "resources": 3}]',
        b'[{"\x80": 1}]',
        b'[{"a":' * 9999,
    ],
)
def test_a_file_that_cannot_be_read_says_where(data: bytes) -> None:
    """A file that cannot be read says where (L-471)."""
    with pytest.raises(CatalogueRefused, match=r"KERF352.*types\.json"):
        read_catalogue(data, "types.json")


def test_a_type_that_lacks_something_is_refused_with_its_name() -> None:
    with pytest.raises(CatalogueRefused, match=r"an instance type without resources \[types\.json\[0\]\]"):
        read_catalogue(b'[{"name": "m5.large"}]', "types.json")


@pytest.mark.parametrize("name", ["size", "family", "cpu", "memory"])
def test_l469_the_types_own_labels_may_be_asked_for_and_others_of_the_domain_may_not(name: str) -> None:
    assert f"karpenter.kwok.sh/instance-{name}" in labels.WELL_KNOWN
    assert not labels.is_restricted(f"karpenter.kwok.sh/instance-{name}")
    assert labels.is_restricted("karpenter.kwok.sh/nodeclaim")
