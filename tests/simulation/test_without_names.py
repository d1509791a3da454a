"""Records of static NodePools and of adoption come to the same decisions when their names are taken out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.files.golden import GoldenStore
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.devices import Capacity, Device, ResourceSlice, Version
from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.dst.play import play
from tests.dst.scenario import scenario
from tests.support.memory import MemoryStore
from tests.support.records import stored
from tests.support.repository import ROOT
from tests.support.simulation.chaos import chaos
from tests.support.simulation.run import Run, scale, workshop


def static() -> Run:
    found = workshop(*({"at": f"{10 * n}m", "action": "apply", "object": sized(size)} for n, size in ((1, 6), (2, 1))))
    return Run([sized(3), *found[1:]], settings=Settings(static_capacity=True))


def sized(replicas: int) -> dict[str, object]:
    pool = next(d for d in workshop() if d["kind"] == "NodePool")
    pool["spec"].pop("weight", None)
    pool["spec"].pop("limits", None)
    pool["spec"]["replicas"] = replicas
    return pool  # type: ignore[no-any-return]


def adopted() -> Run:
    kills = (Kill(9, KillPoint.AFTER_EFFECT),)
    faults = FaultPlan(kills=kills, restart=3_000)
    return Run(workshop(scale("1m", 5), scale("12m", 14), scale("40m", 0)), faults=faults, forgets=True)


def mistyped() -> Run:
    """Pods that ask for label keys that nobody knows, which look like some that are known (S-22)."""
    found = workshop()
    pool = next(d for d in found if d["kind"] == "NodePool")
    pool["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["example.com/team"] = "red"
    pods = [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"},
            "spec": {"nodeSelector": {key: "red"}, "containers": [{"name": "c", "image": "x"}]},
        }
        for number, key in enumerate(("zone", "team", "example.com/taem", "karpenter.sh/capacity-typ"))
    ]  # fmt: skip
    return Run([*found, *pods])


GPUS = tuple(
    Device(
        f"Gpu-{number}",
        {
            "gpu.acme.example/model": model,
            "gpu.acme.example/driver": Version("1.2.3-Acme.2"),
            "site.example/row": number,
        },
        {"gpu.acme.example/memory": Capacity(40 << 30)},
    )
    for number, model in enumerate(("Acme-T4", "Acme-A10", "Other-T4", "Other-A10"))
)
SLICES: dict[str, tuple[ResourceSlice, ...]] = {
    "m5.xlarge": (ResourceSlice("", "gpu.acme.example", "gpus", devices=GPUS),)
}
SELECTORS = {
    "prefix": 'device.attributes["gpu.acme.example"].model.startsWith("Acme-")',
    "letters": 'cel.bind(dra, device.attributes["gpu.acme.example"], dra.model.lowerAscii().contains("t4"))',
    "order": 'device.attributes["gpu.acme.example"].model < "B" && device.attributes["site.example"].row in [0, 1]',
    "version": 'device.attributes["gpu.acme.example"].driver.isLessThan(semver("1.2.3-Bcme.1"))',
    "memory": 'device.capacity["gpu.acme.example"].memory.compareTo(quantity("40Gi")) >= 0',
    "nothing": 'device.attributes["gpu.acme.example"].model == "Acme-T5"',
    "missing": 'device.attributes["gpu.acme.example"].colour == "acme-red"',
    "unreadable": "device.attributes.exists(name, name == 'acme')",
    "undefined": "acme.driver == 1",
}


def devices() -> Run:
    """Pods that ask for devices by drivers, attributes and selectors of the user's own."""
    claims = [
        {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "other"},
            "spec": {"spec": {"devices": {"requests": [
                {"name": "r", "exactly": {
                    "deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}}]}}},
        }
        for name, expression in SELECTORS.items()
    ]  # fmt: skip
    pods = [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"train-{name}", "namespace": "other"},
            "spec": {
                "nodeSelector": {"type": "karpenter"},
                "containers": [{"name": "c", "image": "x", "resources": {
                    "requests": {"cpu": "100m"}, "claims": [{"name": "g"}]}}],
                "resourceClaims": [{"name": "g", "resourceClaimTemplateName": name}],
            },
        }
        for name in (*SELECTORS, "none")
    ]  # fmt: skip
    gpu = {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver.endsWith(".acme.example")'}}]},
    }  # fmt: skip
    found = [document for document in workshop() if document["kind"] != "Deployment"]
    return Run([*found, gpu, *claims, *pods], settings=Settings(ignore_dra_requests=False), slices=SLICES)


def peculiar() -> Run:
    """Resources, taints, keys and numbers of the user's own, most of which no node has."""
    found = workshop()
    template = next(document for document in found if document["kind"] == "NodePool")["spec"]["template"]
    labels = {"node-role.kubernetes.io/acme-db": "", "acme.example/disk": "400000000000", "hugepages.acme": "x"}
    template.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    template["spec"]["taints"] = [{"key": "node-role.kubernetes.io/acme-db", "effect": "NoSchedule"}]
    tolerations = [{"operator": "Exists"}]
    specs: dict[str, dict[str, object]] = {
        "widget": {"requests": {"acme.example/widget": "1", "hugepages-2Mi": "2Mi"}},
        "restricted": {"nodeSelector": {"karpenter.sh/acme": "a", "team.karpenter.sh/acme": "b"}},
        "disk": {"terms": [{"key": "acme.example/disk", "operator": "Gt", "values": ["399999999999"]}]},
        "small": {"terms": [{"key": "acme.example/disk", "operator": "Lt", "values": ["399999999999"]}]},
        "role": {"terms": [{"key": "node-role.kubernetes.io/acme-db", "operator": "Exists"}]},
        "roles": {"terms": [{"key": "node-role.kubernetes.io/acme-web", "operator": "In", "values": ["a", "b"]}]},
        "tainted": {"tolerations": []},
        "ports": {"hostIP": "10.1.2.3"},
        "claims": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "acme-data"}}]},
    }
    pods = []
    for name, spec in specs.items():
        container: dict[str, object] = {"name": "c", "image": "x"}
        container["resources"] = {"requests": {"cpu": "100m", **spec.pop("requests", {})}}  # type: ignore[dict-item]
        if "hostIP" in spec:
            container["ports"] = [{"containerPort": 80, "hostPort": 80, "hostIP": spec.pop("hostIP")}]
        if "terms" in spec:
            term = {"nodeSelectorTerms": [{"matchExpressions": spec.pop("terms")}]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
        pods.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"acme-{name}"},
                "spec": {"tolerations": tolerations, "containers": [container], **spec},
            }
        )
    twins = [{**pod, "metadata": {"name": f"acme-{name}-2"}} for name, pod in zip(specs, pods, strict=True)]
    return Run([*found, *pods, *twins])


