"""That the test of the dashboards can fail."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from tests.cases.promql import exposed_series, missing_series, read, registered_series


def test_labels_are_matched_grouped_by_and_shown() -> None:
    asked = read('sum by (kind, pod) (rate(a_total{result="failed"}[1m])) / on (pod) b', frozenset({"kind"}))
    assert asked == {"a_total": {"result", "kind", "pod"}, "b": {"kind", "pod"}}
    assert read("histogram_quantile(0.5, sum by (le) (rate(a_bucket[1m])))") == {"a_bucket": {"le"}}


@pytest.mark.parametrize(
    ("expression", "shown", "said"),
    [
        ("sum by (a) (rate(b[1m])", (), "unclosed left parenthesis"),
        ("rate(b)", (), "expected type matrix"),
        ("sum(b)", ("a",), "a: aggregated away"),
        ("sum by (c) (b)", ("a",), "a: aggregated away"),
        ("histogram_quantile(0.5, sum(rate(a_bucket[1m])))", (), "le: aggregated away"),
    ],
)
def test_what_prometheus_refuses_or_leaves_empty_is_found(
    expression: str, shown: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        read(expression, frozenset(shown))


def test_what_a_program_does_not_export_is_found() -> None:
    registry = CollectorRegistry()
    Counter("a_total", "A.", ["kind"], registry=registry)
    Histogram("b_seconds", "B.", registry=registry)
    exported = registered_series(registry)
    assert (
        missing_series({"a_total": {"kind", "pod"}, "b_seconds_bucket": {"le"}, "up": {"job"}}, exported)
        == []
    )
    assert missing_series({"a_total": {"result"}, "a": {"kind"}, "c": set()}, exported) == [
        "a",
        "a_total{result}",
        "c",
    ]
    assert missing_series({"b_seconds_bucket": {"kind"}}, exported) == ["b_seconds_bucket{kind}"]


def test_a_page_has_the_series_that_it_shows() -> None:
    page = '# TYPE a counter\na_total{kind="x"} 1\n# TYPE b gauge\nb 2\n'
    assert exposed_series(page) == {"a_total": {"kind"}, "b": set()}
