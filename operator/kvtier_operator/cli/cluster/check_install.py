"""`helm test`: asks an API server whether the kvtier that is installed there works.

Not a command of `kvtier`: the chart's test runs it in the operator's image (install/deployment.py).
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import click

from kvtier_common.errors import KvtierError, PermanentError
from kvtier_common.kubernetes.answers import NotFoundError, parse_document
from kvtier_common.kubernetes.client import Api, Request
from kvtier_common.kubernetes.connect import connection
from kvtier_common.terminal.say import complain, say
from kvtier_operator.api.resource import API_VERSION, KIND
from kvtier_operator.api.schema.crd import PLURAL

_TIERS: Final = f"/apis/{API_VERSION}"
_RESOURCE: Final = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "helm-test"},
    "spec": {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "1Gi"}}},
}


class NotInstalledError(PermanentError):
    """A part of an installation is missing or does not work."""


class ApiServer(Protocol):
    """An API server, as far as it is asked here."""

    async def request(self, request: Request) -> bytes:
        """One request and the answer's body."""


async def knows_tiers(api: ApiServer, namespace: str, deployment: str) -> str:
    """The API server has the CRD."""
    del namespace, deployment
    try:
        listed = parse_document(await api.request(Request("GET", _TIERS)))
    except NotFoundError as error:
        raise NotInstalledError(f"the API server knows no {API_VERSION}: was crds.enabled false?") from error
    if PLURAL not in {resource["name"] for resource in listed["resources"]}:
        raise NotInstalledError(f"{API_VERSION} has no {PLURAL}")
    return f"the API server has {PLURAL} of {API_VERSION}"


async def operator_runs(api: ApiServer, namespace: str, deployment: str) -> str:
    """The operator's one pod is Ready."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}"
    status = parse_document(await api.request(Request("GET", path))).get("status", {})
    if not status.get("readyReplicas"):
        raise NotInstalledError(f"no pod of Deployment {namespace}/{deployment} is ready: {_why(status)}")
    return f"the operator's pod is ready ({namespace}/{deployment})"


async def takes_a_tier(api: ApiServer, namespace: str, deployment: str) -> str:
    """CRD and admission policy accept a KVCacheTier; nothing is stored."""
    del deployment
    path = f"{_TIERS}/namespaces/{namespace}/{PLURAL}"
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    await api.request(Request("POST", path, query, _RESOURCE))
    return f"a {KIND} would be accepted"


_CHECKS: Final[tuple[Callable[[ApiServer, str, str], Awaitable[str]], ...]] = (
    knows_tiers,
    operator_runs,
    takes_a_tier,
)


async def check_install(api: ApiServer, namespace: str, deployment: str) -> tuple[bool, list[str]]:
    """Whether all is well, and a line for each part."""
    well, lines = True, []
    for check in _CHECKS:
        try:
            lines.append(f"ok    {await check(api, namespace, deployment)}")
        except KvtierError as error:
            well = False
            lines.append(f"FAIL  {error}")
    return well, lines


def _why(status: Mapping[str, Any]) -> str:
    messages = [
        condition["message"] for condition in status.get("conditions", ()) if condition["status"] != "True"
    ]
    return "; ".join(messages) or "it was just made"


async def _check(namespace: str, deployment: str) -> tuple[bool, list[str]]:
    async with Api(await connection(), "kvtier-check-install") as api:
        return await check_install(api, namespace, deployment)


@click.command()
@click.option("--namespace", required=True, help="The operator's.")
@click.option("--deployment", required=True, help="The operator's.")
def main(namespace: str, deployment: str) -> None:
    """Say whether the kvtier that is installed works."""
    try:
        well, lines = asyncio.run(_check(namespace, deployment))
    except KvtierError as error:
        complain(f"FAIL  {error}")
        sys.exit(1)
    for line in lines:
        say(line)
    sys.exit(not well)


if __name__ == "__main__":
    main()
