"""Tags of an EC2NodeClass that EC2 or IAM would refuse (KERF524)."""

from __future__ import annotations

import pytest

from kerf.engine.model.crds.ec2_tags import MOST, OF_KERF, tag_problems
from kerf.engine.model.manifests.validate import judge


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"aws:cost": "x"}, "aws:"),
        ({"AWS:cost": "x"}, "aws:"),
        ({"k" * 129: "x"}, "at most 128"),
        ({"k": "x" * 257}, "256"),
        ({f"k{n}": "x" for n in range(MOST - OF_KERF + 1)}, "45 tags"),
        ({"sum": "\N{N-ARY SUMMATION}"}, "IAM"),
    ],
)
def test_what_ec2_or_iam_would_refuse_is_named(tags: dict[str, str], said: str) -> None:
    (problem,) = tag_problems(tags, with_profile=True)
    assert (problem.code, said in problem.message) == ("KERF524", True)


def test_what_they_take_is_taken() -> None:
    tags = {"k" * 128: "x" * 256, "\u00e9t\u00e9": "a b", "a:b/c=d+e-f@g.h_": ""}
    assert list(tag_problems(tags, with_profile=True)) == []
    assert list(tag_problems({"sum": "\N{N-ARY SUMMATION}"}, with_profile=False)) == []


def test_validate_refuses_them() -> None:
    terms = {"subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}
    spec = {"amiSelectorTerms": [{"alias": "al2023@latest"}], **terms, "role": "node", "tags": {"aws:x": "y"}}
    document = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "a"}, "spec": spec}
    assert [(found.code, found.path) for found in judge(document).violations] == [("KERF524", "spec.tags[aws:x]")]
