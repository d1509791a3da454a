"""One account for each module of tests: starting moto takes two seconds. Every call is held against AWS's service
models and the policies of deploy/iam."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kerf.adapters.aws.mock.environment import Environment, demo_environment
from tests.support.aws.boundary import Boundary
from tests.support.aws.iam.least_privilege import held_to_policy
from tests.support.servers.aws_world import CLOCK, AwsWorld


@pytest.fixture(scope="module")
def environment() -> Iterator[Environment]:
    """One account for the whole module: starting moto takes two seconds."""
    with demo_environment(CLOCK) as made:
        yield made


@pytest.fixture(autouse=True)
def boundary(environment: Environment) -> Iterator[Boundary]:
    with held_to_policy() as made:
        yield made


@pytest.fixture
def world(environment: Environment) -> Iterator[AwsWorld]:
    classes = list(environment.node_classes)
    yield AwsWorld(environment)
    environment.operator.plan.clear()
    environment.node_classes[:] = classes
