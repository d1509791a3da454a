"""Holds each call that a test makes against deploy/iam: what the policies would refuse is a problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kerf.adapters.aws.mock.environment import CLUSTER, ROLE
from tests.support.aws.boundary import Boundary, Call, watched
from tests.support.aws.iam.account import Account
from tests.support.aws.iam.authorizations import Authorizations
from tests.support.aws.iam.policy import Asked, allows, load

NUMBER, REGION = "123456789012", "us-west-2"
VARIABLES = {
    "PARTITION": "aws", "REGION": REGION, "ACCOUNT_ID": NUMBER, "CLUSTER_NAME": CLUSTER, "NODE_ROLE": ROLE,
    "QUEUE": CLUSTER,
}  # fmt: skip


def policy(name: str) -> dict[str, Any]:
    """A policy of deploy/iam for the account of these tests."""
    return load(name, VARIABLES)


class Witness:
    """What IAM is asked when calls are made in moto's account. One of the boundary's `before`."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._authorizations = Authorizations(Account(NUMBER, REGION))
        self._policy = policy("control.json")

    def __call__(self, call: Call, operation: Any) -> None:
        self.asked += self._authorizations.of(call)

    @property
    def refused(self) -> list[str]:
        """What the policy would not allow, but for roles that the policy does not name."""
        roles = [one for one in self.asked if one.action == "iam:PassRole" and not one.resource.endswith(f"/{ROLE}")]
        return [str(one) for one in self.asked if one not in roles and not allows(self._policy, one)]


@contextmanager
def held_to_policy() -> Iterator[Boundary]:
    """The calls made inside. What kerf asks of AWS, and what is answered, has to be what AWS's own model and
    deploy/iam/control.json allow."""
    witness = Witness()
    with watched() as made:
        made.before.append(witness)
        yield made
    assert made.problems == []
    assert witness.refused == [], "deploy/iam/control.json does not allow what kerf asked for"
