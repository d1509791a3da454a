"""User data holds passwords: a digest stands for it in the record, in drift and in the story; and what a crash
interrupted is not launched with other user data than it was decided with."""

from __future__ import annotations

import msgspec
import pytest

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.model.karpenter.nodeclass_terms import user_data_digest
from kerf.engine.record.codec import CODEC
from kerf.replay.verify.verify import verify
from tests.support.simulation.edits import apply, edited
from tests.support.simulation.run import Run, scale, workshop

OLD, NEW = "export TOKEN=hunter2-old", "export TOKEN=hunter2-new" + "x" * 100


def documents(*actions: dict[str, object]) -> list[object]:
    found = workshop(scale("10s", 5), *actions)
    return [edited("EC2NodeClass", "spec.userData", OLD) if d["kind"] == "EC2NodeClass" else d for d in found]


def written(run: Run) -> bytes:
    """All that stands in the record, with its blobs."""
    return b"".join([*map(CODEC.encode, run.memory.entries), *run.memory.blobs.values()])


def test_a334_a_digest_stands_for_user_data_in_record_and_drift() -> None:
    run = Run(documents(apply("10m", edited("EC2NodeClass", "spec.userData", NEW))))
    assert b"hunter2" not in written(run)
    decided = [entry.payload.result for entry in run.entries("decision.made") if entry.payload.decider == "drift"]
    differences = {each for result in decided for verdict in result.verdicts for each in verdict.differences}
    (found,) = differences
    assert (found.field, found.was, found.now) == ("userData", user_data_digest(OLD), user_data_digest(NEW))
    assert verify(run.store).exit_code == 0


@pytest.mark.parametrize("point", [KillPoint.BEFORE_EFFECT, KillPoint.AFTER_EFFECT])
@pytest.mark.parametrize("new", [NEW, ""])
def test_a_launch_is_not_repeated_with_other_user_data(point: KillPoint, new: str) -> None:
    """The process dies over its first launch, and the NodeClass is edited before the next one begins."""
    faults = FaultPlan(kills=(Kill(1, point),), restart=120_000)
    run = Run(documents(apply("60s", edited("EC2NodeClass", "spec.userData", new))), faults=faults)
    assert run.driver.deaths == 1
    first = run.entries("launch.answered")[0].payload
    by_claim = {i.machine.claim: i.boot.class_hash for i in run.simulation.cloud.instances.values()}
    if point is KillPoint.AFTER_EFFECT:  # it happened: it is found, and has drifted
        assert first.adopted
    else:
        assert (first.code, first.kind, first.instance) == ("UserDataChanged", "nodeclass-not-ready", "")
        assert "other user data" in first.message
        assert first.claim not in by_claim
        assert run.entries("claim.launch-failed")[0].payload.claim == first.claim
    assert not [pod for pod in run.runtime.state.facts.pods.values() if not pod.node], "its pods are planned for again"
    report = verify(run.store)
    assert report.exit_code == 0, msgspec.json.encode(report)


def test_a_launch_is_repeated_with_the_same_user_data() -> None:
    run = Run(documents(), faults=FaultPlan(kills=(Kill(1, KillPoint.BEFORE_EFFECT),), restart=120_000))
    assert run.driver.deaths == 1
    assert run.entries("launch.answered")[0].payload.instance
    assert not run.entries("claim.launch-failed")
