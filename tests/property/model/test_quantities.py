"""Laws of quantities, durations and times, against exact fractions."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.model.durations import format_duration, format_time, parse_go_duration, parse_time
from kerf.engine.model.quantities import format_quantity, parse_quantity

MULTIPLES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "pods", "nvidia.com/gpu"])
NUMBERS = st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,12})?|\.[0-9]{1,12}", fullmatch=True).filter(str.isascii)


def rounded(value: Fraction, resource: str) -> int:
    """What the API server makes of an exact non-negative amount."""
    scale = 1000 if resource == "cpu" else 1
    return min(math.ceil(value * scale), 2**63 - 1)


@given(NUMBERS, st.sampled_from(sorted(MULTIPLES)), RESOURCES)
def test_parsing_equals_the_exact_fraction_rounded_up(number: str, suffix: str, resource: str) -> None:
    exact = Fraction("0" + number if number.startswith(".") else number.rstrip(".")) * MULTIPLES[suffix]
    assert parse_quantity(number + suffix, resource) == rounded(exact, resource)
    assert parse_quantity("-" + number + suffix, resource) == -rounded(exact, resource)


@given(NUMBERS, st.integers(-40, 40), st.sampled_from("eE"), RESOURCES)
def test_decimal_exponents_equal_the_exact_fraction(number: str, exponent: int, e: str, resource: str) -> None:
    mantissa = Fraction("0" + number if number.startswith(".") else number.rstrip("."))
    expected = rounded(mantissa * Fraction(10) ** exponent, resource)
    assert parse_quantity(f"{number}{e}{exponent}", resource) == expected


@given(st.integers(-(2**63) + 1, 2**63 - 1), RESOURCES)
def test_formatting_and_parsing_give_the_amount_back(amount: int, resource: str) -> None:
    text = format_quantity(amount, resource)
    assert parse_quantity(text, resource) == amount
    assert format_quantity(parse_quantity(text, resource), resource) == text


@given(st.integers(-(10**15), 10**15))
def test_durations_give_the_milliseconds_back(milliseconds: int) -> None:
    bounded = milliseconds % 9_000_000_000_000
    assert parse_go_duration(format_duration(bounded)) == bounded
    assert parse_go_duration(format_duration(-bounded)) == -bounded


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_give_the_milliseconds_back(milliseconds: int) -> None:
    """From year 1 to year 9999."""
    assert parse_time(format_time(milliseconds)) == milliseconds
