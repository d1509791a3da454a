"""Tags of what kerf makes on EC2."""

from __future__ import annotations

import pytest

from kerf.adapters.aws import tags


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("eks:eks-cluster-name", True), ("karpenter.sh/nodepool", True), ("karpenter.sh/nodeclaim", True),
        ("karpenter.k8s.aws/ec2nodeclass", True), ("kubernetes.io/cluster/demo", True),
        ("kubernetes.io/cluster/a_b-1", True), ("kubernetes.io/cluster/-a", False), ("kubernetes.io/cluster/", False),
        ("kubernetes.io/cluster/a/b", False), ("karpenter.sh/nodepools", False), ("Name", False), ("team", False),
    ],
)  # fmt: skip
def test_a_322_keys_that_only_kerf_sets(key: str, refused: bool) -> None:
    assert tags.restricted({"team": "a", key: "x"}) == ([key] if refused else [])


def test_a_321_a_324_what_says_whose_a_thing_is_stands_and_a_name_of_the_users_too() -> None:
    given = {"Name": "web", "eks:eks-cluster-name": "another", "team": "a"}
    assert tags.launch_tags("demo", "default", "pool", given, "pool-1") == {
        "Name": "web", "team": "a", "eks:eks-cluster-name": "demo", "kubernetes.io/cluster/demo": "owned",
        "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/nodepool": "pool",
        "karpenter.sh/nodeclaim": "pool-1",
    }  # fmt: skip
