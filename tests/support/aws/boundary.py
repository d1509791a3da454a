"""Every call to AWS that a test makes kerf make, held against the service models.

`watched` puts itself in the place of `session.call`, through which all of kerf's calls go, whoever answers them: moto,
the shim, or a stub of a few lines. A stub's answer gets the members that AWS always gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from kerf.adapters.aws import session
from tests.support.aws.limits import documented_problems
from tests.support.aws.service_model import answer_problems, operation_model, request_problems, whole

_ASK = session.call


class Call(Struct, frozen=True):
    """A call that kerf made: the client's method and its parameters."""

    method: str
    parameters: Mapping[str, Any]


class Boundary:
    """The calls made while it is watched, in order, and what AWS would find wrong with them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.problems: list[str] = []
        self.before: list[Callable[[Call, Any], None]] = []
        """Who looks at a call, and at the method asked for, before AWS does."""

    def call(self, operation: Callable[..., Any], **parameters: Any) -> dict[str, Any]:
        """What `session.call` does; and writes down what is wrong with request and answer."""
        method = operation.__name__
        made = Call(method, parameters)
        self.calls.append(made)
        for look in self.before:
            look(made, operation)
        found = [*request_problems(method, parameters), *documented_problems(method, parameters)]
        self.problems += [f"{method} {problem}" for problem in found]
        answer = _ASK(operation, **parameters)
        stub = not hasattr(getattr(operation, "__self__", None), "meta")
        if stub:
            shape = operation_model(method).output_shape
            answer = whole(shape, answer) if shape is not None else answer
        self.problems += [f"{method} answers {problem}" for problem in answer_problems(method, answer, values=stub)]
        return answer


@contextmanager
def watched() -> Iterator[Boundary]:
    """The calls made inside."""
    boundary = Boundary()
    users = [module for name, module in sorted(sys.modules.items()) if name.startswith("kerf.adapters.")]
    with_call = [module for module in users if getattr(module, "call", None) is _ASK]
    patches = [patch.object(module, "call", boundary.call) for module in with_call]
    for one in patches:
        one.start()
    try:
        yield boundary
    finally:
        for one in patches:
            one.stop()
