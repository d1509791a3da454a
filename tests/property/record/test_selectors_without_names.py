"""A device selector selects the same devices when all texts in both have pseudonyms (S-200)."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kerf.adapters.store.pseudonyms.device_names import attribute, device, selector
from kerf.adapters.store.pseudonyms.record import Pseudonyms
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import Capacity, Device, Version
from kerf.engine.scheduling.devices.cel_selectors import matches

DRIVERS = ["gpu.acme.example", "Acme", "fpga.example"]
WORDS = ["Acme-T4", "acme", "t4", "A10", "", "40Gi", "7", "true", "1.2.3", "a\"b\\c", "Ä"]  # fmt: skip
VERSIONS = ["1.2.3", "1.2.3-acme.1", "1.2.3-Zeta", "2.0.0-1"]

words = st.sampled_from(WORDS)
values: st.SearchStrategy[Any] = words | st.integers(0, 9) | st.booleans() | st.sampled_from(VERSIONS).map(Version)
devices = st.builds(
    Device,
    name=st.sampled_from(["gpu-0", "gpu-1"]),
    attributes=st.dictionaries(
        st.sampled_from([f"{driver}/{name}" for driver in DRIVERS for name in ("model", "row")]), values, max_size=4
    ),
    capacity=st.dictionaries(
        st.sampled_from([f"{driver}/memory" for driver in DRIVERS]), st.builds(Capacity, st.integers(0, 99))
    ),
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


literals = st.one_of(words, st.sampled_from(DRIVERS)).map(quoted)
attributes = st.builds(
    lambda driver, name: f"device.attributes[{quoted(driver)}].{name}",
    st.sampled_from(DRIVERS),
    st.sampled_from(["model", "row"]),
)
texts = st.one_of(attributes, st.just("device.driver"), literals)
letters = st.sampled_from(["startsWith", "endsWith", "contains"])
quantities = st.sampled_from(['"40m"', '"2"'])
tests = st.one_of(
    st.builds("{} == {}".format, texts, literals),
    st.builds("{} != {}".format, texts, literals),
    st.builds("{}.{}({})".format, attributes | st.just("device.driver"), letters, literals),
    st.builds("{}.lowerAscii() == {}".format, attributes, literals),
    st.builds("({} + {}) == {}".format, attributes, literals, literals),
    st.builds("{} in [{}, {}]".format, texts, literals, literals),
    st.builds("{} < {}".format, attributes, literals),
    st.builds("{} >= 3".format, attributes),
    st.builds("{}.isLessThan(semver({}))".format, attributes, st.sampled_from(VERSIONS).map(quoted)),
    st.builds("{} in device.attributes[{}]".format, st.sampled_from(['"model"', '"row"']), literals),
    st.builds("has(device.attributes[{}].model)".format, literals),
    st.builds("device.capacity[{}].memory.compareTo(quantity({})) > 0".format, literals, quantities),
    st.builds("cel.bind(x, {}, x.startsWith({}))".format, attributes, literals),
)  # fmt: skip
expressions = st.recursive(
    tests,
    lambda part: st.one_of(
        st.builds("({}) && ({})".format, part, part),
        st.builds("({}) || ({})".format, part, part),
        st.builds("!({})".format, part),
        st.builds("({}) ? ({}) : ({})".format, part, part, part),
    ),
    max_leaves=4,
)


def without_names(found: Device, names: Pseudonyms) -> Device:
    return Device(
        device(found.name, names),
        {attribute(name, names): device(value, names) for name, value in found.attributes.items()},
        {attribute(name, names): capacity for name, capacity in found.capacity.items()},
    )


def selects(expression: str, driver: str, found: Device) -> bool | None:
    """Whether the selector is true; None if it has no value."""
    try:
        return matches(expression, driver, found)
    except CelError:
        return None


@example(
    expression='cel.bind(x, device.attributes["fpga.example"].model, x.startsWith(""))',
    found=Device("gpu-0", attributes={"fpga.example/model": ""}),
    driver="fpga.example",
)
@example(
    expression='device.attributes["Acme"].model < "true"',
    found=Device("gpu-0", attributes={"Acme/model": "Ä"}),
    driver="gpu.acme.example",
)
@given(expression=expressions, found=devices, driver=st.sampled_from(DRIVERS))
def test_s200_a_selector_selects_the_same_without_names(expression: str, found: Device, driver: str) -> None:
    names = Pseudonyms(b"key")

    def renamed() -> tuple[str, str, Device]:
        return selector(expression, names), device(driver, names), without_names(found, names)

    renamed()
    names.settle()
    shown = renamed()
    assert selects(expression, driver, found) == selects(*shown)
    for text in ("acme", "Acme", "T4", "A10", "model", "row", "memory", "Ä"):
        assert text not in shown[0], shown[0]
