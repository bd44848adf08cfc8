"""Whatever a resource and its namespace are called, queries select its series and no other's."""

import json
from collections.abc import Iterator
from typing import Any, Final

import promql_parser
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.monitoring import ALL, targets

from kvtier_operator.api.formats import LABEL_PATTERN
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import MAX_NAME_LENGTH, NAME_PATTERN
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_NAMESPACE_LENGTH: Final = 63
NAMES: Final = st.from_regex(NAME_PATTERN, fullmatch=True).filter(lambda name: len(name) <= MAX_NAME_LENGTH)
NAMESPACES: Final = st.from_regex(LABEL_PATTERN, fullmatch=True).filter(
    lambda name: len(name) <= _NAMESPACE_LENGTH
)
SPEC: Final = {
    "model": {"name": "Qwen/Qwen3-32B", "servedNames": ["a:b/c@d+e", "a.b"]},
    "tiers": {"cpu": {"capacity": "100Gi"}, "disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}},
    "autoscaling": {
        "minReplicas": 1,
        "maxReplicas": 2,
        "target": "hitRate",
        "prometheusUrl": "http://prometheus:9090",
    },
    "observability": ALL,
}


def objects_of(name: str, namespace: str) -> dict[str, dict[str, Any]]:
    """Objects that hold queries, by their kind."""
    metadata = {"name": name, "namespace": namespace}
    document = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": metadata,
        "spec": SPEC,
    }
    objects = build_objects(make_plan(parse_resource(document, "any name"), Observed()))
    dashboards = (document for document in objects if "grafana_dashboard" in document["metadata"]["labels"])
    others = {
        document["kind"]: document
        for document in objects
        if document["kind"] in {"PrometheusRule", "ScaledObject"}
    }
    return others | {"Dashboard": next(dashboards)}


def queries_of(objects: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What Prometheus is asked of them all."""
    [group] = objects["PrometheusRule"]["spec"]["groups"]
    yield from (rule["expr"] for rule in group["rules"])
    yield from (trigger["metadata"]["query"] for trigger in objects["ScaledObject"]["spec"]["triggers"])
    [text] = objects["Dashboard"]["data"].values()
    yield from (query for query, _ in targets(json.loads(text)))


def exact_matchers(query: str) -> list[dict[str, str]]:
    """Labels that a query compares with `=`, of each of its selectors."""
    found: list[dict[str, str]] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            exact = promql_parser.MatchOp.Equal
            found.append(
                {matcher.name: matcher.value for matcher in node.matchers.matchers if matcher.op is exact}
            )

    promql_parser.walk(promql_parser.parse(query), visit)
    return found


@settings(deadline=None, max_examples=20)
@given(NAMES, NAMESPACES)
def test_every_query_selects_the_resource_alone(name: str, namespace: str) -> None:
    jobs = {f"{name}-engine", f"{name}-picker"}
    for query in queries_of(objects_of(name, namespace)):
        selected = exact_matchers(query)
        assert selected
        for matchers in selected:
            assert matchers["namespace"] == namespace
            assert matchers["job"] in jobs


@settings(deadline=None, max_examples=20)
@given(NAMES, NAMESPACES)
def test_templates_of_alerts_are_prometheus_own(name: str, namespace: str) -> None:
    [group] = objects_of(name, namespace)["PrometheusRule"]["spec"]["groups"]
    for rule in group["rules"]:
        assert "{{" not in rule["annotations"]["summary"]
        assert rule["labels"]["namespace"] == namespace


def test_no_two_resources_have_one_file_in_grafanas_folder() -> None:
    """The sidecar puts the dashboards of all namespaces into one."""
    files = [
        file
        for name, namespace in (("c", "a-b"), ("b-c", "a"))
        for file in objects_of(name, namespace)["Dashboard"]["data"]
    ]
    assert len(set(files)) == len(files)
