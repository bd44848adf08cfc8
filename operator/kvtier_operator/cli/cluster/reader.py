"""Reads resources, their pods and what these say of themselves, as far as the rights of the user go."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kvtier_common.errors import KvtierError, PermanentError
from kvtier_common.kubernetes.answers import (
    Document,
    ForbiddenError,
    NotFoundError,
    as_object,
    items_of,
    parse_document,
)
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.container_command import Container, Ended, run_in_container
from kvtier_common.metrics.text import MOST_BYTES, Families, MetricsTextError, read_families
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.cli.cluster.resource import (
    ENGINE_METRICS,
    PICKER_METRICS,
    ResourceView,
    Seen,
    component_of,
    is_of,
    is_ready,
    resource_view,
    selected_by,
)
from kvtier_operator.cli.cluster.shares import SHARE_METRICS
from kvtier_operator.planning.base.names import INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL, Component
from kvtier_operator.planning.objects.common import METRICS_PORT
from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER, POD
from kvtier_operator.reconcile.facts.metrics_endpoint import metrics_endpoint

_CONFIG_MAP: Final = BY_NAME["ConfigMap"]
_SELECTOR: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_READ: Final = (*ENGINE_METRICS, *PICKER_METRICS, *SHARE_METRICS)
_PAGE: Final = "50"
_AT_A_TIME: Final = 8
"""Pods that are asked: each answer is of some 100 KB."""
_TEXT: Final = "text/plain;version=0.0.4"
_REASON_CHARACTERS: Final = 200
_ENGINE_PORT: Final = 8000
"""Where an API server without the CRD's defaults tells none."""


class NoResourceError(PermanentError):
    """What was asked for is not there, or its kind is not known."""


