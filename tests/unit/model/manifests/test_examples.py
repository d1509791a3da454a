"""docs/examples: every manifest decodes; the published fragments are refused with the codes that the README gives."""

import re
from pathlib import Path

import pytest
import yaml

from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.manifests.decode import Decoded, decode_object
from kerf.engine.model.manifests.violations import CODES, ManifestError
from tests.support.repository import ROOT

DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
# simulations/ holds whole scenes for `kerf simulate`, Timelines among them; tests/contract/test_docs_commands.py runs
# them. ci/ holds a workflow and a policy: tests/contract/test_ci_example.py.
ACCEPTED = sorted(p for p in EXAMPLES.rglob("*.yaml") if p.parent.name not in ("refused", "simulations", "ci"))
REFUSED = sorted((EXAMPLES / "refused").glob("*.yaml"))


def decode(path: Path) -> Decoded:
    return decode_object(yaml.safe_load(path.read_text()), source=path.name)


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda p: str(p.relative_to(EXAMPLES)))
def test_every_example_decodes(path: Path) -> None:
    assert isinstance(decode(path).object, NodePool | EC2NodeClass | Workload)


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: p.name)
def test_fragments_are_refused_with_the_codes_of_the_readme(path: Path) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (KERF[^|]+) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    codes = dict(rows)[path.name]
    with pytest.raises(ManifestError) as refused:
        decode(path)
    assert ", ".join(sorted({v.code for v in refused.value.violations})) == codes


def test_the_readme_speaks_of_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for path in (*ACCEPTED, *REFUSED):
        assert f"`{path.relative_to(path.parents[1] if path.parent.name == 'v1beta1' else path.parent)}`" in text


@pytest.mark.parametrize("folder", ["workshop", "black-belt", "resource-definitions"])
def test_both_versions_of_a_node_pool_ask_for_the_same_nodes(folder: str) -> None:
    """L-127: requirements, taints, labels and limits are copied."""
    new, old = decode(EXAMPLES / folder / "nodepool.yaml"), decode(EXAMPLES / folder / "v1beta1/nodepool.yaml")
    assert isinstance(new.object, NodePool)
    assert isinstance(old.object, NodePool)
    for name in ("requirements", "taints", "startup_taints", "labels", "limits", "weight", "node_class"):
        assert getattr(new.object, name) == getattr(old.object, name)


def test_integer_values_are_named_one_by_one() -> None:
    """L-32: values are a list of strings; the seed's manifest has integers."""
    with pytest.raises(ManifestError) as refused:
        decode(EXAMPLES / "refused/integer-values.yaml")
    first = refused.value.violations[0]
    assert first.path == "spec.template.spec.requirements[0].values[0]"
    assert first.hint == 'Put it in quotes: "4"'
    assert len(refused.value.violations) == 6


def test_the_workshop_asks_for_one_gibibyte_a_replica() -> None:
    decoded = decode(EXAMPLES / "workshop/inflate.yaml")
    assert isinstance(decoded.object, Workload)
    shape = decoded.blobs[decoded.object.shape]
    assert isinstance(shape, PodShape)
    assert (decoded.object.namespace, decoded.object.replicas) == ("other", 0)
    assert (shape.requests, shape.node_selector, shape.grace) == ({"memory": 2**30}, {"type": "karpenter"}, 0)


def test_the_table_of_codes_is_the_list_of_codes() -> None:
    rows = re.findall(r"^\| (KERF\d+) \| (.+) \|$", (DOCS / "errors-input.md").read_text(), re.MULTILINE)
    assert dict(rows) == CODES
