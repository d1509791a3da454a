"""ResourceSlices, ResourceClaims, DeviceClasses, and what pods say of claims (S-195…S-201)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.kubernetes.devices import (
    ALL,
    AllocatedDevice,
    Allocation,
    Capacity,
    CounterUse,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ValidRange,
    Version,
    made_from_templates,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Pod, PodShape, Taint, Toleration
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.violations import ManifestError

TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
TERM = NodeTerm((Expression("zone", "In", ("a",)),))


def read(kind: str, name: str = "x", metadata: dict[str, Any] | None = None, **parts: Any) -> Any:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **(metadata or {})}}
    return decode_object({**head, **parts}).object


def test_a_slice() -> None:
    device = {
        "name": "g0",
        "attributes": {
            "model": {"string": "A"},
            "other.io/ok": {"bool": False},
            "n": {"int": 0},
            "v": {"version": "1.0.0"},
        },
        "capacity": {
            "memory": {
                "value": "1Ki",
                "requestPolicy": {"default": "1", "validRange": {"min": "500m", "max": "2", "step": "1"}},
            },
            "cores": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["4", "1"]}},
        },
        "consumesCounters": [{"counterSet": "c", "counters": {"slices": {"value": "2"}}}],
        "allowMultipleAllocations": True,
    }
    tainted = {"name": "g1", "taints": [{"key": "t", "effect": "NoSchedule"}]}
    elsewhere = {"name": "g2", "nodeName": "n"}
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    found = read(
        "ResourceSlice",
        metadata={"ownerReferences": [owner]},
        spec={
            "driver": "d.io",
            "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
            "nodeSelector": TERMS,
            "devices": [device, tainted, elsewhere],
            "sharedCounters": [{"name": "c", "counters": {"slices": {"value": "7"}}}],
        },
    )
    g0 = Device(
        "g0",
        {"d.io/model": "A", "d.io/n": 0, "d.io/v": Version("1.0.0"), "other.io/ok": False},
        {
            "d.io/cores": Capacity(4000, 1000, (1000, 4000)),
            "d.io/memory": Capacity(1024_000, 1000, (), ValidRange(500, 2000, 1000)),
        },
        (CounterUse("c", {"slices": 2000}),),
        shared=True,
    )
    devices = (g0, Device("g1", taints=(Taint("t", "NoSchedule"),)), Device("g2", node="n"))
    counters = (CounterUse("c", {"slices": 7000}),)
    assert found == ResourceSlice("x", "d.io", "p", 3, 2, terms=(TERM,), owner="n", devices=devices, counters=counters)


def test_a_class_and_a_claim() -> None:
    selectors = [{"cel": {"expression": "true"}}]
    assert read("DeviceClass", spec={"selectors": selectors}) == DeviceClass("x", ("true",))
    exactly = {
        "deviceClassName": "gpu", "selectors": selectors, "allocationMode": "All",
        "capacity": {"requests": {"d.io/memory": "1Gi"}},
    }  # fmt: skip
    either = [{"name": "a", "deviceClassName": "gpu", "count": 2}, {"name": "b", "deviceClassName": "old"}]
    results = [
        {"request": "r", "driver": "d.io", "pool": "p", "device": "g0", "consumedCapacity": {"d.io/memory": "1"}},
        {"request": "r", "driver": "d.io", "pool": "p", "device": "g1", "adminAccess": True},
    ]
    found = read(
        "ResourceClaim",
        spec={
            "devices": {
                "requests": [
                    {"name": "r", "exactly": exactly},
                    {"name": "s", "firstAvailable": either},
                    {"name": "t", "exactly": {"deviceClassName": "gpu", "adminAccess": True}},
                    {"name": "u"},
                ],
                "constraints": [{"requests": ["r"], "matchAttribute": "d.io/numa"}, {"distinctAttribute": "d.io/x"}],
            }
        },
        status={
            "allocation": {"devices": {"results": results}, "nodeSelector": TERMS},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}, {"resource": "others", "uid": "v"}],
        },
    )
    assert found == ResourceClaim(
        "default",
        "x",
        (
            DeviceRequest("r", "gpu", ("true",), ALL, capacity={"d.io/memory": 2**30 * 1000}),
            DeviceRequest("s", first_of=(DeviceRequest("a", "gpu", count=2), DeviceRequest("b", "old"))),
            DeviceRequest("t", "gpu", admin=True),
            DeviceRequest("u", unsupported="a request of an unknown kind"),
        ),
        (DeviceConstraint("d.io/numa", ("r",)), DeviceConstraint()),
        Allocation((AllocatedDevice("d.io", "p", "g0", {"d.io/memory": 1000}),), (TERM,)),
        ("u",),
        others=True,
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [({"allocationMode": "Some"}, "KERF305"), ({"capacity": {"requests": {"x": "much"}}}, "KERF306")],
)
def test_bad_claims_are_refused(request_: dict[str, Any], code: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read("ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": request_}]}})
    assert raised.value.code == code


def test_s195_a_pods_status_says_that_a_claim_is_not_needed() -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "t"} for name in "abc"]
    statuses = [{"name": "a", "resourceClaimName": "p-a-1"}, {"name": "b", "resourceClaimName": None}]
    whole = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [], "resourceClaims": claims}, "status": {"resourceClaimStatuses": statuses},
    }  # fmt: skip
    decoded = decode_object(whole)
    pod = decoded.object
    assert isinstance(pod, Pod)
    shape = decoded.blobs[pod.shape]
    assert isinstance(shape, PodShape)
    assert shape.resource_claims == ("a@t", "c@t")
    facts = DeviceFacts(made={("u", "a"): ["p-a-1"]})
    assert facts.claims_of(pod, shape) == ("default/p-a-1", "default/p/c")


def test_a_template() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "k", "operator": "Exists"}]}}
    found = read("ResourceClaimTemplate", spec={"spec": {"devices": {"requests": [request]}}})
    asked = DeviceRequest("r", "gpu", tolerations=(Toleration("k", "Exists"),))
    assert found == ResourceClaimTemplate("default", "x", ResourceClaim("default", "", (asked,)))


def test_s195_the_claims_of_a_pod() -> None:
    claims = [{"name": "a", "resourceClaimName": "own"}, *({"name": n, "resourceClaimTemplateName": "t"} for n in "bc")]
    spec = {"containers": [], "resourceClaims": claims}
    decoded = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": spec})
    pod = decoded.object
    assert isinstance(pod, Pod)
    shape = decoded.blobs[pod.shape]
    assert isinstance(shape, PodShape)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    own = {"resource.kubernetes.io/pod-claim-name": "b"}
    made = read("ResourceClaim", "p-b-1", {"ownerReferences": [owner], "annotations": own}, spec={})
    assert made == ResourceClaim("default", "p-b-1", made_for="u", own_name="b")
    other = read("ResourceClaim", "own", {"annotations": own}, spec={})
    facts = DeviceFacts(made=made_from_templates([made, other]))
    assert facts.claims_of(pod, shape) == ("default/own", "default/p-b-1", "default/p/c")
