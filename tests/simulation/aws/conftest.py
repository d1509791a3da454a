"""One account for all lives: starting moto takes two seconds. Every call is held against AWS's service models
and the policies of deploy/iam."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.aws.boundary import Boundary, watched
from tests.support.aws.iam.least_privilege import Witness
from tests.support.aws.life import Account, account


@pytest.fixture(scope="module")
def the_account() -> Iterator[Account]:
    with account() as made:
        yield made


@pytest.fixture(autouse=True)
def boundary(the_account: Account) -> Iterator[Boundary]:
    """What kerf asks of AWS in this test, and what is answered, is what AWS's own model allows."""
    witness = Witness()
    with watched() as made:
        made.before.append(witness)
        yield made
    assert made.problems == []
    assert witness.refused == [], "deploy/iam/control.json does not allow what kerf asked for"
