"""kerf on AWS: how soon a launch is on the wire, how many calls it makes, interruptions, the start, a quiet hour.

    python benchmarks/aws.py [--only launches interruptions start quiet-hour] [--json]

The account is a stub on 127.0.0.1, in this process (benchmarks/ec2/account.py): canned answers, no moto backend, no
latency of a network. kerf runs in a process of its own for each scene, so its memory is without the stub.

- `launches`: from a decision in the record to its CreateFleet at the stub, of launches one after the other and of a
  burst; and the EC2 calls for each launched node of a burst of equal and of unequal claims, until it has its name.
- `interruptions`: messages a minute, from the queue to their decisions in the record, or to their deletion.
- `start`: seconds and memory from the start of the process to the catalogues of all NodeClasses in the record.
- `quiet-hour`: the calls of an hour in which nothing happens.

Karpenter's calls are not measured: they follow from docs/rules/aws.md, as `karpenter_burst` and `karpenter_hour` say.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ec2.account import Account
from benchmarks.scheduling import baseline

ROOT = Path(__file__).resolve().parents[1]
BURST, ALONE = 100, 60
CLASSES = 20
CLAIMS, MESSAGES = 300, 3_000
TARGETS = {"on_the_wire_p99_ms": 50, "messages_per_minute": 15_000, "start_seconds": 5.0, "start_mib": 200}
Figures = dict[str, Any]


@contextmanager
def fresh_account() -> Iterator[Account]:
    account = Account()
    account.warm()
    try:
        yield account
    finally:
        account.close()


@contextmanager
def scene(account: Account, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A scene in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ec2.scenes", *map(str, arguments)]
    environment = {**os.environ, **account.environment, "PYTHONPATH": str(ROOT)}
    environment["KERF_BEGAN"] = str(time.monotonic())
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[str]) -> Figures:
    output, _ = process.communicate(timeout=400)
    if process.returncode:
        raise SystemExit(f"{process.args!r} failed")
    found: Figures = json.loads(output.strip().splitlines()[-1])
    return found


def percentile(values: list[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def launches() -> Figures:
    with fresh_account() as account, scene(account, "launches", ALONE, 0, "equal") as process:
        told = ended(process)
    waits = [1000 * (account.arrived[claim] - at) for claim, at in told["decided"].items()]
    found: Figures = {
        "alone": ALONE,
        "on_the_wire_p50_ms": round(percentile(waits, 0.5), 1),
        "on_the_wire_p99_ms": round(percentile(waits[1:], 0.99), 1),
        "first_ms": round(waits[0], 1),  # its clients and its launch template are made first
        "target_p99_ms": TARGETS["on_the_wire_p99_ms"],
    }
    for kind in ("equal", "unequal"):
        with fresh_account() as account, scene(account, "launches", 0, BURST, kind) as process:
            told = ended(process)
        waits = [1000 * (account.arrived[claim] - at) for claim, at in told["decided"].items()]
        calls = {name: count for name, count in sorted(account.calls.items()) if name in LAUNCH_CALLS}
        peer = karpenter_burst(calls["CreateLaunchTemplate"], 1 if kind == "equal" else calls["CreateFleet"])
        found[kind] = {
            "claims": told["launched"],
            "last_on_the_wire_ms": round(max(waits), 1),  # without EC2's rate limits
            "cpu_ms_per_launch": round(1000 * told["burst_cpu"] / told["launched"], 1),
            "calls": calls,
            "calls_per_node": round(sum(calls.values()) / told["launched"], 2),
            "karpenter_calls": peer,
            "karpenter_calls_per_node": round(sum(peer.values()) / told["launched"], 2),
        }
    return found


LAUNCH_CALLS = ("CreateFleet", "CreateLaunchTemplate", "CreateTags", "DescribeInstances", "DescribeLaunchTemplates")


def karpenter_burst(templates: int, fleets: int) -> dict[str, int]:
    """Karpenter's calls for a burst, at the fewest that its rules allow. Equal requests become one CreateFleet if they
    come within its window (A-285, A-286), templates are shared (A-235, A-236), and the tagging controller, which has
    one worker, reads each instance and tags it (A-323)."""
    return {
        "CreateFleet": fleets,
        "CreateLaunchTemplate": templates,
        "CreateTags": BURST,
        "DescribeInstances": BURST,
        "DescribeLaunchTemplates": templates,
    }


def interruptions() -> Figures:
    with fresh_account() as account, scene(account, "interruptions", CLAIMS, MESSAGES) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        own = json.loads(process.stdout.readline())
        account.messages.extend(messages(own))
        process.stdin.write("go\n")
        process.stdin.flush()
        told = ended(process)
    return {
        "messages": MESSAGES,
        "own_claims": CLAIMS,
        "seconds": round(told["seconds"], 2),
        "cpu_seconds": round(told["cpu"], 2),
        "messages_per_minute": round(MESSAGES / told["seconds"] * 60),
        "messages_per_cpu_minute": round(MESSAGES / told["cpu"] * 60),
        "target_messages_per_minute": TARGETS["messages_per_minute"],
    }


def messages(own: list[str]) -> list[str]:
    """Each of the claims is interrupted; one message in three concerns another cluster's instance; in any order."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds = ("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation")
    events = []
    for number in range(MESSAGES):
        instance = own[number] if number < len(own) else f"i-foreign-{number}" if number % 3 else own[number % len(own)]
        head = {"version": "0", "id": f"event-{number}", "source": "aws.ec2", "time": now, "region": "us-west-2"}
        detail = {"instance-id": instance, "instance-action": "terminate"}
        events.append(json.dumps({**head, "detail-type": kinds[number >= len(own)], "detail": detail}))
    random.Random(18).shuffle(events)
    return events


