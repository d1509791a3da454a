"""S-152…S-159, D-155: pods with volumes in the whole controller, from the claim to the detachment."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.record.claim_events import Drained, Terminated, VolumesDetached
from kerf.replay.verify.verify import verify
from tests.support.simulation.chaos import action, faults, scaled
from tests.support.simulation.run import HOUR, Run, workshop
from tests.support.slow import slow

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def database(replicas: int = 3) -> dict[str, Any]:
    """Each pod has a volume of its own, and they keep apart by zone."""
    labels = {"app": "db"}
    spread = {"maxSkew": 1, "topologyKey": lbl.ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": labels}}  # fmt: skip
    pod = {
        "nodeSelector": {"type": "karpenter"},
        "topologySpreadConstraints": [spread],
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "other"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}],
        },
    }


def run(*actions: dict[str, Any], more: tuple[dict[str, Any], ...] = (), until: int = HOUR) -> Run:
    *manifests, timeline = workshop(*actions)
    return Run([*manifests, CLASS, *more, timeline], until=until)


def zones(done: Run) -> dict[str, str]:
    """Pod → the zone that it runs in. Every volume is attached where its pod is, and to one node only."""
    api = done.simulation.cluster.api
    found = {}
    for pod in api.pods.values():
        assert pod.phase == "Running"
        claim = api.claims[f"other/data-{pod.name}"]
        (attached,) = [a.node for a in api.attachments.values() if a.volume == claim.volume]
        assert attached == pod.node
        (expression,) = api.volumes[claim.volume].terms[0].expressions
        found[pod.name] = api.nodes[pod.node].labels[lbl.ZONE]
        assert expression.values == (found[pod.name],)
    return found


def verifies(done: Run) -> bool:
    return not verify(done.store).divergences


def test_a_stateful_set_gets_its_volumes_and_comes_back_to_their_zones() -> None:
    before = run(more=(database(),), until=5 * 60_000)
    first = zones(before)
    assert len(set(first.values())) == 3
    after = run({"at": "6m", "action": "vanish", "count": 2}, more=(database(),))
    assert zones(after) == first
    assert verifies(after)


def test_a_pod_waits_for_its_claim_and_is_planned_when_it_shows() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job", "namespace": "other"},
        "spec": {
            "nodeSelector": {"type": "karpenter"},
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}],
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "late", "namespace": "other"},
        "spec": {"storageClassName": "gp3"},
    }
    without = run(more=(pod,))
    assert not without.entries("claim.requested")
    late = run({"at": "10m", "action": "apply", "object": claim}, more=(pod,))
    (requested,) = late.entries("claim.requested")
    shown = next(e for e in late.entries("pvc.seen"))
    assert shown.at < requested.at <= shown.at + 11_000
    assert late.simulation.cluster.api.pods[next(iter(late.simulation.cluster.api.pods))].phase == "Running"
    assert verifies(late)


def test_d155_an_instance_ends_after_the_volumes_of_its_pods_are_detached() -> None:
    done = run({"at": "10m", "action": "delete", "kind": "NodeClaim", "count": 1}, more=(database(),))
    zones(done)
    (asked,) = done.entries("nodeclaim.deletion-seen")

    def happened(kind: type[Drained | VolumesDetached | Terminated]) -> Any:
        """The only event of this kind of the deleted claim."""
        (found,) = [e for e in done.entries() if isinstance(e.payload, kind) and e.payload.claim == asked.payload.claim]
        return found

    drained, detached, ended = happened(Drained), happened(VolumesDetached), happened(Terminated)
    assert drained.payload.volumes == 1
    off = [e.at for e in done.entries("object.gone") if e.payload.kind == "volumeattachment"]
    assert detached.at in off
    assert drained.at < detached.at < ended.at
    assert verifies(done)


def resized(minute: int, replicas: int) -> dict[str, Any]:
    return {**scaled(minute, "db", replicas), "kind": "StatefulSet"}


def storm(seed: int) -> Run:
    """An hour of random actions under faults with a database among the workloads, then all is scaled to nothing."""
    dice = random.Random(seed)
    actions = [action(minute, ["inflate"], dice) for minute in range(1, 60, 4)]
    actions += [resized(minute, dice.randint(0, 6)) for minute in range(3, 60, 8)]
    actions += [{"at": "61m", "action": "restore-capacity"}, scaled(65, "inflate", 0), resized(65, 0)]
    *manifests, timeline = workshop(*actions, capacity_type=dice.choice(["spot", "on-demand"]))
    given = [*manifests, CLASS, database(dice.randint(1, 4)), timeline]
    return Run(given, until=4 * HOUR, seed=seed, faults=faults(dice))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *slow(*range(4, 12))])
def test_under_faults_nothing_stays_attached_and_no_volume_is_lost(seed: int) -> None:
    done = storm(seed)
    api = done.simulation.cluster.api
    assert (done.simulation.cloud.alive(), api.nodes, api.attachments) == ([], {}, {})
    claims = [claim for claim in api.claims.values() if claim.volume]
    assert sorted(claim.volume for claim in claims) == sorted(api.volumes)
    facts = done.runtime.state.facts
    assert (facts.volume_claims, facts.volumes, facts.attachments) == (api.claims, api.volumes, {})
    assert verifies(done)
