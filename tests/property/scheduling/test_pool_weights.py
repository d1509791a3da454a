"""A new node of a NodePool of less weight is for pods that the first plan puts on none of more (S-63), whether pods are
told their nodes or not, and also where they must be apart or NodePools have small limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, problem, shape, spec
from tests.support.strategies.plans import relaxed_settings


@st.composite
def problems(draw: st.DrawFn, nominations: bool) -> Problem:
    limits = {"cpu": 8000} if draw(st.integers(0, 4)) == 0 else None
    pools = [
        pool("a", spec(lbl.CAPACITY_TYPE, "In", "on-demand"), weight=100, limits=limits),
        pool("b", spec(lbl.CAPACITY_TYPE, "In", "spot"), weight=50),
        *([pool("c", weight=10)] if draw(st.booleans()) else []),
    ]
    work = Workloads()
    for number in range(draw(st.integers(2, 4))):
        name = f"w{number}"
        apart = AffinityTerm(lbl.HOSTNAME, Selector({"app": name}))
        wanted = shape(
            draw(st.sampled_from([300, 500, 900, 1900, 3000])),
            draw(st.sampled_from([1, 2, 3, 6])) * GI,
            labels={"app": name},
            anti_affinity=(apart,) if draw(st.booleans()) else (),
            node_selector={lbl.CAPACITY_TYPE: "spot"} if draw(st.booleans()) else {},
        )
        work.add(name, draw(st.integers(1, 6)), wanted)
    return problem(work, ladder(2, 4, 8, 16), *pools, nominations=nominations)


def lighter_nodes(asked: Problem, first: Plan, planned: Plan) -> list[int]:
    """The new nodes, by number, for which no pod is left that the first plan puts on no NodePool of more weight. Each
    pod counts for one node, and pods of one kind for each other."""
    weight = {pool_input.pool.name: pool_input.pool.weight for pool_input in asked.pools}
    own = {uid: weight[claim.node_pool] for claim in first.claims for uid in claim.pods}
    on_new = [uid for claim in planned.claims for uid in claim.pods]
    node_of: dict[str, int] = {}

    def seated(number: int, tried: set[str]) -> bool:
        claim = planned.claims[number]
        kinds = {asked.pod_of[uid].shape_key for uid in claim.pods}
        for uid in on_new:
            fits = asked.pod_of[uid].shape_key in kinds and own.get(uid, 0) <= weight[claim.node_pool]
            if fits and uid not in tried:
                tried.add(uid)
                if uid not in node_of or seated(node_of[uid], tried):
                    node_of[uid] = number
                    return True
        return False

    return [number for number in range(len(planned.claims)) if not seated(number, set())]


@pytest.mark.parametrize("nominations", [False, True])
@given(data=st.data())
@relaxed_settings
def test_s63_s88_no_node_of_less_weight_is_opened_for_pods_of_more(data: st.DataObject, nominations: bool) -> None:
    asked = data.draw(problems(nominations))
    assert lighter_nodes(asked, best_plan(asked, 0), best_plan(asked, 60)) == []
