from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.problem.problem import NodeInput


def test_a_node_to_which_no_pod_is_bound_keeps_what_was_compiled_of_it() -> None:
    node = NodeInput("node", "", {}, (), {"cpu": 2_000, "pods": 10})
    compiled = node.compiled("what", list[str])
    unchanged = node.with_pods([])
    assert unchanged == node
    assert unchanged.compiled("what", list[str]) is compiled


def test_a_node_to_which_pods_are_bound_has_less_room() -> None:
    node = NodeInput("node", "", {}, (), {"cpu": 2_000, "pods": 10})
    assert node.with_pods([PodShape(requests={"cpu": 500})] * 2).available == {"cpu": 1_000, "pods": 8}