def numbered() -> Run:
    """Pods with numbers at their ends, among others whose names begin as theirs, and virtual pods (S-179)."""
    found = workshop(scale("2m", 3))
    names = [f"web-{number}" for number in range(12)] + ["web-1-a", "web-15a", "web", "a", "zoo", "capacity"]
    pods = [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "other"},
            "spec": {"nodeSelector": {"type": "karpenter"}, "containers": [{"name": "c", "image": "x", "resources": {
                "requests": {"cpu": f"{300 + 1100 * (number % 3)}m", "memory": "700Mi"}}}]},
        }
        for number, name in enumerate(names)
    ]  # fmt: skip
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "room", "namespace": "other"},
        "spec": {"replicas": 12, "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "inflate"}},
    }  # fmt: skip
    return Run([*found, *pods, buffer], settings=Settings(capacity_buffers=True))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (static, "decision.made"),
        (adopted, "claim.adopted"),
        (mistyped, "decision.made"),
        (devices, "decision.made"),
        (peculiar, "decision.made"),
        (numbered, "decision.made"),
    ],
)
def test_it_is_decided_the_same_without_names(made: object, kind: str, tmp_path: Path) -> None:
    run: Run = made()  # type: ignore[operator]
    assert run.entries(kind)
    without_names(run.memory, tmp_path)


def without_names(record: MemoryStore, folder: Path) -> None:
    """Asserts that a record's bundle with pseudonyms is decided the same."""
    with closing(SQLiteStore(stored(folder / "s.kerf", record), "read")) as source:
        export_bundle(source, folder / "b.kerfb", pseudonymise=True, key=b"s")
    report = verify(BundleStore(folder / "b.kerfb"))
    assert report.exit_code == 0, msgspec.json.encode(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [306])
def test_a_small_storm_is_decided_the_same_without_names(seed: int, tmp_path: Path) -> None:
    """In that of 306 two pods changed places, when the numbers inside of names decided."""
    without_names(chaos(seed).memory, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [60_003, 60_009])
def test_a_random_cluster_is_decided_the_same_without_names(seed: int, tmp_path: Path) -> None:
    """In 60003 spread pods went to other zones, when the names of zones were hashed together with users' labels."""
    store = play(scenario(seed)).store
    assert store is not None
    without_names(store, tmp_path)


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in (ROOT / "tests" / "golden").glob("*/record.jsonl"))
)
def test_a_golden_record_is_decided_the_same_without_names(name: str, tmp_path: Path) -> None:
    export_bundle(GoldenStore(ROOT / "tests" / "golden" / name), tmp_path / "b.kerfb", pseudonymise=True, key=b"s")
    report = verify(BundleStore(tmp_path / "b.kerfb"))
    assert report.exit_code == 0, msgspec.json.encode(report)
