from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_operator.api.quantity import ByteQuantity, Quantity, parse_bytes, parse_quantity

_FACTORS = {
    "": 1,
    "k": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "P": 1000**5,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
    "Pi": 1024**5,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Kubernetes documentation, "Resource Management for Pods and Containers": "the following represent
        # roughly the same value"
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("128974848000m", 128974848),
        ("123Mi", 128974848),
        # k8s.io/apimachinery/pkg/api/resource/quantity_test.go, TestQuantityParse and TestQuantityParseZero
        ("0", 0),
        ("0Ki", 0),
        ("1Ki", 1024),
        ("8Mi", 8 * 1024**2),
        ("2Ti", 2 * 1024**4),
        ("100E2", 10_000),
        ("1E1", 10),
        ("7Pi", 7 * 1024**5),
        ("+1Ki", 1024),
        (".5Mi", 512 * 1024),
        ("0.5Mi", 512 * 1024),
        ("1.", 1),
        ("2.5Gi", 2_684_354_560),
        ("1e3", 1000),
        ("1E-3", 1),  # rounds up
        ("100n", 1),
        ("100u", 1),
        ("100m", 1),
        ("1.1", 2),
        ("-1.1", -2),  # away from zero
        ("-5Mi", -5 * 1024**2),
        # the design's own
        ("100Gi", 107_374_182_400),
        ("1T", 10**12),
        ("512Mi", 536_870_912),
    ],
)
def test_parses_as_kubernetes_does(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text",
    # quantity_test.go, TestQuantityParse: invalid; and what people write
    [
        "",
        "1.1.M",
        "1+1.0M",
        "0.1mi",
        "0.1am",
        "aoeu",
        ".5i",
        "1i",
        "-3.01i",
        " 1Mi",
        "1Mi ",
        "+",
        "-",
        ".",
        "Mi",
        "100Gx",
        "100GB",
        "100 Gi",
        "100gi",
        "100KI",
        "1K",
        "1e",
        "1e1.5",
        "0x10",
        "1_000",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1" * 40,
    ],
)
def test_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity; write a number with"):
        parse_bytes(text)


@given(
    digits=st.integers(0, 10**9),
    places=st.integers(0, 6),
    suffix=st.sampled_from(sorted(_FACTORS)),
    sign=st.sampled_from(["", "+", "-"]),
)
def test_equals_plain_decimal_arithmetic(digits: int, places: int, suffix: str, sign: str) -> None:
    number = Decimal(digits).scaleb(-places)
    exact = number * _FACTORS[suffix] * (-1 if sign == "-" else 1)
    assert parse_quantity(f"{sign}{number:f}{suffix}") == exact
    if abs(exact) <= 2**60:
        magnitude = int(abs(exact).to_integral_value(ROUND_CEILING))
        assert parse_bytes(f"{sign}{number:f}{suffix}") == (-magnitude if sign == "-" else magnitude)


@given(size_bytes=st.integers(1, 2**60))
def test_a_plain_number_is_itself(size_bytes: int) -> None:
    assert ByteQuantity(size_bytes).bytes == size_bytes
    assert ByteQuantity(str(size_bytes)) == str(size_bytes)


def test_keeps_what_was_written() -> None:
    assert ByteQuantity("1.50Gi") == "1.50Gi"
    assert Quantity("500m") == "500m"


@pytest.mark.parametrize("text", ["0", "0Gi", "-1Gi"])
def test_a_size_is_more_than_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="must be more than 0 bytes"):
        ByteQuantity(text)


def test_a_request_may_be_nothing_but_not_less() -> None:
    Quantity("0")
    with pytest.raises(ValueError, match="is negative"):
        Quantity("-1m")


@pytest.mark.parametrize("text", ["2Ei", "1e40"])
def test_a_request_has_an_end(text: str) -> None:
    Quantity("1Ei")
    with pytest.raises(ValueError, match="too large; the largest quantity is 1Ei"):
        Quantity(text)


@pytest.mark.parametrize("text", ["1Ei", str(2**60)])
def test_the_largest_size(text: str) -> None:
    assert ByteQuantity(text).bytes == 2**60


@pytest.mark.parametrize("text", ["2Ei", "1025Pi", str(2**60 + 1), "9e99"])
def test_beyond_the_largest_size(text: str) -> None:
    with pytest.raises(ValueError, match="too large; the largest size is 1Ei"):
        ByteQuantity(text)
