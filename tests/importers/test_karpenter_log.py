"""Karpenter's log becomes a record: the samples, a real run of 1.14, older versions, and what a log cannot tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.record.claim_events import (
    Adopted,
    Cancelled,
    Initialized,
    Launched,
    LaunchFailed,
    Registered,
    Tainted,
    Terminated,
)
from kerf.engine.record.observations import ControllerDecided, ControllerSaid, RecordStarted
from kerf.replay.errors import PartialRecord, SubjectUnknown
from kerf.replay.explain.claim import explain_claim, explain_node
from kerf.replay.history.story import story
from kerf.replay.verify.verify import verify
from tests.support.imports.imported import SAMPLES, entries_of, imported, log_line, named, payloads, told, written

AT = 1_772_442_000_000  # 2026-03-02T09:00:00Z


def test_the_sample_of_1_4_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-1.4.log") as (summary, store):
        launched = {e.payload.claim: (e.at - AT, e.payload.instance_type) for e in entries_of(store, Launched)}
        assert launched == {"general-aaaaa": (3_900, "m5.large"), "general-bbbbb": (4_050, "c6a.large")}
        assert {e.payload.claim: e.at - AT for e in entries_of(store, Initialized)} == {
            "general-aaaaa": 41_300, "general-bbbbb": 44_000,
        }  # fmt: skip
        (decided,) = entries_of(store, ControllerDecided)
        assert (decided.at - AT, decided.payload.why, decided.payload.claims) == (
            1_210_402,
            "empty",
            ("general-bbbbb",),
        )
        (tainted,), (gone,) = entries_of(store, Tainted), entries_of(store, Terminated)
        assert (tainted.at - AT, tainted.payload.why, gone.at - AT) == (1_211_020, "empty", 1_292_150)
        assert summary.imported.versions == ("1.4.0",)
        assert 'karpenter: no place for pod shop/huge-0: incompatible with nodepool "general"' in "\n".join(told(store))


def test_the_sample_of_1_12_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-1.12.log") as (_, store):
        (decided,) = payloads(store, ControllerDecided)
        assert decided.replacements == ("general-eeeee",)
        assert (decided.why, decided.pods, decided.savings) == ("underutilized", 9, 0.19)
        assert {a.claim: a.state for a in payloads(store, Adopted)} == {
            "general-ccccc": "initialized", "general-ddddd": "initialized",
            "general-fffff": "registered", "general-ggggg": "registered",
        }  # fmt: skip
        assert {t.claim: (t.why, t.detail) for t in payloads(store, Tainted)} == {
            "general-ccccc": ("underutilized", ""), "general-ddddd": ("underutilized", ""),
            "general-fffff": ("interrupted", "spot_interrupted"), "general-ggggg": ("unknown", ""),
        }  # fmt: skip
        (fffff,) = [t for t in payloads(store, Tainted) if t.claim == "general-fffff"]
        assert fffff.deadline is None  # the annotation came after
        assert {t.lifetime for t in payloads(store, Terminated)} == {0}  # all were there before


def test_a_node_that_no_line_names_is_not_known(tmp_path: Path) -> None:
    """As logs of other clouds are: the line has no Node."""
    fields = {"provider_id": "kubemark://md-1", **named("default-aaaaa")}
    file = written(tmp_path, "karpenter.log", log_line("09:00:00.000", "initialized nodeclaim", **fields))
    with imported(tmp_path, file) as (_, store):
        assert "default-aaaaa has registered; as which node is not known" in told(store)


def test_f80_a_removal_that_nobody_explains_stays_unknown(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-1.12.log") as (_, store):
        explained = explain_claim(store, "general-ggggg")
        assert explained.removed == "unknown"
        assert explained.removal is not None
        assert explained.removal.reason.code == "unknown"
        assert "causes" in explained.unknown


def test_the_sample_of_older_versions_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-older.log") as (summary, store):
        decided = [
            (d.why, d.claims, [n[:12] for n in d.nodes], d.replacements) for d in payloads(store, ControllerDecided)
        ]
        assert decided == [
            ("underutilized", ("general-hhhhh",), ["ip-10-0-0-31"], ()),
            ("drifted", (), ["ip-10-0-0-32"], ("general-iiiii",)),
            ("empty", (), ["ip-10-0-0-33", "ip-10-0-0-34"], ()),
        ]
        assert summary.imported.versions == ("0.36.2", "0.37.0", "1.0.6")


def test_one_node_and_one_pod_are_told_as_one(tmp_path: Path) -> None:
    made = log_line("09:00:01.000", "created nodeclaim", "provisioner", **named("a-1"))
    plans = [
        log_line("09:00:00.000", "computed new nodeclaim(s) to fit pod(s)", "provisioner", nodeclaims=1, pods=12),
        log_line("09:00:00.500", "computed new nodeclaim(s) to fit pod(s)", "provisioner", nodeclaims=2, pods=1),
    ]
    with imported(tmp_path, written(tmp_path, "log", "\n".join((*plans, made)))) as (_, store):
        assert [text for text in told(store) if "plans" in text] == [
            "karpenter: plans 1 new node for 12 pods", "karpenter: plans 2 new nodes for 1 pod",
        ]  # fmt: skip


def test_f89_flat_keys_of_0_36_and_older_are_read(tmp_path: Path) -> None:
    node = "ip-10-0-0-1.ec2.internal"
    replaced = f"terminating 1 nodes (2 pods) {node}/m5.large/spot and replacing with spot node from types a, b"
    file = written(
        tmp_path, "log",
        old("09:00:00.000", "provisioner", "found provisionable pod(s)", pods="a/x, a/y and 3 other(s)"),
        old("09:00:01.000", "provisioner", "created nodeclaim", nodepool="general", nodeclaim="general-aaaaa",
            instance_types="m5.large", requests={"cpu": "1"}),
        old("09:00:03.000", "nodeclaim.lifecycle", "launched nodeclaim", nodeclaim="general-aaaaa",
            provider_id="aws:///us-east-1a/i-1", instance_type="m5.large", zone="us-east-1a", capacity_type="spot"),
        old("09:00:30.000", "nodeclaim.lifecycle", "registered nodeclaim", nodeclaim="general-aaaaa", node=node),
        old("09:00:40.000", "nodeclaim.lifecycle", "initialized nodeclaim", nodeclaim="general-aaaaa", node=node),
        old("10:00:00.000", "disruption", f"disrupting via consolidation replace, {replaced}", command_id="c-1"),
        old("10:00:00.100", "disruption", "created nodeclaim", nodepool="general", nodeclaim="general-bbbbb"),
        old("10:00:50.000", "nodeclaim.lifecycle", "initialized nodeclaim", nodeclaim="general-bbbbb", node="ip-2"),
        old("10:01:00.000", "node.termination", "tainted node", node=node),
        old("10:02:00.000", "node.termination", "deleted node", node=node),
        old("10:02:01.000", "nodeclaim.termination", "deleted nodeclaim", nodeclaim="general-aaaaa", node=node),
    )  # fmt: skip
    with imported(tmp_path, file) as (summary, store):
        assert (summary.claims, summary.adopted, summary.gone) == (2, 0, 1)
        (decided,) = payloads(store, ControllerDecided)
        assert (decided.why, decided.claims, decided.replacements, decided.pods) == (
            "underutilized", ("general-aaaaa",), ("general-bbbbb",), 2,
        )  # fmt: skip
        assert [t.why for t in payloads(store, Tainted)] == ["underutilized"]


def old(at: str, logger: str, message: str, **fields: Any) -> str:
    """A line as 0.32 to 0.36 write it."""
    known = {"level": "INFO", "time": f"2024-02-15T{at}Z", "logger": f"controller.{logger}", "message": message}
    return json.dumps(known | {key.replace("_", "-"): value for key, value in fields.items()})


def test_f89_errors_that_are_the_message_in_0_36_and_older_are_read(tmp_path: Path) -> None:
    why = 'incompatible with nodepool "general", did not tolerate gpu=1:NoSchedule'
    file = written(
        tmp_path, "log",
        old("09:00:00.000", "provisioner", f"Could not schedule pod, {why}", level="ERROR", pod="shop/web-1"),
        old("09:00:01.000", "provisioner", "created nodeclaim", nodepool="general", nodeclaim="general-aaaaa"),
        old("09:00:02.000", "nodeclaim.lifecycle", "insufficient capacity, all requested instance types were"
            " unavailable during launch", level="ERROR", nodeclaim="general-aaaaa"),
        old("09:00:02.100", "nodeclaim.termination", "deleted nodeclaim", nodeclaim="general-aaaaa", node=""),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        (said,) = payloads(store, ControllerSaid)
        assert (said.text, said.pods) == (f"no place for pod shop/web-1: {why}", ("shop/web-1",))
        (failed,) = payloads(store, LaunchFailed)
        assert (failed.claim, failed.kind) == ("general-aaaaa", "insufficient-capacity")


@pytest.mark.parametrize(
    ("said", "least"),
    [("0 spot and 4 on-demand, from types a, b", 4), ("3 spot and 3 on-demand, from types a and 55 other(s)", 3),
     ("2 spot and 0 on-demand, from types a", 2), ("on-demand node from types a", 1), ("node from types a", 1)],
)  # fmt: skip
def test_f81_a_decision_for_several_new_nodes_counts_them(tmp_path: Path, said: str, least: int) -> None:
    nodes = "terminating 1 nodes (33 pods) ip-1.ec2.internal/t3.xlarge/on-demand"
    text = f"disrupting via drift replace, {nodes} and replacing with {said}"
    with imported(tmp_path, written(tmp_path, "log", old("09:00:00.000", "disruption", text))) as (_, store):
        assert [decided.new_nodes for decided in payloads(store, ControllerDecided)] == [least]


def test_f79_pods_whose_preferences_can_prevent_consolidation_are_told(tmp_path: Path) -> None:
    many = "pod(s) have a preferred Anti-Affinity which can prevent consolidation"
    spread = "has a preferred TopologySpreadConstraint which can prevent consolidation"
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", many, "provisioner", pods="shop/web-1, shop/web-2 and 3 other(s)"),
        log_line("09:00:01.000", f"pod shop/db-1 {spread}", "provisioner"),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [(said.text, said.pods) for said in payloads(store, ControllerSaid)] == [
            ("a preferred Anti-Affinity can prevent consolidation, that of shop/web-1, shop/web-2 and 3 other(s)",
             ("shop/web-1", "shop/web-2")),
            ("a preferred TopologySpreadConstraint can prevent consolidation, that of shop/db-1", ("shop/db-1",)),
        ]  # fmt: skip


@pytest.mark.parametrize("name", ["shop/web-1", "pod/shop/web-1", "gpu", "nodepool/gpu"])
def test_story_tells_what_a_log_says_of_a_pod_or_nodepool(tmp_path: Path, name: str) -> None:
    """A log has no such objects, so that explain cannot answer."""
    pod: dict[str, Any] = {"Pod": {"namespace": "shop", "name": "web-1"}, "error": "no instance type fits"}
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "could not schedule pod", "provisioner", level="ERROR", **pod),
        log_line("09:00:01.000", "ignoring nodepool, not ready", "provisioner", NodePool={"name": "gpu"}),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        (event,) = story(store, name).events
        assert event.subject == ("nodepool/gpu" if name.endswith("gpu") else "pod/shop/web-1")
        with pytest.raises((SubjectUnknown, PartialRecord)):
            story(store, "shop/web-2")


def test_f84_a_decision_that_saves_nothing_says_what_it_costs(tmp_path: Path) -> None:
    command = "Drifted/c-1: replace: nodepools=[general]: [n-1] -> [1 replacement] (savings: $-0.05)"
    decision: dict[str, Any] = {"command": command, "disrupted_nodes": [{"Node": {"name": "n-1"}, **named("a-1")}]}
    file = written(tmp_path, "log", log_line("09:00:00.000", "disrupting node(s)", "disruption", **decision))
    with imported(tmp_path, file) as (_, store):
        assert "karpenter takes away a-1 (drifted, for $0.05/h more)" in told(store)


def test_f79_why_a_nodepool_is_not_used_is_told_with_its_name(tmp_path: Path) -> None:
    pool: dict[str, Any] = {"NodePool": {"name": "gpu"}}
    nothing = "skipping, nodepool requirements filtered out all instance types"
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", nothing, "provisioner", **pool),
        log_line("09:00:01.000", nothing, "provisioner", minValuesIncompatibleErr="minValues of 3 are not met", **pool),
        log_line("09:00:02.000", "ignoring nodepool, not ready", "provisioner", level="ERROR", **pool),
        log_line("09:00:03.000", "40 out of 458 instance types were excluded because they would breach limits",
             "provisioner", level="DEBUG", **pool),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [text for text in told(store) if text.startswith("karpenter: ")] == [
            f"karpenter: NodePool gpu: {nothing}",
            f"karpenter: NodePool gpu: {nothing}: minValues of 3 are not met",
            "karpenter: NodePool gpu: ignoring nodepool, not ready",
            "karpenter: NodePool gpu: 40 out of 458 instance types were excluded because they would breach limits",
        ]
        assert {pool for said in payloads(store, ControllerSaid) for pool in said.node_pools} == {"gpu"}


def test_errors_of_other_containers_are_not_karpenters(tmp_path: Path) -> None:
    other = {"level": "error", "time": "2026-03-02T09:00:01Z", "message": "cannot reach the data base"}
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "created nodeclaim", "provisioner", **named("a-1")),
        json.dumps(other),
        log_line("09:00:02.000", "Reconciler error", level="ERROR", error="conflict", **named("a-1")),
        json.dumps({**other, "level": "ERROR", "message": "Reconciler error", "error": "x", "commit": "490ef94"}),
    )  # fmt: skip
    with imported(tmp_path, file) as (summary, store):
        assert [text for text in told(store) if text.startswith("karpenter: ")] == [
            "karpenter: Reconciler error: x", "karpenter: NodeClaim a-1: Reconciler error: conflict",
        ]  # fmt: skip
        assert summary.imported.other == 1


def test_f61_lines_that_the_logger_dropped_are_noticed(tmp_path: Path) -> None:
    run: dict[str, Any] = {"reconcileID": "r-1"}
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "computed new nodeclaim(s) to fit pod(s)", "provisioner", nodeclaims=3, pods=9, **run),
        log_line("09:00:01.000", "created nodeclaim", "provisioner", **named("a-1"), **run),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert any("1 of the 3 NodeClaims of this plan" in said.text for said in payloads(store, ControllerSaid))


def test_f68_a_failed_launch_ends_the_claim(tmp_path: Path) -> None:
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "created nodeclaim", "provisioner", **named("a-1")),
        log_line("09:00:02.000", "failed launching nodeclaim", **named("a-1"), error="no capacity"),
        log_line("09:00:03.000", "deleted nodeclaim", **named("a-1")),
        log_line("09:00:04.000", "created nodeclaim", "provisioner", **named("a-2")),
        log_line("09:00:05.000", "deleted nodeclaim", **named("a-2")),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [(f.claim, f.message) for f in payloads(store, LaunchFailed)] == [("a-1", "no capacity")]
        assert [c.claim for c in payloads(store, Cancelled)] == ["a-2"]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, "a-1 is launched: m5.large"),
        ({"capacity_type": "spot"}, "a-1 is launched: m5.large (spot)"),
        ({"capacity_type": "spot", "zone": "eu-west-1a"}, "a-1 is launched: m5.large (spot) in eu-west-1a"),
    ],
    ids=str,
)
def test_a_launch_is_told_as_far_as_the_log_knows_it(tmp_path: Path, known: dict[str, str], said: str) -> None:
    known = known | {"provider-id": "aws:///z/i-1", "instance_type": "m5.large"}
    launched = log_line("09:00:02.000", "launched nodeclaim", **named("a-1"), **known)
    file = written(tmp_path, "log", log_line("09:00:00.000", "created nodeclaim", **named("a-1")), launched)
    with imported(tmp_path, file) as (_, store):
        assert any(text.split(",")[0].endswith(said) for text in told(store)), told(store)


@pytest.mark.parametrize(
    "failed",
    [
        {"command_id": "c-1"},
        {"command": "Empty/c-1: delete: nodepools=[general]: [n-1]"},
        {"nodes": "n-0,n-1"},
        {"disrupted_nodes": [{"Node": {"name": "n-1"}}]},
        {"disrupted_nodes": [{"NodeClaim": {"name": "a-1"}}]},
    ],
)
def test_f78_a_decision_that_failed_explains_no_later_removal(tmp_path: Path, failed: dict[str, Any]) -> None:
    target = {"Node": {"name": "n-1"}, "NodeClaim": {"name": "a-1"}}
    decision: dict[str, Any] = {
        "reason": "empty",
        "decision": "delete",
        "disrupted_nodes": [target],
        "command_id": "c-1",
    }
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "disrupting node(s)", "disruption", **decision),
        log_line("09:00:05.000", "failed terminating nodes while executing a disruption command", "disruption.queue",
             error="it timed out", **failed),
        log_line("10:00:00.000", "tainted node", "node.termination", Node={"name": "n-1"}, **named("a-1")),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [t.why for t in payloads(store, Tainted)] == ["unknown"]
        assert "karpenter did not carry out its decision: a-1" in told(store)


def test_instances_whose_ids_are_masked_are_not_taken_for_one(tmp_path: Path) -> None:
    """As people paste logs: every provider id is aws:///eu-west-1a/i-xxxxxxxx."""
    masked = {"provider_id": "aws:///eu-west-1a/i-xxxxxxxx"}
    launches = [
        log_line(f"09:00:0{at}.000", "launched nodeclaim", instance_type="m5.large", **named(claim), **masked)
        for at, claim in enumerate(("a-1", "a-2"))
    ]
    interrupted = log_line("09:10:00.000", "initiating delete from interruption message", "interruption",
                       messageKind="spot_interrupted", Node={"name": "n-2"}, **named("a-2"))  # fmt: skip
    with imported(tmp_path, written(tmp_path, "log", *launches, interrupted)) as (_, store):
        assert {tainted.claim: tainted.why for tainted in payloads(store, Tainted)} == {"a-2": "interrupted"}


