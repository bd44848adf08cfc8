"""Which model a body names, whatever else is in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.picker.model_router import model_of

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _JSON), st.text(), st.booleans())
def test_it_is_the_one_that_an_engine_reads(fields: dict[str, object], model: str, ascii_only: bool) -> None:
    body = json.dumps({**fields, "model": model}, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    try:
        body.decode()
    except UnicodeDecodeError:
        return  # no JSON: an engine refuses it
    if "\\ud" in body.decode().lower():
        assert model_of(body) in {model, None}  # half of a surrogate pair is no text
    else:
        assert model_of(body) == model


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{no json",
        b"[]",
        b'{"model": 7}',
        b'{"model": ["a"]}',
        b'{"a": {"model": "nested"}}',
        b'{"prompt": "\\"model\\": \\"quoted\\""}',
        b'{"model": "cut off',
        b'{"model": "\xff"}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b', "model": "deep"}',
    ],
)
def test_what_names_none_is_for_its_own_engine_to_refuse(body: bytes) -> None:
    assert model_of(body) is None


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd(body: bytes) -> None:
    model_of(body)
