"""What an expression reads: series and their labels, beside what a program exports."""

from collections.abc import Iterable, Iterator, Mapping

import promql_parser
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

Series = dict[str, set[str]]
"""Labels by the name of a series."""

# What Prometheus itself adds to every series of a target that a ServiceMonitor names.
OF_TARGETS = {"namespace", "job", "pod", "instance", "service", "endpoint", "container"}
# Of each target, whatever it exports.
BY_PROMETHEUS = {"up"}


def read(expression: str, shown: frozenset[str] = frozenset()) -> Series:
    """Labels that an expression asks of each series: matched, grouped by, or shown.

    Args:
        expression: PromQL.
        shown: Labels that the result is to have, such as those of a legend.

    Raises:
        ValueError: Prometheus would not take it, or a label that is asked for was aggregated away.
    """
    found: Series = {}
    for name, labels in _selectors(promql_parser.parse(expression), shown):
        found.setdefault(name, set()).update(labels)
    return found


def all_read(expressions: Iterable[str]) -> Series:
    """What all of them together ask."""
    found: Series = {}
    for expression in expressions:
        for name, labels in read(expression).items():
            found.setdefault(name, set()).update(labels)
    return found


def metrics_of(expression: str) -> set[str]:
    """Names of the series that an expression reads.

    Raises:
        ValueError: Prometheus would not take it.
    """
    return set(read(expression))


def missing_series(asked: Mapping[str, set[str]], exported: Mapping[str, set[str]]) -> list[str]:
    """What is asked for and not exported: names of series, and labels in braces behind them."""
    return [
        name if name not in exported else f"{name}{{{', '.join(sorted(absent))}}}"
        for name, labels in sorted(asked.items())
        if name not in BY_PROMETHEUS
        and (name not in exported or (absent := labels - OF_TARGETS - exported[name]))
    ]


def exposed_series(page: str) -> Series:
    """The series of a /metrics page."""
    found: Series = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def registered_series(registry: CollectorRegistry) -> Series:
    """The series of a program in this process, those of which nothing was counted yet included."""
    found: Series = {}
    for collector, names in registry._collector_to_names.items():  # nothing else names labels without values
        # the first is the family's, behind which a counter's, a histogram's or an info's series have a suffix
        for name in names[1:] or names:
            labels = set(getattr(collector, "_labelnames", ()))
            found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    for family in registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def _selectors(node: promql_parser.Expr, asked: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    match node:
        case promql_parser.VectorSelector():
            yield node.name or "", asked | {matcher.name for matcher in node.matchers.matchers}
        case promql_parser.MatrixSelector():
            yield from _selectors(node.vector_selector, asked)
        case promql_parser.ParenExpr():
            yield from _selectors(node.expr, asked)
        case promql_parser.AggregateExpr():
            yield from _selectors(node.expr, _grouped_by(node, asked))
        case promql_parser.Call():
            bucket = {"le"} if node.func.name == "histogram_quantile" else set()
            for argument in node.args:
                yield from _selectors(argument, asked | bucket)
        case promql_parser.BinaryExpr():
            matched = asked | _matched_on(node)
            yield from _selectors(node.lhs, matched)
            yield from _selectors(node.rhs, matched)
        case promql_parser.NumberLiteral() | promql_parser.StringLiteral():
            return
        case _:
            raise TypeError(f"a kind of expression that is not used yet: {node!r}")


def _grouped_by(node: promql_parser.AggregateExpr, asked: frozenset[str]) -> frozenset[str]:
    kept = frozenset(node.modifier.labels if node.modifier else ())
    if asked - kept:
        raise ValueError(f"{', '.join(sorted(asked - kept))}: aggregated away in {node.prettify()}")
    return kept


def _matched_on(node: promql_parser.BinaryExpr) -> frozenset[str]:
    matching = node.modifier.matching if node.modifier else None
    return frozenset(matching.labels if matching else ())
