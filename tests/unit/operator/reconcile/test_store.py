"""A store's Secret is made before its pods, once: nothing that happens later gives it another password."""

import copy
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest
from tests.unit.operator.reconcile.model_cluster.cluster import KEY, RESOURCE, Cluster

from kvtier_operator.reconcile.api_server import SECRET, Ref

STORE: Final = f"{KEY.name}-store"
SECRET_REF: Final = Ref(SECRET.kind, KEY.namespace, STORE)
DEPLOYMENT: Final = Ref("Deployment", KEY.namespace, f"{STORE}-0")
_QUIET_S: Final = 130.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with closing(Cluster()) as cluster:
        _edit(cluster, {"capacity": "4Gi", "managed": {}})
        yield cluster


def _edit(cluster: Cluster, remote: dict[str, Any] | None) -> None:
    resource = copy.deepcopy(cluster.server.objects[RESOURCE])
    resource["spec"]["tiers"]["remote"] = remote
    cluster.server.put(RESOURCE, resource)
    cluster.calm(_QUIET_S)


def _password(cluster: Cluster) -> str:
    secret: dict[str, Any] = cluster.server.objects[SECRET_REF]
    password: str = secret["stringData"]["password"]
    return password


def test_it_is_there_before_the_pods_that_need_it(cluster: Cluster) -> None:
    made = [change.ref for change in cluster.server.changes if change.before is None]
    assert made.index(SECRET_REF) < made.index(DEPLOYMENT)


def test_another_operator_leaves_it_as_it_is(cluster: Cluster) -> None:
    password = _password(cluster)
    cluster.stop()
    cluster.start()
    cluster.calm(_QUIET_S)
    assert _password(cluster) == password
    assert [each.path for each in cluster.api.writes if each.path.endswith("/secrets")], "it looks by a POST"


def test_a_store_that_comes_back_has_the_password_that_it_had(cluster: Cluster) -> None:
    password = _password(cluster)
    _edit(cluster, None)
    assert not [ref for ref in cluster.server.objects if ref.name.startswith(STORE) and ref != SECRET_REF]
    _edit(cluster, {"capacity": "4Gi", "managed": {}})
    assert DEPLOYMENT in cluster.server.objects
    assert _password(cluster) == password


def test_one_that_somebody_deletes_is_made_anew_while_the_store_waits_for_it(cluster: Cluster) -> None:
    cluster.server.delete(SECRET_REF)
    deployment = copy.deepcopy(cluster.server.objects[DEPLOYMENT])
    cluster.server.put(DEPLOYMENT, deployment | {"status": {"replicas": 1, "observedGeneration": 1}})
    cluster.calm(_QUIET_S)
    assert _password(cluster)


def test_it_goes_with_the_resource(cluster: Cluster) -> None:
    cluster.server.delete(RESOURCE)
    cluster.calm(_QUIET_S)
    assert SECRET_REF not in cluster.server.objects


def test_a_secret_of_somebody_s_own_is_left_alone(cluster: Cluster) -> None:
    cluster.server.delete(SECRET_REF)
    _edit(cluster, {"capacity": "4Gi", "managed": {}, "credentials": {"secretRef": {"name": "mine"}}})
    assert SECRET_REF not in cluster.server.objects
