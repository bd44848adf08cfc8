"""Which bodies are read at once, on a thread, or not at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_scorer.picker.gateway.bodies.json_size import (
    MOST_CONTAINERS,
    MOST_STRINGS,
    MOST_VALUES,
    is_bounded,
    is_small,
)

KIB = 1 << 10
LONG = 'once upon a time, there was a [king] who said: "no" ' * 200_000


@pytest.mark.parametrize(
    ("body", "light", "readable"),
    [
        (b"", True, True),
        (b'{"prompt": "x"}', True, True),
        (json.dumps({"prompt": LONG[: 100 * KIB]}).encode(), True, True),
        (json.dumps({"prompt": LONG}).encode(), False, True),
        (b"[" + b"1," * 40_000 + b"1]", False, True),
        (b"[" + b"{}," * 5_000 + b"{}]", False, True),
        (b"[" + b"[]," * (MOST_CONTAINERS - 2) + b"[]]", False, True),
        (b"[" + b"[]," * MOST_CONTAINERS + b"[]]", False, False),
        (b"[" + b'"",' * (MOST_STRINGS - 1) + b'""]', False, True),
        (b"[" + b'"",' * MOST_STRINGS + b'""]', False, False),
        (b"[" + b"1," * (MOST_VALUES - 1) + b"1]", False, True),
        (b"[" + b"1," * MOST_VALUES + b"1]", False, False),
        (b'{"' + b'":1,"' * MOST_STRINGS + b'":1}', False, False),
        (b'"' * 500_000, False, False),
        (b"\\" * 500_000, False, True),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_bodies(body: bytes, light: bool, readable: bool) -> None:
    assert (is_small(body), is_bounded(body)) == (light, readable)


@settings(max_examples=10)
@given(st.text(alphabet='{[,"\\a', max_size=30))
def test_what_stands_in_strings_is_not_counted(text: str) -> None:
    """Of a text that escapes may end in any way."""
    body = json.dumps([text] * 20_000 + [1] * (MOST_VALUES - 40_000)).encode()
    assert is_bounded(body)


def test_a_short_body_is_readable_because_it_cannot_be_much() -> None:
    """128 KiB: three bytes for each list or string, and two for each value."""
    assert min(MOST_CONTAINERS, MOST_STRINGS) > 128 * KIB // 3
    assert MOST_VALUES > 128 * KIB // 2
