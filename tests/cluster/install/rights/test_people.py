"""Kubernetes' own roles take KVCacheTiers in, by the real aggregation."""

import pytest
from kubernetes import client
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.operator.places import CHART
from tests.shared.waiting import eventually


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("view", {"list": True, "create": False}),
        ("edit", {"list": True, "create": True}),
        ("admin", {"get": True, "delete": True}),
    ],
)
@pytest.mark.usefixtures("installed")
def test_role(
    site_api: client.ApiClient, kubectl: Command, namespace: str, role: str, may: dict[str, bool]
) -> None:
    someone = ("--user=someone", "--namespace", namespace)
    kubectl("create", "rolebinding", "someone", f"--clusterrole={role}", *someone)
    # the authorizer learns of a binding from a watch
    eventually(lambda: _may(site_api, namespace, next(iter(may))), "effect of the binding")
    assert {verb: _may(site_api, namespace, verb) for verb in may} == may


def _may(api: client.ApiClient, namespace: str, verb: str) -> bool:
    attributes = {"group": "kvtier.dev", "resource": "kvcachetiers", "verb": verb, "namespace": namespace}
    review = {"spec": {"user": "someone", "resourceAttributes": attributes}}
    answer = client.AuthorizationV1Api(api).create_subject_access_review(review)
    return bool(answer.status.allowed)


@pytest.fixture(scope="module")
def installed(helm: Command, kubectl: Command, system: str) -> None:
    helm("install", "kvtier", CHART, "--namespace", system)
    # aggregated once the role has the rules
    eventually(
        lambda: "kvcachetiers" in kubectl("get", "clusterrole", "admin", "--output", "yaml"), "aggregation"
    )