def test_f92_a_claim_that_is_first_met_at_its_launch_registers_when_the_log_says_so(tmp_path: Path) -> None:
    node: dict[str, Any] = {"Node": {"name": "n-1"}, **named("a-1")}
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "launched nodeclaim", provider_id="aws:///eu-west-1a/i-1", **named("a-1")),
        log_line("09:00:30.000", "registered nodeclaim", **node),
        log_line("09:00:45.000", "initialized nodeclaim", **node),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [adopted.state for adopted in payloads(store, Adopted)] == ["launched"]
        assert [entry.at - AT for entry in entries_of(store, Registered)] == [30_000]
        assert [entry.at - AT for entry in entries_of(store, Initialized)] == [45_000]


def test_f87_of_a_node_whose_claim_no_line_names_the_decision_is_told(tmp_path: Path) -> None:
    """Up to 1.2 a decision has the names of nodes alone."""
    decided = "disrupting via drift delete, terminating 1 nodes (4 pods) ip-1.ec2.internal/t3a.small/on-demand"
    file = written(tmp_path, "log", old("09:00:00.000", "disruption", decided))
    with imported(tmp_path, file) as (_, store):
        assert "node ip-1.ec2.internal is there" in told(store)
        with pytest.raises(SubjectUnknown, match="which NodeClaim the node had was not imported") as refused:
            explain_node(store, "ip-1.ec2.internal")
        assert "karpenter takes it away, as drifted" in refused.value.hint


