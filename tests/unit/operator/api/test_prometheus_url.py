"""Which URLs spec.autoscaling.prometheusUrl takes."""

import pytest
from tests.cases.kvcachetier import document

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError


def parse(url: str) -> None:
    parse_resource(document({"spec.autoscaling": {"maxReplicas": 2, "prometheusUrl": url}}), "cr.yaml")


@pytest.mark.parametrize(
    "url",
    [
        "http://prometheus:9090",
        "https://prometheus-operated.monitoring.svc.cluster.local:9090/",
        "http://[fd00::1]:9090",
        "https://mimir.example/prometheus/tenants/a%20b",
    ],
)
def test_urls(url: str) -> None:
    parse(url)


@pytest.mark.parametrize(
    "url",
    [
        "prometheus:9090",
        "file:///etc/passwd",
        "http://",
        "http://user:password@prometheus:9090",
        "http://prometheus:9090?x=1",
        "http://prometheus:9090/#x",
        "http://prometheus:9090/\x1b[2J",
        "http://prometheus:9090/\n",
        "http://prometheus\u202e:9090",
        "http://prometheus\\@elsewhere",
    ],
)
def test_what_is_none_is_refused_with_its_field(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.autoscaling\.prometheusUrl: .* is no base URL"):
        parse(url)
