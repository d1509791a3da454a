"""Who may read what kerf serves: TokenReview and SubjectAccessReview."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from kerf.adapters.kubernetes import reviewed_access as access_module
from kerf.adapters.kubernetes.read_only_session import ReadingSession, WriteRefused
from kerf.adapters.kubernetes.reviewed_access import ReviewedAccess
from tests.support.servers.fake_kubernetes import FakeApi, serving
from tests.support.servers.reviews import USER, knows

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="function")]


async def test_the_api_server_says_whose_token_it_is_and_whether_they_may() -> None:
    api = knows()
    async with serving(api) as session:
        access = ReviewedAccess(session, "/metrics")
        assert [await access.check("Bearer good") for _ in range(3)] == [HTTPStatus.OK] * 3
    (_, _, _, token), (_, _, _, question) = api.asked
    assert token["spec"] == {"token": "good"}
    assert question["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
    assert (question["spec"]["user"], question["spec"]["groups"]) == (USER["username"], USER["groups"])


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer " + "x" * 5_000])
async def test_without_a_token_nobody_is_asked(header: str) -> None:
    api = knows()
    async with serving(api) as session:
        assert await ReviewedAccess(session, "/metrics").check(header) == HTTPStatus.UNAUTHORIZED
    assert api.asked == []


@pytest.mark.parametrize(
    ("api", "status"),
    [
        (knows(authenticated=False), HTTPStatus.UNAUTHORIZED),
        (knows(allowed=False), HTTPStatus.FORBIDDEN),
        (FakeApi(), HTTPStatus.SERVICE_UNAVAILABLE),
    ],
)
async def test_who_may_not_read_is_told_so(api: FakeApi, status: HTTPStatus) -> None:
    """The last API server has no such reviews: nobody knows, and nobody reads."""
    async with serving(api) as session:
        assert await ReviewedAccess(session, "/metrics").check("Bearer bad") == status


async def test_guessing_does_not_use_up_the_requests_that_kerf_may_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reviews are made one at a time. Those that would wait too long are sent away; answers are kept, and not for
    every guess."""
    monkeypatch.setattr(access_module, "REFUSED_PAUSE", 0.0)
    monkeypatch.setattr(access_module, "KNOWN", 4)
    api = knows(authenticated=False)
    async with serving(api) as session:
        access = ReviewedAccess(session, "/metrics")
        found = await asyncio.gather(*(access.check(f"Bearer {number}") for number in range(40)))
        assert found.count(HTTPStatus.SERVICE_UNAVAILABLE) == 40 - access_module.MAX_WAITING
        assert found.count(HTTPStatus.UNAUTHORIZED) == len(api.asked) == access_module.MAX_WAITING
        assert len(access._answers) <= 4
        assert not any(b"15" in key for key in access._answers), "tokens are kept as digests"


async def test_observe_mode_asks_and_writes_nothing() -> None:
    api = knows()
    async with serving(api) as session:
        reading = ReadingSession(session._configuration)
        try:
            assert await ReviewedAccess(reading, "/metrics").check("Bearer good") == HTTPStatus.OK
            with pytest.raises(WriteRefused):
                await reading.request("POST", "/api/v1/namespaces/default/pods", body={})
        finally:
            await reading.close()
