"""The expected values are what kubectl's YAMLToJSON makes of the same lines (sigs.k8s.io/yaml v1.6.0)."""

import pytest

from kvtier_operator.cli.inputs.yaml_documents import read_documents
from kvtier_operator.errors import InvalidInputError


def _read(text: str) -> object:
    [document] = read_documents(text, "cr.yaml")
    return document


def _said(text: str | bytes) -> str:
    with pytest.raises(InvalidInputError) as refused:
        list(read_documents(text, "cr.yaml"))
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Off", False),
        ("on", True),
        ("yes", True),
        ("y", True),
        ("n", False),
        ('"Off"', "Off"),
        ("oN", "oN"),
        ("0x10", 16),
        ("1_000", 1000),
        ("010", 8),
        ("0o10", 8),
        ("0b11", 3),
        ("-5", -5),
        ("+7", 7),
        ("09", 9),
        ("2026-11-20", "2026-11-20"),
        ("12:30:00", "12:30:00"),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("~", None),
        ("null", None),
        ("", None),
        ("100Gi", "100Gi"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
    ],
)
def test_reads_a_value_as_kubectl_does(written: str, expected: object) -> None:
    value = _read(f"a: {written}")
    assert value == {"a": expected}
    assert repr(value) == repr({"a": expected})


def test_keys_are_text() -> None:
    assert _read("1: a\non: b") == {"1": "a", "true": "b"}


def test_merges() -> None:
    assert _read("a: &x {b: 1, c: 1}\nd:\n  <<: *x\n  c: 2") == {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}}


def test_json_is_yaml() -> None:
    assert _read('{"a": [1, true, null, "x"]}') == {"a": [1, True, None, "x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' is there twice; keep one"),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n  d: 2",
            "line 5, column 3: the key 'd' is there twice; keep one",
        ),
        ("a: [1", "line 2, column 1: did not find expected ',' or ']'"),
        ("a:\n\t- b", "line 2, column 1: found character that cannot start any token"),
        ("a: .inf", "line 1, column 4: .inf is not a number that JSON has"),
        ("a: -.inf", "line 1, column 4: -.inf is not a number that JSON has"),
        ("a: .nan", "line 1, column 4: .nan is not a number that JSON has"),
        ("a: 1e999", "line 1, column 4: 1e999 is not a number that JSON has"),
        ("a: !!int b", "a value does not fit its tag"),
        ("a: !!bool b", "a value does not fit its tag"),
        ("[a]: b", "line 1, column 1: a key must be text"),
        (
            "a: !!python/object:os.system {}",
            "line 1, column 4: could not determine a constructor for the tag ",
        ),
    ],
)
def test_says_where_it_is_not_yaml(text: str, message: str) -> None:
    assert _said(text).startswith(f"cr.yaml: not YAML: {message}")


@pytest.mark.parametrize("content", [b"\x00\x01", b"\xff\xfe\x00", b"a: \x80"])
def test_what_is_not_even_text(content: bytes) -> None:
    assert _said(content).startswith("cr.yaml: not YAML: ")
    assert "\n" not in _said(content)


def test_nested_without_end() -> None:
    assert _said("[" * 100_000).startswith("cr.yaml: not YAML")
