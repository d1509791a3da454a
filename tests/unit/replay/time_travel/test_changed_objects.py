"""What a changed EC2NodeClass, NodePool or PodDisruptionBudget is told as."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from tests.support.records import stored
from tests.support.simulation.budgets import budget
from tests.support.simulation.run import Run, documents, scale, workshop

MINUTE = 60_000


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (node_class,) = documents("workshop/ec2nodeclass.yaml")
    changed = deepcopy(node_class)
    changed["spec"]["amiSelectorTerms"] = [{"alias": "al2023@v20250101"}]
    changed["spec"]["subnetSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": "new"}}]
    changed["spec"]["securityGroupSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": "new"}}]
    for one, image in ((node_class, "ami-0a"), (changed, "ami-0b")):
        name = one["spec"]["amiSelectorTerms"][0]["alias"]
        one["status"] = {"amis": [{"id": image, "name": f"image-{name}", "requirements": []}]}
    actions = (scale("1m", 3), {"at": "5m", "action": "apply", "object": changed})
    found = [node_class if each["kind"] == "EC2NodeClass" else each for each in workshop(*actions)]
    return stored(tmp_path_factory.mktemp("r") / "r.kerf", Run([*found, budget(1)], until=8 * MINUTE).memory)


def test_a_changed_alias_is_told_before_the_images(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alias = "spec.amiSelectorTerms[0].alias al2023@latest → al2023@v20250101"
    for command in (["diff", str(record), "+4m", "+6m"], ["log", str(record), "--reason", "nodeclass-changed"]):
        assert main(command) == 0
        told = capsys.readouterr().out
        assert told.index(alias) < told.index("status.amis [image-al2023@latest (ami-0a)] → ")


def test_changed_selectors_of_subnets_and_security_groups_are_told(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["diff", str(record), "+4m", "+6m"], ["log", str(record), "--reason", "nodeclass-changed"]):
        assert main(command) == 0
        told = capsys.readouterr().out
        assert "spec.subnetSelectorTerms[0].tags[karpenter.sh/discovery] eks-workshop → new" in told
        assert "spec.securityGroupSelectorTerms[0].tags[karpenter.sh/discovery] eks-workshop → new" in told


def test_what_is_asked_for_comes_first_and_statuses_last(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(record), "+10s", "+6m"]) == 0
    told = capsys.readouterr().out
    parts = ["~ nodeclass/default", "+ node ip-", "~ Deployment other/inflate", "price: ", "~ pdb/other/inflate"]
    places = [told.index(part) for part in parts if part in told]
    assert len(places) >= 4
    assert places == sorted(places)
