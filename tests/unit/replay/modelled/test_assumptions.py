"""What a modelled run says that it takes for granted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Pod
from kerf.replay.modelled.assumptions import assumptions
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.modelled.workload import Comes, Timed
from tests.support.simulation.modelled import workload_of
from tests.support.simulation.run import Run, scale, workshop


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ((), "what an eviction made is no arrival"),
        ((0,), "; 1 pod comes and goes one by one"),
        ((60_000,), "1 pod ends by itself: it runs as long as it ran, from when it starts in the model"),
        ((60_000, 9), "2 pods end by themselves: each runs as long as it ran, from when it starts in the model"),
        ((60_000, 0), "; 2 pods come and go one by one"),
    ],
    ids=str,
)
def test_pods_without_replicas_are_counted_in_words(runs: tuple[int, ...], said: str) -> None:
    recorded = workload_of(Run(workshop(scale("10s", 1)), until=60_000).store)
    pod = Pod(uid="u", namespace="default", name="p", shape="")
    steps = tuple(Timed(recorded.since, Comes(f"slot-{number}", pod, lasts)) for number, lasts in enumerate(runs))

    told = list(assumptions(replace(recorded, steps=steps), FiguresFold(), None, 0))

    assert any(assumption.endswith(said) for assumption in told), told
