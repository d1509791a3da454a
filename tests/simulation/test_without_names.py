"""Records of static NodePools and of adoption come to the same decisions when their names are taken out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.support.records import stored
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


@pytest.mark.parametrize(
    ("made", "kind"), [(static, "decision.made"), (adopted, "claim.adopted"), (mistyped, "decision.made")]
)
def test_it_is_decided_the_same_without_names(made: object, kind: str, tmp_path: Path) -> None:
    run: Run = made()  # type: ignore[operator]
    assert run.entries(kind)
    source = SQLiteStore(stored(tmp_path / "s.kerf", run.memory), "read")
    export_bundle(source, tmp_path / "b.kerfb", pseudonymise=True, key=b"s")
    source.close()
    report = verify(BundleStore(tmp_path / "b.kerfb"))
    assert report.exit_code == 0, msgspec.json.encode(report)
