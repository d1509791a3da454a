"""An API server that says who a scraper is, and whether they may read the metrics."""

from __future__ import annotations

from typing import Any

from kerf.adapters.kubernetes.reviewed_access import ACCESS_REVIEWS, TOKEN_REVIEWS
from tests.support.servers.fake_kubernetes import FakeApi

USER: dict[str, Any] = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "u-1",
    "groups": ["system:authenticated"],
}


def knows(*, authenticated: bool = True, allowed: bool = True) -> FakeApi:
    api = FakeApi()
    about = {"authenticated": authenticated, "user": USER if authenticated else {}}
    api.answers[f"POST {TOKEN_REVIEWS}"] = [(201, {"status": about})]
    api.answers[f"POST {ACCESS_REVIEWS}"] = [(201, {"status": {"allowed": allowed}})]
    return api
