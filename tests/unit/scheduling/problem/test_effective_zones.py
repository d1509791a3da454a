"""S-176: the zone that a pending pod waits for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint, VolumeRef
from kerf.engine.model.kubernetes.volumes import Volume, VolumeClaim, VolumeFacts
from kerf.engine.scheduling.problem.effective_zones import effective_zones
from kerf.engine.scheduling.problem.problem import NodeInput
from tests.support.scenarios.problems import Workloads, ladder, pool, preferred, problem, shape, spec, term


def zone(*volume_zones: str, bound: str = "", **fields: Any) -> str:
    """Of one pod; `volume_zones`: where its volume may be; `bound`: the zone that a pod app=b is in."""
    volumes = (VolumeRef("v", "claim"),) if volume_zones else ()
    work = Workloads().add("a", 1, shape(labels={"app": "a"}, volumes=volumes, **fields))
    there = [NodeInput("n", "c", {lbl.ZONE: bound}, (), {"cpu": 9000, "pods": 9})] if bound else []
    given = problem(work, ladder(2), nodes=there, bound=[(shape(labels={"app": "b"}), "n")] if bound else [])
    terms = tuple(term((lbl.ZONE, "In", (volume_zone,))) for volume_zone in volume_zones)
    claim = VolumeClaim("default", "claim", volume="pv", phase="Bound", bind_completed=True)
    facts = VolumeFacts(claims={claim.key: claim}, volumes={"pv": Volume("pv", terms=terms)})
    return effective_zones(replace(given, volumes=facts))["a-0"]


IN_Z2 = {lbl.ZONE: "z2"}
WITH_B = (AffinityTerm(lbl.ZONE, Selector({"app": "b"})),)
PREFERS = (preferred(1, (lbl.ZONE, "In", ("z1",))),)


@pytest.mark.parametrize(
    ("fields", "volumes", "expected"),
    [
        pytest.param({"node_selector": IN_Z2}, (), "z2", id="selector"),
        pytest.param({"preferred_terms": PREFERS}, (), "flexible", id="preference only"),
        pytest.param({}, ("z1", "z2"), "flexible", id="volume in two"),
        pytest.param({}, ("z1",), "z1", id="volume in one"),
        pytest.param({"node_selector": {lbl.ZONE: "z1"}}, ("z2",), "none", id="selector and volume elsewhere"),
        pytest.param({"affinity": WITH_B}, (), "none", id="affinity to nothing"),
    ],
)
def test_s176_e125(fields: dict[str, Any], volumes: tuple[str, ...], expected: str) -> None:
    assert zone(*volumes, **fields) == expected


def test_s176_topology_leaves_one_several_or_none() -> None:
    assert zone(affinity=WITH_B, bound="z3") == "z3"
    assert zone(anti_affinity=WITH_B, bound="z3") == "flexible"
    assert zone(affinity=WITH_B, bound="z3", node_selector=IN_Z2) == "none"
    even = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "b"}))
    assert zone(spread=(even,), bound="z3") == "flexible"
    assert zone(spread=(even,), bound="z3", preferred_terms=PREFERS) == "z1"
    own = (AffinityTerm(lbl.ZONE, Selector({"app": "a"})),)
    assert zone(affinity=own) == "flexible"  # the first of its kind may go anywhere


def test_s176_without_anything_it_is_flexible() -> None:
    assert zone() == "flexible"
    work = Workloads().add("a", 2, shape())
    one = pool("default", spec(lbl.ZONE, "In", "z1"))
    assert set(effective_zones(problem(work, ladder(2), one)).values()) == {"flexible"}  # S-176 asks the pod alone
