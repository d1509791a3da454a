"""A NodePool and a NodeClass are edited while their nodes work: the whole controller finds which nodes have drifted, by
which fields (D-122…D-127, A-334), and its record says the same when it is decided again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.disruption.drift import detection
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodeclass_terms import user_data_digest
from kerf.engine.record.decisions import Decision, Verdict
from kerf.replay.verify.verify import verify
from tests.support.records import stored
from tests.support.simulation.edits import apply, edited, frozen
from tests.support.simulation.manifests import of_cpu
from tests.support.simulation.run import Run, scale


def verdicts(run: Run) -> list[Verdict]:
    decisions = [entry.payload for entry in run.entries("decision.made") if entry.payload.decider == "drift"]
    return [verdict for decision in decisions for verdict in decision.result.verdicts]


def test_an_edited_template_is_found_on_every_node_and_taken_back_when_the_edit_is() -> None:
    before = edited("NodePool", "spec.weight", 1)
    after = edited("NodePool", "spec.template.metadata.labels.team", "b")
    run = Run(frozen(scale("10s", 5), apply("10m", after), apply("20m", before)))
    claims = [entry.payload.claim for entry in run.entries("claim.launched")]
    assert claims
    found = verdicts(run)
    assert [(v.claim, v.action) for v in found[: len(claims)]] == [(name, "drifted") for name in sorted(claims)]
    assert {v.reason.code for v in found[: len(claims)]} == {"nodepool-drifted"}
    assert {d for v in found[: len(claims)] for d in v.differences} == {Difference("labels", "team", None, "b")}
    assert [(v.claim, v.action) for v in found[len(claims) :]] == [(name, "not-drifted") for name in sorted(claims)]
    assert not any(claim.drifted_since for claim in run.runtime.state.facts.claims.values())
    report = verify(run.store)
    assert report.exit_code == 0, msgspec.json.encode(report)


def test_an_edited_nodeclass_is_found_with_the_field() -> None:
    run = Run(frozen(scale("10s", 5), apply("10m", edited("EC2NodeClass", "spec.userData", "echo hello"))))
    (verdict,) = {v.claim: v for v in verdicts(run)}.values()
    assert (verdict.action, verdict.reason.code) == ("drifted", "nodeclass-drift")
    assert verdict.differences == (Difference("userData", "", None, user_data_digest("echo hello")),)
    (claim,) = run.runtime.state.facts.claims.values()
    assert claim.drifted_since == run.entries("nodeclass.seen")[-1].at
    assert verify(run.store).exit_code == 0


@pytest.mark.parametrize("seed", range(4))
def test_what_was_not_judged_again_would_come_to_the_same(seed: int) -> None:
    """A claim is judged when one of the things that its verdict follows from changed: after any life, judging all
    claims as if for the first time finds nothing new."""
    edits = [
        apply(f"{3 + 2 * i}m", edited("NodePool", path, value))
        for i, (path, value) in enumerate(
            [
                ("spec.template.metadata.labels.team", "a"), ("spec.weight", seed + 1),
                ("spec.template.spec.expireAfter", "100h"), ("spec.template.metadata.labels.team", "a"),
            ]
        )
    ]  # fmt: skip
    scales = [scale(f"{4 * i}m", n) for i, n in enumerate((3, 9, 15, 6), start=1)]
    run = Run(frozen(scale("10s", 5), *edits, *scales), seed=seed, until=30 * 60_000)
    state = run.runtime.state
    assert any(claim.drifted_since for claim in state.facts.claims.values())
    state.indexes.drift_inputs.clear()
    assert detection.detect_drift(state, state.facts.at, state.facts.claims).verdicts == ()


def test_an_edit_of_behaviour_drifts_nothing() -> None:
    run = Run(frozen(scale("10s", 5), apply("10m", edited("NodePool", "spec.limits", {"cpu": "100"}))))
    assert run.entries("claim.launched")
    assert verdicts(run) == []


def test_a_record_without_names_comes_to_the_same_verdicts(tmp_path: Path) -> None:
    """Hashes stand in the record, and values get the pseudonyms that they have where they came from."""
    zones = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2b"]}]
    run = Run(
        frozen(
            scale("10s", 5),
            apply("5m", edited("EC2NodeClass", "spec.tags", {"acme-team": "acme-gold"})),
            apply("10m", edited("NodePool", "spec.template.metadata.labels", {"acme.example/team": "acme-gold"})),
            apply("15m", edited("NodePool", "spec.template.spec.taints", [{"key": "acme", "effect": "NoSchedule"}])),
            apply("20m", edited("NodePool", "spec.template.spec.requirements", zones)),
        )
    )
    codes = {verdict.reason.code for verdict in verdicts(run)}
    assert codes == {"nodeclass-drift", "nodepool-drifted", "requirements-drifted"}
    path = tmp_path / "b.kerfb"
    source = SQLiteStore(stored(tmp_path / "s.kerf", run.memory), "read")
    export_bundle(source, path, pseudonymise=True, key=b"s")
    source.close()
    decisions = [entry.payload for entry in BundleStore(path).scan() if isinstance(entry.payload, Decision)]
    told = [decision for decision in decisions if decision.decider == "drift"]
    assert told
    assert b"acme" not in msgspec.json.encode(told)
    report = verify(BundleStore(path))
    assert report.exit_code == 0, msgspec.json.encode(report)


def test_d62_pods_of_drifted_nodes_do_not_move_to_the_ones_that_go_next() -> None:
    """Three nodes are replaced one after the other, and one of them has room. Two of nine pods moved twice."""
    before, after = (edited("NodePool", "spec.template.metadata.labels.team", team) for team in ("a", "b"))
    for pool in (before, after):
        pool["spec"]["template"]["spec"]["requirements"][1]["values"] = ["m5.xlarge"]
        pool["spec"]["disruption"] = {"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]}
    others = [document for document in frozen(apply("30m", after)) if document["kind"] != "NodePool"]
    run = Run([before, *others, of_cpu("web", 9, 900)])
    assert len(run.entries("claim.requested")) == 6
    assert len(run.entries("claim.pod-evicted")) == 9
