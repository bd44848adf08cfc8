"""Python and the API server agree on resources that nobody thought of."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from tests.cases.generated import resources
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers, RefusedError

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(resource=resources())
def test_agree(kvcachetiers: KVCacheTiers, resource: dict[str, Any]) -> None:
    try:
        kvcachetiers.create(resource, dry_run=True)
        server_says = ""
    except RefusedError as refused:
        server_says = refused.message
    try:
        parse_resource(resource, "cr.yaml")
        python_says = ""
    except InvalidInputError as refused:
        python_says = str(refused)
    assert bool(server_says) == bool(python_says), f"server: {server_says!r}\npython: {python_says!r}"
