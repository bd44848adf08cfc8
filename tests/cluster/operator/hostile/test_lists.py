"""Lists of what others made as large as it can be, read from a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from kubernetes import client
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import DEADLINE_S, create_namespace

from kvtier_common.errors import TooLargeError
from kvtier_common.kubernetes.answers import Place
from kvtier_common.kubernetes.client import MOST_BYTES, Api
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_operator.reconcile.api_server import BY_NAME, Ref
from kvtier_operator.reconcile.apply.apply import OwnershipLookup
from kvtier_operator.reconcile.cache.watches import POLICY

_KIND = "ConfigMap"
_NUMBERS = count(1)

Make = Callable[[int, Mapping[str, Any]], set[str]]
"""Makes so many ConfigMaps like this one; returns their names."""


class _Measured(Api):
    """Notes the answers that were taken, and how often one was too long to be."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration, "test")
        self.taken_bytes: list[int] = []
        self.left = 0

    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        accept: str = "application/json",
        *,
        most_bytes: int = MOST_BYTES,
    ) -> bytes:
        try:
            body = await super().get(path, query, accept, most_bytes=most_bytes)
        except TooLargeError:
            self.left += 1
            raise
        self.taken_bytes.append(len(body))
        return body


class _Sink:
    """Keeps the names of what is there."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.complete: set[str] = set()

    def upsert(self, document: dict[str, Any]) -> None:
        self.names.append(document["metadata"]["name"])

    def delete(self, document: dict[str, Any]) -> None:
        self.names.remove(document["metadata"]["name"])

    def replace(self, places: set[Place], version: int) -> None:
        assert version > 0
        self.complete = {name for _, name in places}


@pytest.fixture
async def api(account: Account) -> AsyncIterator[_Measured]:
    """As the operator is one, with its rights."""
    configuration = Configuration()
    await load_kube_config(str(account.kubeconfig()), client_configuration=configuration)
    async with _Measured(configuration) as api:
        yield api


@pytest.fixture
def tenant(server: Cluster) -> Iterator[tuple[str, Make]]:
    """A namespace, and what fills it."""
    with server.client() as all_rights:
        namespace = create_namespace(all_rights, f"lists-{next(_NUMBERS)}")

        def make(number: int, like: Mapping[str, Any]) -> set[str]:
            names = {f"large-{number:02}" for number in range(number)}
            for name in names:
                metadata = {"name": name, **like.get("metadata", {})}
                body = {**like, "metadata": metadata}
                client.CoreV1Api(all_rights).create_namespaced_config_map(namespace, body)
            return names

        yield namespace, make


async def test_a_page_has_fewer_objects_where_they_are_large(
    api: _Measured, tenant: tuple[str, Make]
) -> None:
    namespace, make = tenant
    names = make(24, {"data": {"x": "x" * 700_000}})
    sink = _Sink()
    reflector = Reflector(api, "large", BY_NAME[_KIND].path(namespace), {}, sink, POLICY)
    following = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            await reflector.synced.wait()
    finally:
        following.cancel()
    assert sorted(sink.names) == sorted(names)
    assert sink.complete == names
    assert api.left > 0
    assert max(api.taken_bytes) <= 4 << 20
    assert len(api.taken_bytes) < len(names), "where there is room, one answer has several"


async def test_names_are_looked_up_without_all_that_others_wrote_beside_them(
    api: _Measured, tenant: tuple[str, Make]
) -> None:
    namespace, make = tenant
    make(40, {"metadata": {"annotations": {"x": "x" * 250_000}}})
    names = OwnershipLookup(api)
    found = [await names.owner(Ref(_KIND, namespace, name)) for name in ("large-07", "free")]
    assert found == ["", None]
    assert sum(api.taken_bytes) <= 1 << 20
