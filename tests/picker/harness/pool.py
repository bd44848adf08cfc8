"""An InferencePool and its Pods in a real API server.

No node runs the Pods: their status says that they are ready at addresses where stand-in engines listen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import yaml
from kubernetes import client
from tests.cluster.harness.api.account import Account, nothing_refused
from tests.cluster.harness.api.connection import Connection, connect
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.programs.modules import module_folder
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.harness.pickers.accounts import made_accounts

from kvtier_operator.api.spec.router import Flavor

_GAIE: Final = "sigs.k8s.io/gateway-api-inference-extension"
# What pickers of all versions watch; 1.2 ends where one is missing.
_CRDS: Final = (
    "inference.networking.k8s.io_inferencepools",
    "inference.networking.x-k8s.io_inferenceobjectives",
    "inference.networking.x-k8s.io_inferencemodelrewrites",
)
# What llm-d-router watches beside them, and leaves alone where it is not there.
_LLM_D_KINDS: Final = ("InferenceObjective", "InferenceModelRewrite")
_AT_A_TIME: Final = 16


@dataclass(frozen=True, slots=True)
class Pool:
    """An InferencePool in a namespace of its own. Every method blocks until the API server has taken it.

    Attributes:
        cluster: Where it is.
        name: Its name, that of its namespace, and the value of its pods' label `app`.
        port: Port of its pods.
        pickers: Who a picker of each flavour is to the API server.
    """

    cluster: Cluster
    name: str
    port: int
    pickers: Mapping[Flavor, Account]

    def put(self, ips: Iterable[str]) -> None:
        """Makes ready Pods at these addresses."""
        self._each(ips, self._put)

    def remove(self, ips: Iterable[str]) -> None:
        """Deletes the Pods at these addresses at once."""
        self._each(ips, self._remove)

    def set_ready(self, ips: Iterable[str], *, ready: bool) -> None:
        """Changes the condition Ready of Pods."""

        async def change(api: Connection, ip: str) -> None:
            await api.request("PATCH", f"{self._pods}/{pod_name(ip)}/status", _status(ip, ready=ready))

        self._each(ips, change)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    async def _put(self, api: Connection, ip: str) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod_name(ip), "labels": {"app": self.name}},
            "spec": {
                "nodeName": "nowhere",
                "automountServiceAccountToken": False,
                "containers": [{"name": "engine", "image": "none.test/none:1"}],
            },
        }
        await api.request("POST", self._pods, pod)
        await api.request("PATCH", f"{self._pods}/{pod_name(ip)}/status", _status(ip, ready=True))

    async def _remove(self, api: Connection, ip: str) -> None:
        await api.request("DELETE", f"{self._pods}/{pod_name(ip)}?gracePeriodSeconds=0")

    def _each(self, ips: Iterable[str], do: Callable[[Connection, str], Awaitable[None]]) -> None:
        waiting = iter(list(ips))

        async def run(api: Connection) -> None:
            for ip in waiting:
                await do(api, ip)

        async def work() -> None:
            with self.cluster.client() as api_client:
                async with connect(api_client.configuration) as api, asyncio.TaskGroup() as workers:
                    for _ in range(_AT_A_TIME):
                        workers.create_task(run(api))

        asyncio.run(work())


def pod_name(ip: str) -> str:
    """Name of the Pod at an address."""
    return "engine-" + ip.replace(".", "-")


def install_picker_crds(cluster: Cluster) -> None:
    """Installs what pickers watch beside Pods."""
    folder = module_folder(_GAIE) / "config" / "crd" / "bases"
    with cluster.client() as api:
        for name in _CRDS:
            install(api, yaml.safe_load((folder / f"{name}.yaml").read_text()))
        for kind in _LLM_D_KINDS:
            install(api, _llm_d_crd(kind))


@contextmanager
def made_pool(
    cluster: Cluster, name: str, port: int, ips: Iterable[str] = (), *, elect: bool = False
) -> Iterator[Pool]:
    """An InferencePool with ready Pods; all of it is deleted afterwards.

    Args:
        cluster: Has the CRDs (`install_picker_crds`).
        name: Of the pool and of its namespace.
        port: Port of the pods.
        ips: Their addresses.
        elect: Whether upstream's pickers are two, which elect a leader.
    """
    with cluster.client() as api:
        core = client.CoreV1Api(api)
        core.create_namespace({"metadata": {"name": name}})
        # a cluster without controllers has none, and admission asks for it
        core.create_namespaced_service_account(name, {"metadata": {"name": "default"}})
        pools = client.CustomObjectsApi(api)
        chosen = ("inference.networking.k8s.io", "v1", name, "inferencepools")
        pools.create_namespaced_custom_object(*chosen, _pool(name, port))
        pool = Pool(cluster, name, port, made_accounts(cluster, name, elect=elect))
        try:
            pool.put(ips)
            with ExitStack() as checks:
                for picker in pool.pickers.values():
                    checks.enter_context(nothing_refused(picker))
                yield pool
        finally:
            core.delete_collection_namespaced_pod(name, grace_period_seconds=0)
            pools.delete_namespaced_custom_object(*chosen, name)
            core.delete_namespace(name)


def _llm_d_crd(kind: str) -> dict[str, Any]:
    """llm-d's own CRD of a kind, without its schema: nobody makes such an object here."""
    version = {
        "name": "v1alpha2",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.llm-d.ai"},
        "spec": {
            "group": "llm-d.ai",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _pool(name: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "targetPorts": [{"number": port}],
            "endpointPickerRef": {"name": name, "port": {"number": 9002}},
        },
    }


def _status(ip: str, *, ready: bool) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}}
