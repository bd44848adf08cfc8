"""A cluster for trouble: nodes on which pods are Ready at once, and every CRD that a resource can need."""

from collections.abc import Iterator

import pytest
from tests.cluster.chaos.stage import Stage
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.operator.shipped import shipped_account
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Cluster, Provider
from tests.cluster.harness.stand_ins.kwok import Shape, add_nodes, running_kwok

from kvtier_operator.api.schema.crd import crd


@pytest.fixture(scope="package")
def busy_cluster(provider: Provider, say: Say) -> Iterator[Cluster]:
    """A cluster of its own, with nodes that hold anything."""
    need(provider, Ability.CONTROL_PLANE)
    with made(provider.cluster(say)) as cluster, cluster.client() as api, running_kwok(cluster, say):
        for definition in (crd(), *published_crds()):
            install(api, definition)
        add_nodes(api, 3, Shape())
        yield cluster


@pytest.fixture(scope="package")
def account(busy_cluster: Cluster, say: Say) -> Iterator[Account]:
    """Who operators are there."""
    with made(shipped_account(busy_cluster, say)) as shipped:
        yield shipped


@pytest.fixture
def stage(busy_cluster: Cluster, account: Account) -> Stage:
    with busy_cluster.client() as api:
        return Stage(api.configuration, account.configuration())
