"""Quantities: Kubernetes' suffixes, rounding and canonical text."""

import pytest

from kerf.engine.errors import InputError
from kerf.engine.model.quantities import format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1000),
        ("100m", 100),
        ("0.5", 500),
        (".5", 500),
        ("5.", 5000),
        ("+2", 2000),
        ("-1", -1000),
        ("0", 0),
        ("1u", 1),
        ("1n", 1),
        ("1500u", 2),
        ("1.0005", 1001),
        ("-1u", -1),
        ("1k", 1_000_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("15e-1", 1500),
        (2, 2000),
        (0.5, 500),
        (1e21, 2**63 - 1),
    ],
)
def test_cpu_is_exact_milli_cpu_rounded_away_from_zero(text: str | float, amount: int) -> None:
    assert parse_quantity(text, "cpu") == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("6903Mi", 7_238_320_128),
        ("17Gi", 17 * 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1k", 10**3),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1.5Gi", 3 * 2**29),
        ("0.1Ki", 103),
        ("1m", 1),
        ("1500m", 2),
        ("123456u", 1),
        ("1e9", 10**9),
        ("1E+2", 100),
        ("1e-1", 1),
        ("100E", 2**63 - 1),
        ("8Ei", 2**63 - 1),
        ("1e99", 2**63 - 1),
        ("-100E", 1 - 2**63),
        ("1e-999999999", 1),
        ("0e999999999", 0),
    ],
)
def test_memory_is_exact_bytes_rounded_away_from_zero(text: str, amount: int) -> None:
    assert parse_quantity(text, "memory") == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        "1 Gi",
        "Gi",
        "m",
        "1GI",
        "1gi",
        "1K",
        "1ki",
        "1Mib",
        "--1",
        "1.2.3",
        "1e",
        "1e+",
        "1e1.5",
        "0x10",
        "1_000",
        "١",
        "NaN",
        "inf",
        ".",
        "1\n",
        "1" * 101,
    ],
)
def test_a_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_quantity(text, "memory")
    assert refused.value.code == "KERF306"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True])
def test_a_number_that_is_no_quantity_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="KERF306"):
        parse_quantity(value, "cpu")


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (1930, "cpu", "1930m"),
        (2000, "cpu", "2"),
        (0, "cpu", "0"),
        (2_000_000, "cpu", "2k"),
        (-500, "cpu", "-500m"),
        (7_238_320_128, "memory", "6903Mi"),
        (17 * 2**30, "ephemeral-storage", "17Gi"),
        (2**21, "hugepages-2Mi", "2Mi"),
        (1000, "memory", "1k"),
        (1023, "memory", "1023"),
        (1025, "memory", "1025"),
        (10**9, "memory", "1000000000"),
        (29, "pods", "29"),
        (9, "vpc.amazonaws.com/pod-eni", "9"),
        (1000, "pods", "1k"),
        (2**60, "memory", "1Ei"),
    ],
)
def test_canonical_text_as_a_status_or_log_shows_it(amount: int, resource: str, text: str) -> None:
    assert format_quantity(amount, resource) == text
