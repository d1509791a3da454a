"""What is said of calls that never left."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from kerf.adapters.aws.session import AwsError, call


def refused(failure: Exception) -> AwsError:
    def describe_instances(**_: Any) -> dict[str, Any]:
        raise failure

    with pytest.raises(AwsError) as caught:
        call(describe_instances)
    return caught.value


def test_without_credentials_the_hint_says_where_they_come_from() -> None:
    assert "Give the pod a role" in str(refused(NoCredentialsError()))


def test_without_an_answer_the_effect_is_looked_for() -> None:
    found = refused(EndpointConnectionError(endpoint_url="https://ec2.example.com"))
    assert (found.code, found.unknown) == ("KERF502", True)
    assert str(found).endswith("Look for its effect before trying again")
