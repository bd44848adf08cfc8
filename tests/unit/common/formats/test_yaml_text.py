"""The expected values are what kubectl's YAMLToJSON makes of the same lines (sigs.k8s.io/yaml v1.6.0)."""

import json

import pytest

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import MOST_VALUES, read_yaml


def _read(text: str) -> object:
    [document] = read_yaml(text)
    return document


def _said(text: str | bytes) -> str:
    with pytest.raises(MalformedError) as refused:
        list(read_yaml(text))
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
        ("a:\n\t- b", "line 2, column 1: a tab does not indent in YAML; use spaces"),
        ("ä: @b", "line 1, column 4: nothing begins with '@'; quote the text, or take it away"),
        ("a: .inf", "line 1, column 4: .inf is not a number that JSON has"),
        ("a: -.inf", "line 1, column 4: -.inf is not a number that JSON has"),
        ("a: .nan", "line 1, column 4: .nan is not a number that JSON has"),
        ("a: 1e999", "line 1, column 4: 1e999 is not a number that JSON has"),
        ("a: !!int b", "line 1, column 4: b is not a number that JSON has"),
        ("a: !!bool b", "line 1, column 4: the tag !!bool does not fit; leave it out"),
        ("a: !!timestamp b", "line 1, column 4: the tag !!timestamp does not fit"),
        ("a: !!str {=: b}", "line 1, column 4: the tag !!str does not fit"),
        ("a: !!set {b}", "line 1, column 4: the tag !!set does not fit"),
        ("? ~\n: 1", "line 1, column 3: a key must be text"),
        ("a: {<<: b}", "line 1, column 9: << takes a mapping, or a list of mappings"),
        ("a: {<<: [{b: 1}, c]}", "line 1, column 18: << takes a mapping, or a list of mappings"),
        ("[a]: b", "line 1, column 1: a key must be text"),
        (
            "a: !!python/object:os.system {}",
            "line 1, column 4: the tag !!python/object:os.system does not fit; leave it out",
        ),
    ],
)
def test_says_where_it_is_not_yaml(text: str, message: str) -> None:
    assert _said(text).startswith(message)


@pytest.mark.parametrize("content", [b"\x00\x01", b"\xff\xfe\x00", b"a: \x80"])
def test_what_is_not_even_text(content: bytes) -> None:
    assert len(_said(content).splitlines()) == 1


def test_a_number_beyond_64_bits() -> None:
    assert _read(f"a: {2**64 - 1}\nb: {-(2**63)}") == {"a": 2**64 - 1, "b": -(2**63)}
    assert repr(_read(f"a: {2**70}")) == "{'a': 1.1805916207174113e+21}"
    assert "is not a number that JSON has" in _said("a: 0x" + "f" * 5000)
    assert "is not a number that JSON has" in _said("a: " + "9" * 5000)


def _levels(count: int, form: str, width: int) -> str:
    """Each level names the one before it so many times."""
    lines = (
        f"a{level}: &a{level} {form % ', '.join([f'*a{level - 1}'] * width)}" for level in range(1, count)
    )
    return "\n".join(["a0: &a0 {k: 1}", *lines])


def test_merges_repeat_without_growing() -> None:
    """PyYAML makes 40 ** 5 pairs of it."""
    found = _read(_levels(6, "{<<: [%s]}", 40))
    assert found == {f"a{level}": {"k": 1} for level in range(6)}


def test_of_merged_mappings_the_first_counts_and_ones_own_before_them() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {c: 3, <<: [*x, *y]}"
    assert _read(text)["z"] == {"a": 1, "b": 1, "c": 3}  # type: ignore[index]


_MANY_KEYS = ", ".join(f"k{key}: 1" for key in range(3000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "line 1, column 101: more than 100 levels deep"),
        (_levels(5000, "[%s]", 1), "line 101, column 7: more than 100 levels deep"),
        (_levels(9, "[%s]", 9), "line 6, column 5: its anchors and merges make more than 200,000 values"),
        (_levels(9, "[{<<: {b: [%s]}}]", 9), "line 6, column 5: its anchors"),
        ("".join(f"{_levels(5, '[%s]', 9)}\n---\n" for _ in range(20)), "line 76, column 5: its anchors"),
        (f"x: &x {{{_MANY_KEYS}}}\ny: [{'{<<: *x}, ' * 3000}]", "line 1, column 4: its anchors"),
        (f"a: [{'1,' * MOST_VALUES}]", "line 1, column 399999: more than 200,000 values; split the file"),
        ("a: &a [*a]", "line 1, column 4: an anchor has itself within; write it out"),
        ("a: &a {<<: *a}", "line 1, column 4: an anchor has itself within; write it out"),
        ("? &a {? *a : 1}\n: 2", "line 1, column 3: an anchor has itself within; write it out"),
        ("a: !!" + "x" * 1_000_000 + " b", "line 1, column 4: the tag !!xxx"),
        (f"? {'x' * 1_000_000}\n: 1\n? {'x' * 1_000_000}\n: 2", "line 3, column 3: the key 'xxx"),
        ("".join(f"%TAG !{n}! tag:{n}\n" for n in range(100_000)) + "---\na: 1", "more than 100 directives"),
        ("a: *" + "x" * 1_000_000, "line 1, column 4: found undefined alias"),
    ],
    ids=range(14),
)
def test_more_than_anybody_writes_is_one_short_line(text: str, message: str) -> None:
    said = _said(text)
    assert said.startswith(message)
    assert len(said) < 400
    assert said.isprintable()


@pytest.mark.parametrize("entry", ["k{}: 1", "<<: {{k{}: 1}}"])
def test_a_mapping_is_as_long_as_its_keys(entry: str) -> None:
    """Both took a step for each two of them."""
    found = _read(f"{{{', '.join(map(entry.format, range(20_000)))}}}")
    assert len(json.dumps(found)) > 20_000
