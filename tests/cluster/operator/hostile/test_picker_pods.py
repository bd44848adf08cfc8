"""Pods that others made as large as they can be, as a picker reads them from a real API server."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Any

import pytest
from kubernetes import client
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import DEADLINE_S

from kvtier_common.kubernetes.answers import Document, Place, place_of
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_scorer.picker.pods.cluster import reflector_policy

MIB = 1 << 20
_NUMBERS = count(1)


class Tenant:
    """A namespace, and who may make pods in it."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._core = client.CoreV1Api(api)
        self.namespace = namespace
        self._core.create_namespace({"metadata": {"name": namespace}})
        self._core.create_namespaced_service_account(namespace, {"metadata": {"name": "default"}})

    def make(self, name: str, value: str = "", annotation: str = "") -> None:
        """A pod that nobody runs."""
        container: dict[str, Any] = {"name": "c", "image": "i", "env": [{"name": "X", "value": value}]}
        metadata = {"name": name, "annotations": {"x": annotation}}
        self._core.create_namespaced_pod(
            self.namespace, {"metadata": metadata, "spec": {"containers": [container]}}
        )

    def annotate(self, name: str, annotation: str) -> None:
        """Makes it another."""
        body = {"metadata": {"annotations": {"x": annotation}}}
        self._core.patch_namespaced_pod(name, self.namespace, body)

    def end(self) -> None:
        """Without controllers nobody else takes them away."""
        self._core.delete_collection_namespaced_pod(self.namespace, grace_period_seconds=0)


class Sink:
    """Keeps the names of what is there."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._changed = asyncio.Event()

    def upsert(self, document: Document) -> None:
        self.names.add(place_of(document)[1])
        self._changed.set()

    def delete(self, document: Document) -> None:
        self.names.discard(place_of(document)[1])
        self._changed.set()

    def replace(self, places: set[Place], version: int) -> None:
        assert version > 0
        self.names = {name for _, name in places}
        self._changed.set()

    async def until(self, is_so: Callable[[set[str]], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not is_so(self.names):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def tenant(server: Cluster) -> Iterator[Tenant]:
    with server.client() as api:
        tenant = Tenant(api, f"picker-pods-{next(_NUMBERS)}")
        yield tenant
        tenant.end()


@pytest.fixture
async def api(server: Cluster) -> AsyncIterator[Api]:
    configuration = Configuration()
    await load_kube_config(str(server.kubeconfig()), client_configuration=configuration)
    api = Api(configuration, "test")
    yield api
    await api.close()


@pytest.fixture
async def follow(api: Api, tenant: Tenant) -> AsyncIterator[Callable[[], Sink]]:
    """Follows the pods of the namespace from now on."""
    running: list[tuple[asyncio.Task[None], Sink]] = []

    def start() -> Sink:
        sink = Sink()
        path = f"/api/v1/namespaces/{tenant.namespace}/pods"
        reflector = Reflector(api, "pods", path, {}, sink, reflector_policy())
        running.append((asyncio.create_task(reflector.run()), sink))
        return sink

    yield start
    tenant.make("last")
    for task, sink in running:
        await sink.until(lambda here: "last" in here)  # asyncio leaves a connection that is just being made
        task.cancel()
        await asyncio.wait([task])


async def test_many_large_pods_are_read_a_few_at_a_time(tenant: Tenant, follow: Callable[[], Sink]) -> None:
    names = {f"large-{number:03}" for number in range(100)}
    for name in names:
        tenant.make(name, "x" * 1_000_000)
    tracemalloc.start()
    try:
        sink = follow()
        await sink.until(lambda here: here == names)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 96 * MIB, f"{peak_bytes / MIB:.0f} MiB"  # orjson asks for twelve times a page


async def test_a_pod_too_large_to_read_holds_up_no_other(
    tenant: Tenant, follow: Callable[[], Sink], caplog: pytest.LogCaptureFixture
) -> None:
    """`<` takes six bytes of JSON."""
    for name in ("a", "m", "z"):
        tenant.make(name, "<" * 1_000_000 if name == "m" else "")
    sink = follow()
    await sink.until(lambda here: here == {"a", "z"})
    tenant.make("b", "<" * 1_000_000)
    tenant.make("c")
    await sink.until(lambda here: here == {"a", "c", "z"})
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert [each.split("such as ")[1] for each in said] == ["m; make them smaller", "b; make them smaller"]


async def test_a_pod_that_becomes_too_large_is_gone(tenant: Tenant, follow: Callable[[], Sink]) -> None:
    tenant.make("grows", "<" * 600_000)
    tenant.make("stays")
    sink = follow()
    await sink.until(lambda here: here == {"grows", "stays"})
    tenant.annotate("grows", "<" * 200_000)
    await sink.until(lambda here: here == {"stays"})
    tenant.annotate("grows", "")
    await sink.until(lambda here: here == {"grows", "stays"})
