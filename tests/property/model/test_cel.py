"""kerf's evaluation of CEL against cel-python's, on generated expressions: kubelet expressions (A-52) and device
selectors (S-200).

Left out, because cel-python says otherwise than the language: see `test_where_cel_python_departs_from_cel`. Left out,
because it has no `cel.bind`: that, which tests/unit/scheduling/devices/test_selectors.py holds by an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts, tables
from kerf.adapters.aws.catalogue.kubelet_expressions import reserved_text
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import Capacity, Device, Version
from kerf.engine.scheduling.devices.cel_selectors import matches
from tests.support.judges import cel as judge
from tests.support.strategies.examples import examples

Texts = st.SearchStrategy[str]
TYPES = [tables().types[name] for name in ("m5.large", "c7g.medium", "p5.48xlarge", "t3.nano")]
DRIVERS = ["x.io", "y.io", "none.io"]
WORDS = ['""', '"a"', "'A100'", '"m5.large"', '"it\'s"', r'"a\"b\\c\n"', '"Ä"', '"100"']
LARGEST = 2**63 - 1


class Grammar:
    """Expressions of each type over the names of one scope. One operand in a dozen is of another type, and half of the
    operands stand without parentheses, so some expressions have no value and others mean something else."""

    def __init__(self, names: Mapping[str, list[str]], bools: Texts | None = None) -> None:
        self._names = names
        self._bools = bools

    @cache  # noqa: B019 (a grammar lives as long as its tests)
    def of(self, kind: str, depth: int) -> Texts:
        leaves = [st.sampled_from(names) for names in [self._names.get(kind)] if names] + [_literals(kind)]
        if kind == "bool" and self._bools is not None:
            leaves.append(self._bools)
        if depth == 0:
            return st.one_of(leaves)
        i, d, s, b = (self._operand(of, depth - 1) for of in ("int", "double", "string", "bool"))
        branches = {
            "int": [
                st.builds("{} {} {}".format, i, st.sampled_from("+-*/%"), i),
                st.builds("-{}".format, i),
                st.builds("int({})".format, d),
                st.builds("size({})".format, s),
                st.builds("{}.size()".format, s),
                st.builds("size([{}, {}])".format, i, i),
            ],
            "double": [
                st.builds("{} {} {}".format, d, st.sampled_from("+-*"), d),
                st.builds("{} / {}".format, d, st.sampled_from(["2.0", "0.3", "-1e3"])),
                st.builds("-{}".format, d),
                st.builds("double({})".format, i),
            ],
            "string": [
                st.builds("{} + {}".format, s, s),
                st.builds("string({})".format, i),
                st.builds("{}.{}()".format, s, st.sampled_from(["lowerAscii", "upperAscii"])),
            ],
            "bool": [
                st.builds("{} {} {}".format, b, st.sampled_from(["&&", "||"]), b),
                st.builds("!{}".format, b),
                *(
                    st.builds("{} {} {}".format, x, st.sampled_from(_COMPARES), y)
                    for x, y in [(i, i), (i, d), (s, s), (b, b)]
                ),
                st.builds("{} {} {}".format, i | s, st.sampled_from(["==", "!="]), s | b),
                st.builds("{} in [{}, {}]".format, i | s, i | d, s | i),
                st.builds("{}.{}({})".format, s, st.sampled_from(["startsWith", "endsWith", "contains"]), s),
            ],
        }[kind]
        own = self.of(kind, depth - 1)
        chosen = st.builds("({} ? {} : {})".format, b, own, own)
        return st.one_of(*leaves, *branches, chosen)

    def _operand(self, kind: str, depth: int) -> Texts:
        fits = self.of(kind, depth)
        others = st.one_of(
            [self.of(other, 0) for other in ("int", "double", "string", "bool", "null") if other != kind]
        )
        bare = st.integers(0, 11).flatmap(lambda dice: others if dice == 0 else fits)
        return bare | fits.map("({})".format)


def _literals(kind: str) -> Texts:
    match kind:
        case "int":
            number = st.integers(0, 40) | st.sampled_from([LARGEST, 2**31, 2**53 + 1])
            return number.map(str) | number.map(hex) | st.sampled_from(["-1", f"-{LARGEST + 1}"])
        case "double":
            return st.sampled_from(["0.5", "2.0", ".25", "1e3", "2.5E-1", "1e30", "-1.5", "9007199254740992.0"])
        case "string":
            return st.sampled_from(WORDS)
        case "bool":
            return st.sampled_from(["true", "false"])
        case _:
            return st.just("null")


_COMPARES = ["==", "!=", "<", "<=", ">", ">="]

# ── kubelet expressions ─────────────────────────────────────────────────────────────────────────────────────────

KUBELET = Grammar(
    {"int": ["vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods", "pods"], "string": ["instance_type"]}
)
_most = st.builds(
    "{}({}, {})".format, st.sampled_from(["max", "min"]), *[KUBELET.of("int", 1) | KUBELET.of("double", 1)] * 2
)
kubelet_expressions = st.one_of(
    KUBELET.of("int", 3),
    KUBELET.of("double", 3),
    KUBELET.of("string", 1),
    _most,
    st.builds("{} + {}".format, _most, _most),
)


def by_kerf(expression: str, facts: InstanceTypeFacts, pods: int) -> object:
    try:
        return int(reserved_text("pid", expression, facts, pods))
    except CelError:
        return judge.NOTHING


def by_judge(expression: str, facts: InstanceTypeFacts, pods: int) -> object:
    """The result is a number without its fraction, and not less than nothing (A-52)."""
    names = {
        "vcpus": facts.vcpus,
        "memory_mib": facts.memory,
        "default_enis": facts.cards[facts.card],
        "ips_per_eni": facts.ipv4_per_interface,
        "max_pods": pods,
        "instance_type": facts.name,
    }
    found = judge.value(expression, {name: judge.typed(value) for name, value in names.items()})
    try:
        number = int(found) if judge.number(found) else -1
    except (ValueError, OverflowError):  # no finite number
        return judge.NOTHING
    return number if number >= 0 else judge.NOTHING


@settings(max_examples=examples(600))
@given(expression=kubelet_expressions, facts=st.sampled_from(TYPES), pods=st.integers(1, 250))
def test_a52_a_kubelet_expression_has_the_value_that_cel_python_gives_it(
    expression: str, facts: InstanceTypeFacts, pods: int
) -> None:
    assert by_kerf(expression, facts, pods) == by_judge(expression, facts, pods)


# ── device selectors ────────────────────────────────────────────────────────────────────────────────────────────


def _compared(left: str, right: Texts) -> Texts:
    ways = st.sampled_from([".isLessThan({})", ".isGreaterThan({})", ".compareTo({}) >= 0"])
    return st.builds(lambda way, other: left + way.format(other), ways, right)


_paths = {
    kind: [f'device.attributes["{driver}"].{name}' for driver in DRIVERS] + [f"device.attributes['x.io'][\"{name}\"]"]
    for kind, name in [("int", "n"), ("string", "model"), ("bool", "ok")]
}
_paths["string"].append("device.driver")
_paths["bool"].append("device.allowMultipleAllocations")
_driver = st.sampled_from(DRIVERS)
_name = st.sampled_from(["n", "model", "ok", "v"])
_quantities = st.builds(
    'quantity("{}{}")'.format, st.sampled_from(["0", "1", "1.5", "40"]), st.sampled_from(["", "m", "k", "Mi", "Gi"])
)
_versions = st.sampled_from(["1.2.3", "1.10.0", "0.0.1"]).map('semver("{}")'.format)
_of_devices = st.one_of(
    st.builds('has(device.attributes["{}"].{})'.format, _driver, _name),
    st.builds('"{}" in device.attributes["{}"]'.format, _name, _driver),
    _compared('device.capacity["x.io"].memory', _quantities),
    _compared('device.attributes["x.io"].v', _versions),
    _quantities.flatmap(lambda given: _compared(given, _quantities | _versions)),
)
SELECTORS = Grammar(_paths, bools=_of_devices)

_values = {
    "n": st.integers(-2, 40) | st.just(LARGEST) | st.just("a"),
    "model": st.sampled_from(["", "a", "A100", "Ä", "100"]) | st.just(7),
    "ok": st.booleans(),
    "v": st.sampled_from(["1.2.3", "1.3.0", "0.9.12"]).map(Version),
}
_attributes = st.fixed_dictionaries(
    {}, optional={f"{driver}/{name}": values for driver in ("x.io", "y.io") for name, values in _values.items()}
)
_capacity = st.dictionaries(
    st.sampled_from(["x.io/memory", "y.io/memory"]), st.sampled_from([0, 1000, 1500, 40 * 2**30 * 1000]).map(Capacity)
)
devices = st.builds(Device, name=st.just("g0"), attributes=_attributes, capacity=_capacity, shared=st.booleans())


def selects(expression: str, device: Device) -> object:
    try:
        return matches(expression, "x.io", device)
    except CelError:
        return judge.NOTHING


def judged(expression: str, device: Device) -> object:
    grouped: dict[str, dict[str, dict[str, Any]]] = {"attributes": {"x.io": {}}, "capacity": {"x.io": {}}}
    for full, value in device.attributes.items():
        domain, _, name = full.partition("/")
        known = judge.version(value.version) if isinstance(value, Version) else value
        grouped["attributes"].setdefault(domain, {})[name] = known
    for full, amount in device.capacity.items():
        domain, _, name = full.partition("/")
        grouped["capacity"].setdefault(domain, {})[name] = judge.amount(amount.value)
    found = judge.value(
        expression,
        {
            "device": judge.typed(
                {
                    "driver": "x.io",
                    "allowMultipleAllocations": device.shared,
                    **{field: judge.Domains(judge.typed(values)) for field, values in grouped.items()},
                }
            )
        },
    )
    return judge.truth(found)


@settings(max_examples=examples(600))
@given(expression=SELECTORS.of("bool", 3), device=devices)
def test_s200_a_selector_selects_what_cel_python_says(expression: str, device: Device) -> None:
    assert selects(expression, device) == judged(expression, device)


@pytest.mark.parametrize(
    ("expression", "kerfs", "why"),
    [
        ("-1.0 / 0.0 < 0.0", True, "it loses the sign of the dividend"),
        ("0.0 / 0.0 == 0.0 / 0.0", False, "0/0 is no number, and equal to nothing"),
        ("false && 9223372036854775808 > 0", judge.NOTHING, "a number of more than 64 bits is no CEL at all"),
    ],
)
def test_where_cel_python_departs_from_cel(expression: str, kerfs: object, why: str) -> None:
    """Once it does not any more, the expression belongs to the grammar above."""
    device = Device("g0")
    assert selects(expression, device) is kerfs, why
    assert judged(expression, device) is not kerfs
