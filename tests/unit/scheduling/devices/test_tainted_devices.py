"""Tainted devices are for requests that tolerate the taint, as in kube-scheduler."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.devices import (
    ALL,
)
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from tests.support.scenarios.device_problems import (
    ask,
    claim,
    gpu,
    placed,
    solved,
    template,
    types,
)

HARD, SOFT = Taint("broken", "NoSchedule"), Taint("broken", "None")
TOLERANT = Toleration("broken", "Exists")


def test_a_tainted_device_is_for_requests_that_tolerate_it() -> None:
    offered = types(x=template(replace(gpu("g0"), taints=(HARD,))))
    refused = solved([claim("c")], {"a": ["c"]}, offered)
    ((why_not,),) = (group.reasons for group in refused.unplaced)
    assert (why_not.code, why_not.params["left"], why_not.params["selectors"]) == ("devices", 0, ["taints (1 of 1)"])
    assert placed(solved([claim("c", ask(tolerations=(TOLERANT,)))], {"a": ["c"]}, offered)) == {"a": "x#0"}


def test_a_taint_of_another_effect_keeps_nobody_away() -> None:
    offered = types(x=template(replace(gpu("g0"), taints=(SOFT,))))
    assert placed(solved([claim("c")], {"a": ["c"]}, offered)) == {"a": "x#0"}


def test_all_devices_cannot_be_had_where_one_is_tainted() -> None:
    offered = types(x=template(gpu("g0"), replace(gpu("g1"), taints=(HARD,))))
    assert placed(solved([claim("c", ask(mode=ALL))], {"a": ["c"]}, offered)) == {}
    assert placed(solved([claim("c", ask(mode=ALL, tolerations=(TOLERANT,)))], {"a": ["c"]}, offered)) == {"a": "x#0"}
