"""What Karpenter decides for scenarios that nobody has decided yet: asked of its own code (`reference/`, in Go, built
into the cache by `make reference-scenarios`), and its results as plans that the judge can look at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import Problem

SOURCES = Path(__file__).parent / "reference"
Result = dict[str, Any]
"""As in docs/plan.md, section 2; a claim has `labels`, too."""


def built() -> Path:
    """The program, built anew if its sources changed. Raises CalledProcessError where there is no Go or no module."""
    lines = subprocess.run([SOURCES / "build.sh"], check=True, capture_output=True, text=True).stdout.splitlines()
    return Path(lines[-1])


def decided(
    program: Path, scenarios: Sequence[Mapping[str, Any]], catalogues: Path, runs: int
) -> Iterator[tuple[str, list[Result]]]:
    """(name, the results of so many runs) of each scenario."""
    given = b"\n".join(msgspec.json.encode(scenario) for scenario in scenarios)
    command: list[str | Path] = [program, "-catalogues", catalogues, "-runs", str(runs)]
    done = subprocess.run(command, input=given, check=True, capture_output=True)
    for line in done.stdout.splitlines():
        answer = msgspec.json.decode(line)
        yield answer["name"], answer["runs"]


def plan_of(problem: Problem, result: Result) -> Plan:
    """A result as a plan of kerf's; the reasons for which pods have no place are left out."""
    uids = {pod.name: pod.uid for pod in problem.pods}

    def known(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(uids[name] for name in names)

    left = [*result["errors"], *result.get("unprocessed", [])]
    return Plan(
        claims=tuple(_claim(claim, known(claim["pods"])) for claim in result["newNodeClaims"]),
        placements=tuple(
            Placement(existing_node["name"], "", known(existing_node["pods"]))
            for existing_node in result["existingNodes"]
        ),
        unplaced=(Unplaced(known(left), ()),) if left else (),
        ignored=(Unplaced(known([*result["ignored"]]), ()),) if result.get("ignored") else (),
    )


def _claim(given: Mapping[str, Any], pods: tuple[str, ...]) -> OpenedClaim:
    constraints = tuple(_requirement(key, requirement) for key, requirement in sorted(given["requirements"].items()))
    by_key = {constraint.key: constraint for constraint in constraints}
    sold = by_key.get(CAPACITY_TYPE)
    held = sold is not None and sold.values == {RESERVED} and not sold.complement
    return OpenedClaim(
        node_pool=given["nodePool"],
        pods=pods,
        instance_types=tuple(given["instanceTypes"]),
        requirements=tuple(spec for constraint in constraints for spec in constraint.specs()),
        requests={},
        price=given["cheapestPrice"],
        capacity_types=tuple(given["launchCapacityTypes"]),
        labels=given["labels"],
        reservations=tuple(sorted(by_key[RESERVATION_ID].values)) if held and RESERVATION_ID in by_key else (),
        constraints=constraints,
    )


def _requirement(key: str, given: Mapping[str, Any]) -> Requirement:
    return Requirement(
        key,
        given["operator"] in ("NotIn", "Exists"),
        frozenset(given.get("values", [])),
        int(given["gte"]) if "gte" in given else None,
        int(given["lte"]) if "lte" in given else None,
        given.get("minValues"),
    )
