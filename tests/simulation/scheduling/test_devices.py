"""S-194…S-203, L-175 in the whole controller: pods with ResourceClaims, from the claim to the end of their node."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from kerf.engine.model.kubernetes.devices import Device, ResourceSlice
from kerf.engine.model.labels import DRA_DRIVERS
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import Initialized, Requested
from kerf.replay.verify.verify import verify
from tests.support.simulation.chaos import faults
from tests.support.simulation.run import HOUR, Run, workshop

DRIVER = "gpu.example.com"
GPUS = tuple(Device(f"gpu-{n}", {f"{DRIVER}/model": model}) for n, model in enumerate(("a", "a", "b", "b")))
SLICES: dict[str, tuple[ResourceSlice, ...]] = {"m5.xlarge": (ResourceSlice("", DRIVER, "gpus", devices=GPUS),)}
ON = Settings(ignore_dra_requests=False)
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


def template(name: str = "gpu", count: int = 1, model: str = "") -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "gpu", "count": count}
    if model:
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": "other"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata,
            "spec": {"spec": spec}}  # fmt: skip


def trainers(replicas: int, of: str = "gpu", name: str = "train") -> dict[str, Any]:
    labels = {"app": name}
    pod = {
        "nodeSelector": {"type": "karpenter"},
        "containers": [
            {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "g"}]}}
        ],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": of}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "other"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def scale(at: str, replicas: int, name: str = "train") -> dict[str, Any]:
    return {"at": at, "action": "scale", "namespace": "other", "name": name, "replicas": replicas}


def run(*actions: dict[str, Any], more: tuple[dict[str, Any], ...], settings: Settings = ON, **fields: Any) -> Run:
    *manifests, timeline = workshop(*actions)
    kept = [manifest for manifest in manifests if manifest["kind"] not in ("Deployment",)]
    return Run([*kept, CLASS, *more, timeline], settings=settings, slices=SLICES, **fields)


def check(done: Run) -> None:
    """Every pod runs where its devices are, no device is given away twice, and the record verifies."""
    api = done.simulation.cluster.api
    held = Counter(
        (device.driver, device.pool, device.device)
        for claim in api.resource_claims.values()
        for device in (claim.allocation.devices if claim.allocation is not None else ())
    )
    assert all(count == 1 for count in held.values())
    pools = {
        (resource_slice.driver, resource_slice.pool): resource_slice.node
        for resource_slice in api.resource_slices.values()
    }
    for pod in api.pods.values():
        assert pod.phase == "Running"
        (claim,) = (
            resource_claim for resource_claim in api.resource_claims.values() if resource_claim.made_for == pod.uid
        )
        assert claim.allocation is not None
        assert {pools[device.driver, device.pool] for device in claim.allocation.devices} == {pod.node}
    assert verify(done.store).divergences == ()


def test_s196_pods_with_claims_get_the_nodes_that_their_devices_will_be_on() -> None:
    done = run(more=(template(), trainers(6)))
    asked = [entry.payload for entry in done.entries() if isinstance(entry.payload, Requested)]
    assert [order.instance_types for order in asked] == [("m5.xlarge",)] * 2
    assert {order.annotations[DRA_DRIVERS] for order in asked} == {DRIVER}
    check(done)


def test_l175_the_node_is_initialized_when_its_driver_has_published_and_only_one_is_launched() -> None:
    done = run(more=(template(count=2), trainers(2)))
    (requested,) = [entry for entry in done.entries() if isinstance(entry.payload, Requested)]
    (initialized,) = [entry for entry in done.entries() if isinstance(entry.payload, Initialized)]
    (published,) = done.entries("resourceslice.seen")
    assert requested.at < published.at <= initialized.at
    check(done)


def test_s200_models_are_told_apart() -> None:
    done = run(more=(template("a", model="a"), template("b", model="b"), trainers(4, "a"), trainers(1, "b", "other")))
    assert len([entry for entry in done.entries() if isinstance(entry.payload, Requested)]) == 2
    check(done)


def test_s198_nodes_are_consolidated_with_the_devices_of_their_pods() -> None:
    done = run(scale("15m", 4), more=(template(), trainers(8)), until=HOUR)
    api = done.simulation.cluster.api
    assert len(api.nodes) == 1  # four pods, and four devices on one node
    assert len(api.resource_slices) == 1
    assert len(api.resource_claims) == 4
    check(done)


def test_s194_with_dra_requests_ignored_nothing_is_launched() -> None:
    done = run(more=(template(), trainers(2)), settings=Settings())
    assert not [entry for entry in done.entries() if isinstance(entry.payload, Requested)]
    assert {note.code for _, note in done.simulation.notes} == {"devices-ignored"}
    assert verify(done.store).divergences == ()


@pytest.mark.parametrize("seed", range(3))
def test_pods_with_claims_come_up_whatever_fails_on_the_way(seed: int) -> None:
    done = run(
        scale("20m", 3), more=(template(), trainers(7)), seed=seed, faults=faults(random.Random(seed)), until=3 * HOUR
    )
    check(done)
