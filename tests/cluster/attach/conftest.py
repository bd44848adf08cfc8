"""One cluster with the policy; each test has a namespace."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import pytest
from kubernetes import client
from tests.cluster.attach.place import Place, attached_to, installed_policy
from tests.cluster.attach.shapes import pod
from tests.cluster.harness.api.custom_resources import install_definitions
from tests.cluster.harness.providers.provider import Cluster
from tests.shared.waiting import eventually

from kvtier_operator.api.schema.crd import crd
from kvtier_operator.planning.base.names import ATTACH_OPT_IN

MakePlace = Callable[..., Place]
_NUMBERS: Final = count(1)


@pytest.fixture(scope="package")
def policed(cluster: Cluster) -> Iterator[client.ApiClient]:
    with cluster.client() as api, install_definitions(api, [crd()]), installed_policy(api):
        yield api


@pytest.fixture(scope="package")
def make_place(policed: client.ApiClient) -> MakePlace:
    """Makes namespaces that opted in, with further labels."""
    return lambda labels=None: Place(policed, f"place-{next(_NUMBERS)}", labels)


@pytest.fixture
def place(make_place: MakePlace) -> Place:
    return make_place()


@pytest.fixture(scope="package")
def published(make_place: MakePlace) -> Place:
    """A namespace where a tier is in force."""
    place = make_place()
    place.publish()
    eventually(lambda: attached_to(place.create(pod(), dry_run=True)), "effect of the policy")
    return place


@pytest.fixture(scope="package")
def untouched(make_place: MakePlace) -> Place:
    """A namespace that did not opt in, with the same tier."""
    place = make_place(dict.fromkeys(ATTACH_OPT_IN, "disabled"))
    place.publish()
    return place