def start() -> Figures:
    with fresh_account() as account:
        with scene(account, "start", CLASSES) as process:
            cold = ended(process)  # the stub writes its answers
        with scene(account, "start", CLASSES) as process:
            told = ended(process)
    return {
        "classes": CLASSES,
        "types": max(told["types"]),
        "zones": 4,
        "seconds": round(told["seconds"], 2),
        "seconds_at_first": round(cold["seconds"], 2),
        "cpu_seconds": round(told["cpu"], 2),
        "peak_mib": round(told["peak_mib"], 1),
        "target_seconds": TARGETS["start_seconds"],
        "target_mib": TARGETS["start_mib"],
    }


def quiet_hour() -> Figures:
    with fresh_account() as account, scene(account, "quiet-hour", 1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        account.calls.clear()
        process.stdin.write("go\n")
        process.stdin.flush()
        ended(process)
    calls = dict(sorted(account.calls.items()))
    calls["ReceiveMessage"] = 3_600 // 20
    peer = karpenter_hour()
    return {
        "classes": 1,
        "calls": calls,
        "calls_in_all": sum(calls.values()),
        "karpenter_calls": peer,
        "karpenter_calls_in_all": sum(peer.values()),
    }


def karpenter_hour() -> dict[str, int]:
    """Karpenter's calls in an hour for one class with an alias of five images, by its rules: a reconciliation a minute
    (A-76), each part as long as its cache holds (A-82, A-84, A-85, A-91); the images of `latest` aliases looked at
    again (A-373), instances listed (A-365) and their health asked for (A-351), and a queue that is polled for long
    (A-343). Dry runs: those of A-131 to A-133."""
    return dict(
        Counter(
            {
                "DescribeSubnets": 60,
                "DescribeSecurityGroups": 60,
                "DescribeImages": 60 + 2 * 5,
                "GetInstanceProfile": 4,
                "ListInstanceProfiles": 2,
                "CreateLaunchTemplate": 2,
                "DescribeLaunchTemplates": 2,
                "DeleteLaunchTemplate": 2,
                "CreateFleet dry": 2,
                "RunInstances dry": 2,
                "DescribeInstances": 30,
                "DescribeInstanceStatus": 180,
                "ReceiveMessage": 180,
            }
        )
    )


PARTS: dict[str, Callable[[], Figures]] = {
    "launches": launches,
    "interruptions": interruptions,
    "start": start,
    "quiet-hour": quiet_hour,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: Figures = {"stub": "canned answers over HTTP on 127.0.0.1", "baseline_seconds": round(baseline(), 6)}
    for part in options.only:
        found[part] = PARTS[part]()
    found["machine"] = {"python": platform.python_version(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps(found, indent=None if options.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
