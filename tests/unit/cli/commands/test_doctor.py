"""kerf doctor on an API server that says what a test wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.doctor.cluster import _clock, check_cluster
from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.cli.doctor.record import check_record
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import read_settings
from kerf.adapters.store.open import open_record
from tests.support.servers.fake_kubernetes import Document, FakeApi, serving

pytestmark = pytest.mark.real_time

REVIEWS = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
POOLS, CLASSES = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"


def pool(name: str, node_class: str, group: str = "karpenter.kwok.sh") -> Document:
    ref = {"group": group, "kind": "KWOKNodeClass", "name": node_class}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"nodeClassRef": ref}}}}


def node_class(name: str, ready: str = "") -> Document:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


@pytest.fixture
def api() -> FakeApi:
    """A cluster with nothing wrong."""
    made = FakeApi()
    made.answers = {
        "GET /version": [(200, {"major": "1", "minor": "36+", "gitVersion": "v1.36.3"})],
        REVIEWS: [(201, {"status": {"allowed": True}})],
        "GET /apis/karpenter.sh/v1": [(200, {"resources": [{"name": "nodepools"}, {"name": "nodeclaims"}]})],
        "GET /apis/karpenter.kwok.sh/v1alpha1": [(200, {"resources": [{"name": "kwoknodeclasses"}]})],
        f"GET {POOLS}": [(200, {"items": [pool("default", "default")]})],
        f"GET {CLASSES}": [(200, {"items": [node_class("default")]})],
        f"GET {LEASE}": [(200, {"spec": {"holderIdentity": "karpenter-7d"}})],
    }
    return made


async def findings(api: FakeApi, mode: str = "control", **flags: Any) -> dict[str, list[Finding]]:
    async def run() -> list[Finding]:
        async with serving(api) as session:
            return [
                finding async for finding in check_cluster(session, mode, "kwok", read_settings(Flags(**flags), {}))
            ]

    found: dict[str, list[Finding]] = {}
    for finding in await run():
        found.setdefault(finding.what, []).append(finding)
    return found


@pytest.mark.asyncio(loop_scope="function")
async def test_nothing_wrong(api: FakeApi) -> None:
    found = await findings(api)
    assert {finding.level for group in found.values() for finding in group} == {OK}
    assert list(found) == ["api server", "clock", "rights", "definitions", "nodepools", "lease"]
    assert "karpenter-7d" in found["lease"][0].text
    assert "lease" not in await findings(api, "observe")


@pytest.mark.asyncio(loop_scope="function")
async def test_an_old_api_server(api: FakeApi) -> None:
    api.answers["GET /version"] = [(200, {"major": "1", "minor": "27", "gitVersion": "v1.27.1"})]
    (found,) = (await findings(api))["api server"]
    assert (found.level, "1.28" in found.hint) == (BAD, True)


@pytest.mark.asyncio(loop_scope="function")
async def test_missing_rights_are_named(api: FakeApi) -> None:
    """The first two that are asked for."""
    denied = [(201, {"status": {"allowed": False}})] * 2
    api.answers[REVIEWS] = [*denied, (201, {"status": {"allowed": True}})]
    (found,) = (await findings(api))["rights"]
    assert found.level == BAD
    assert found.text == "not allowed: create events, patch events"


@pytest.mark.asyncio(loop_scope="function")
async def test_definitions_that_are_not_served(api: FakeApi) -> None:
    """Those of a feature gate count when it is on; NodePools are not looked at then."""
    found = await findings(api, feature_gates="NodeOverlay=true")
    assert [definition.level for definition in found["definitions"]] == [OK, OK, BAD]
    assert "nodeoverlays not served" in found["definitions"][2].text
    assert "nodepools" not in found


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize(
    ("pools", "classes", "says"),
    [
        ([], [], "there is none"),
        ([pool("a", "gone")], [node_class("default")], "a names the NodeClass gone, which is not there"),
        ([pool("a", "ill")], [node_class("ill", "False")], "the NodeClass ill of a is not ready"),
        ([pool("a", "x", "karpenter.k8s.aws")], [], "a is of karpenter.k8s.aws, and left alone"),
    ],
)
async def test_nodepools_that_cannot_be_used(
    api: FakeApi, pools: list[Document], classes: list[Document], says: str
) -> None:
    """NodePools that cannot be used (L-253)."""
    api.answers[f"GET {POOLS}"] = [(200, {"items": pools})]
    api.answers[f"GET {CLASSES}"] = [(200, {"items": classes})]
    (found,) = (await findings(api))["nodepools"]
    assert (found.level, says in found.text) == (NOTE, True)


@pytest.mark.asyncio(loop_scope="function")
async def test_l304_devices_are_looked_for_only_where_they_are_not_ignored(api: FakeApi) -> None:
    assert "devices" not in await findings(api)
    path = "GET /apis/resource.k8s.io/v1"
    for status, level in ((200, OK), (404, NOTE)):
        api.answers[path] = [(status, {})]
        (found,) = (await findings(api, ignore_dra_requests="false"))["devices"]
        assert found.level == level


def test_a_clock_that_is_wrong() -> None:
    found = _clock("Thu, 01 Jan 2015 00:00:00 GMT")
    assert (found.level, "ahead of the API server's" in found.text) == (BAD, True)
    assert _clock("").level == NOTE


def test_the_place_of_the_record(tmp_path: Path) -> None:
    """Looking at it makes none."""
    url = f"sqlite://{tmp_path / 'record.kerf'}"
    assert [finding.level for finding in check_record(url)] == [OK]
    assert not list(tmp_path.iterdir())
    open_record(url, "create").close()
    assert [finding.text for finding in check_record(url)] == ["it is there and can be written"]
    (missing,) = check_record(f"sqlite://{tmp_path / 'no' / 'record.kerf'}")
    assert missing.level == BAD
    (tmp_path / "text").write_text("no record")
    (wrong,) = check_record(f"sqlite://{tmp_path / 'text'}")
    assert (wrong.level, "KERF108" in wrong.text) == (BAD, True)
    for no_url in ("record.kerf", "/var/lib/record.kerf", "sqlite://record.kerf", "mysql://db.example.com/kerf"):
        (found,) = check_record(no_url)
        assert (found.level, "KERF333" in found.text) == (BAD, True), no_url
