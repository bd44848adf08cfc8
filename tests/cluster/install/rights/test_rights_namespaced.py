"""An operator of some namespaces only, with as little as can be."""

from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cases.rights import rights
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.operator.places import CHART, OPERATOR, SYSTEM
from tests.cluster.install.rights.authorizer import may

from kvtier_operator.install.rbac import (
    CLUSTER,
    DELETION_COST,
    LEADER_ELECTION,
    NAMESPACED,
    PICKER_LEADER_ELECTION,
    PICKERS,
    STORE_PASSWORD,
)

SERVED = ("models", "staging")


@pytest.fixture(autouse=True)
def namespaced(kubectl: Command, helm: Command, clean_system: str) -> Iterator[None]:
    for name in SERVED:
        kubectl("create", "namespace", name)
    values = ("--values", CHART / "ci" / "namespaced-values.yaml", "--set", f"nameOverride={OPERATOR}")
    helm("install", "kvtier", CHART, "--namespace", clean_system, *values)
    yield
    kubectl("delete", "namespace", *SERVED, "--wait=false")


def test_rights(site_api: client.ApiClient) -> None:
    for right in rights((*NAMESPACED, *PICKERS)):
        assert all(may(site_api, right, namespace) for namespace in SERVED), right
        assert not may(site_api, right, "default"), right
    assert not [right for right in rights(CLUSTER) if may(site_api, right)]
    left_out = rights((*PICKER_LEADER_ELECTION, *DELETION_COST, *STORE_PASSWORD))
    assert not [right for right in left_out if may(site_api, right, SERVED[0])]
    assert all(may(site_api, right, SYSTEM) for right in rights(LEADER_ELECTION))
