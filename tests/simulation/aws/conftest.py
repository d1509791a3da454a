"""One account for all lives: starting moto takes two seconds. Every call is held against AWS's service models
and the policies of deploy/iam."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.aws.boundary import Boundary
from tests.support.aws.iam.least_privilege import held_to_policy
from tests.support.aws.life import Account, account


@pytest.fixture(scope="module")
def the_account() -> Iterator[Account]:
    with account() as made:
        yield made


@pytest.fixture(autouse=True)
def boundary(the_account: Account) -> Iterator[Boundary]:
    with held_to_policy() as made:
        yield made