def test_f91_a_node_that_goes_before_its_replacement_is_in_service_goes_for_another_cause(tmp_path: Path) -> None:
    decision: dict[str, Any] = {
        "reason": "underutilized", "decision": "replace", "replacement_node_count": 1, "reconcileID": "r-1",
        "disrupted_nodes": [{"Node": {"name": "n-1"}, "NodeClaim": {"name": "a-1"}}],
    }  # fmt: skip
    file = written(
        tmp_path, "log",
        log_line("09:00:00.000", "disrupting node(s)", "disruption", **decision),
        log_line("09:00:01.000", "created nodeclaim", "disruption", **named("a-2"), reconcileID="r-1"),
        log_line("09:00:05.000", "tainted node", "node.termination", Node={"name": "n-1"}, **named("a-1")),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [t.why for t in payloads(store, Tainted)] == ["unknown"]


def test_f87_a_node_name_that_is_used_again_belongs_to_the_claim_of_its_time(tmp_path: Path) -> None:
    def life(claim: str, hour: int) -> list[str]:
        return [
            log_line(f"{hour:02}:00:00.000", "created nodeclaim", "provisioner", **named(claim)),
            log_line(f"{hour:02}:00:30.000", "registered nodeclaim", **named(claim), Node={"name": "ip-10-0-0-1"}),
            log_line(f"{hour:02}:20:00.000", "tainted node", "node.termination", Node={"name": "ip-10-0-0-1"}),
            log_line(f"{hour:02}:21:00.000", "deleted nodeclaim", **named(claim)),
        ]

    with imported(tmp_path, written(tmp_path, "log", *life("a-1", 9), *life("a-2", 10))) as (_, store):
        assert [(t.claim, t.lifetime > 0) for t in payloads(store, Terminated)] == [("a-1", True), ("a-2", True)]
        hours = [entry.at // 3_600_000 % 24 for entry in entries_of(store, Tainted)]
        assert hours == [9, 10]


@pytest.mark.parametrize(("first", "second"), [(slice(0, 9), slice(9, None)), (slice(0, 12), slice(4, None))])
def test_f93_several_logs_are_told_as_one(tmp_path: Path, first: slice, second: slice) -> None:
    """As of yesterday and today, of both replicas, or fetched twice."""
    lines = (SAMPLES / "karpenter-1.12.log").read_text().splitlines()
    parts = [written(tmp_path, name, *lines[part]) for name, part in (("2.log", second), ("1.log", first))]
    with imported(tmp_path, *parts) as (_, store):
        in_parts = [entry.payload for entry in store.scan() if not isinstance(entry.payload, RecordStarted)]
    with imported(tmp_path, written(tmp_path, "twice.log", *lines, *lines)) as (summary, store):
        twice = [entry.payload for entry in store.scan() if not isinstance(entry.payload, RecordStarted)]
        assert summary.imported.other == len(lines)
    with imported(tmp_path, "karpenter-1.12.log") as (_, store):
        whole = [entry.payload for entry in store.scan() if not isinstance(entry.payload, RecordStarted)]
    assert in_parts == twice == whole


def test_a_real_run_of_1_14_is_read_whole(tmp_path: Path) -> None:
    """29 of 86 NodeClaims were left in that run, and 4 were launched after the first 82."""
    with imported(tmp_path, "karpenter-1.14-kwok.log.gz") as (summary, store):
        assert (summary.claims, summary.gone, summary.adopted, summary.decisions) == (86, 57, 0, 22)
        assert summary.files[0].unread == 0
        assert "unknown" not in {t.why for t in payloads(store, Tainted)}
        report = verify(store)
        assert (report.exit_code, report.claim_events) == (0, 458)


def test_the_same_log_gives_the_same_entries(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    with imported(first, "karpenter-1.12.log") as (_, one), imported(second, "karpenter-1.12.log") as (_, other):
        assert list(one.scan()) == list(other.scan())
    assert (first / "imported.kerf").read_bytes() == (second / "imported.kerf").read_bytes()


def test_the_record_says_that_it_is_partial(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-1.4.log") as (_, store):
        (started,) = payloads(store, RecordStarted)
        assert started.imported is not None
        assert started.imported.sources == ("karpenter-log",)
        assert {"pods", "prices", "policy", "actors"} <= set(started.imported.lacks)