class Reader:
    """Reads from one API server; what it may not read becomes a line of `Seen.unread`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def resource(self, namespace: str, name: str) -> Seen:
        """One resource with its pods; raises as `document`."""
        document = await self.document(namespace, name)
        pods, unread = await self._pods(namespace, selected_by(document) or _selector(name))
        return await self._observe(document, pods, unread)

    async def document(self, namespace: str, name: str) -> Document:
        """One resource as the API server has it; a NoResourceError where it has none."""
        try:
            return parse_document(await self._api.get(KVCACHETIER.path(namespace, name)))
        except NotFoundError as error:
            raise _not_there(error, namespace, name) from error

    async def pods(self, namespace: str, name: str) -> list[Document]:
        """The pods of one resource."""
        return await self._list(POD.path(namespace), {"labelSelector": _selector(name)})

    async def pods_of(self, resource: Document) -> list[Document]:
        """The pods of one resource, or those that its spec.attach selects."""
        metadata = resource["metadata"]
        selector = selected_by(resource) or _selector(metadata["name"])
        return await self._list(POD.path(metadata["namespace"]), {"labelSelector": selector})

    async def run(
        self, container: Container, command: Sequence[str], stdin: bytes, *, limit_s: float
    ) -> Ended:
        """Runs a program in a pod, to its end; raises as `run_in_container`."""
        async with self._turns:
            return await run_in_container(self._api, container, command, stdin, limit_s=limit_s)

    async def config_map(self, namespace: str, name: str) -> Document:
        """A ConfigMap; raises as `document`."""
        try:
            return parse_document(await self._api.get(_CONFIG_MAP.path(namespace, name)))
        except NotFoundError as error:
            raise NoResourceError(f"namespace {namespace} has no ConfigMap {name}: make it") from error

    async def resources(self, namespace: str | None) -> list[Seen]:
        """Those of a namespace, or of all; raises as `document`."""
        try:
            documents = await self._list(KVCACHETIER.path(namespace), {})
        except NotFoundError as error:
            raise _not_there(error, namespace or "", "") from error
        pods, unread = await self._pods(namespace, _SELECTOR)
        of: dict[tuple[str, str], list[Document]] = {}
        for pod in pods:
            place = pod["metadata"]["namespace"], pod["metadata"]["labels"].get(INSTANCE_LABEL, "")
            of.setdefault(place, []).append(pod)

        async def seen(document: Document) -> Seen:
            place = document["metadata"]["namespace"], document["metadata"]["name"]
            if selector := selected_by(document):
                return await self._observe(document, *await self._pods(place[0], selector))
            return await self._observe(document, of.get(place, []), unread)

        return await asyncio.gather(*map(seen, documents))

    async def view(self, namespace: str, name: str) -> ResourceView:
        """`resource` as it is now, worked out."""
        return resource_view(await self.resource(namespace, name), datetime.now(UTC))

    async def views(self, namespace: str | None) -> list[ResourceView]:
        """`resources` as they are now, worked out."""
        return [resource_view(seen, datetime.now(UTC)) for seen in await self.resources(namespace)]

    async def names(self, namespace: str) -> list[str]:
        """Names of a namespace's resources; raises as `document`."""
        return [item["metadata"]["name"] for item in await self._list(KVCACHETIER.path(namespace), {})]

    async def _observe(self, resource: Document, pods: Sequence[Document], unread: Sequence[str]) -> Seen:
        pods = [pod for pod in pods if is_of(resource, pod)]
        wanted = [(pod, port) for pod in pods if (port := _port(resource, pod)) and is_ready(pod)]
        answers = await asyncio.gather(*(self._metrics(pod, port) for pod, port in wanted))
        metrics = {
            pod["metadata"]["name"]: answer
            for (pod, _), answer in zip(wanted, answers, strict=True)
            if isinstance(answer, Families)
        }
        reasons = (answer for answer in answers if isinstance(answer, str))
        return Seen(resource, tuple(pods), metrics, tuple(dict.fromkeys((*unread, *reasons))))

    async def _pods(self, namespace: str | None, selector: str) -> tuple[list[Document], list[str]]:
        try:
            return await self._list(POD.path(namespace), {"labelSelector": selector}), []
        except ForbiddenError:
            return [], [f"pods: you may not list them in {_where(namespace)}"]

    async def _list(self, path: str, query: Mapping[str, str]) -> list[Document]:
        """All pages of a collection."""
        documents: list[Document] = []
        following = ""
        while True:
            more = {"continue": following} if following else {}
            page = parse_document(await self._api.get(path, {**query, "limit": _PAGE, **more}))
            documents += map(as_object, items_of(page))
            following = str(as_object(page.get("metadata")).get("continue") or "")
            if not following:
                return documents

    async def _metrics(self, pod: Document, port: str) -> Families | str:
        """What a pod says of itself through the API server's proxy; else why that is not known."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        scheme, _, number = port.rpartition(":")
        target = f"{scheme}:{name}:{number}" if scheme else f"{name}:{number}"
        path = f"{POD.path(namespace)}/{target}/proxy/metrics"
        try:
            async with self._turns:
                text = await self._api.get(path, accept=_TEXT, most_bytes=MOST_BYTES)
            return read_families(text, _READ)
        except ForbiddenError as error:
            if "pods/proxy" in str(error):
                return (
                    f"what engines and pickers count: you may not get pods/proxy in {_where(namespace)}; "
                    "Kubernetes' role edit may"
                )
            return _unread(name, error)
        except (KvtierError, MetricsTextError) as error:
            return _unread(name, error)


def _selector(name: str) -> str:
    """Of the pods of one resource."""
    return f"{_SELECTOR},{INSTANCE_LABEL}={name}"


def _port(resource: Document, pod: Document) -> str:
    """Port of a pod's /metrics, with the scheme where it is not HTTP; empty for a pod that has none."""
    if selected_by(resource) and (endpoint := metrics_endpoint(pod)):
        return f"{'https:' if endpoint.scheme == 'https' else ''}{endpoint.port}"
    match component_of(pod):
        case Component.ENGINE:
            engine = resource["spec"].get("engine") or {}
            scheme = "https:" if CommandLine(tuple(engine.get("extraArgs") or ())).serves_tls else ""
            return f"{scheme}{engine.get('port', _ENGINE_PORT)}"
        case Component.PICKER:
            return str(METRICS_PORT)
    return ""


def _unread(pod: str, error: Exception) -> str:
    reason = " ".join(str(error).split())
    return f"{pod}: its /metrics: {reason[:_REASON_CHARACTERS]}"


def _where(namespace: str | None) -> str:
    return "all namespaces" if namespace is None else f"namespace {namespace}"


def _not_there(error: NotFoundError, namespace: str, name: str) -> NoResourceError:
    """A server that lacks the kind has no object of that name to speak of (k8s.io/apiserver, 404)."""
    if name and f'"{name}" not found' in str(error):
        return NoResourceError(f"namespace {namespace} has no KVCacheTier {name}: see kubectl get kvct -A")
    return NoResourceError("the cluster does not know KVCacheTiers: kvtier is not installed there")
