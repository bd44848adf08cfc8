import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvtier_operator.planning.objects.manifest import to_yaml


def test_keys_are_sorted_whatever_order_they_came_in() -> None:
    assert to_yaml([{"b": {"d": 1, "c": 2}, "a": 3}]) == "---\na: 3\nb:\n  c: 2\n  d: 1\n"


def test_what_stands_twice_is_written_twice() -> None:
    shared = {"memory": "1Gi"}
    assert "&" not in to_yaml([{"requests": shared, "limits": shared}])


def test_text_of_several_lines_is_a_block() -> None:
    assert to_yaml([{"data": "a: 1\nb: 2\n"}]) == "---\ndata: |\n  a: 1\n  b: 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "0o17",
        "0X1F",
        "0O17",
        "+.3",
        "+_174",
        "1e+1_0",
        "y",
        "N",
        "12",
        "1.5",
        "1_000",
        "true",
        "null",
        "~",
        "on",
    ],
)
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    value = to_yaml([{"k": text}]).removeprefix("---\nk: ").rstrip("\n")
    assert value[0] == value[-1]
    assert value[0] in "'\""


DOCUMENTS = st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.booleans(), max_size=4)


@given(objects=st.lists(DOCUMENTS, max_size=3))
def test_it_reads_back_as_it_was(objects: list[dict[str, object]]) -> None:
    assert list(yaml.safe_load_all(to_yaml(objects))) == objects
