"""A fleet under the operator: until it is Ready, until nothing is written any more, and what changed."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.harness.api.conditions import is_ready
from tests.cluster.harness.api.connection import Connection, collection, connect
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.operator.shipped import RESTRICTED, shipped_account
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Provider
from tests.cluster.harness.stand_ins.gateway_controller import running_gateway_controller
from tests.cluster.harness.stand_ins.kwok import Shape, add_nodes, running_kwok
from tests.cluster.scale import fleet
from tests.cluster.scale.following import follow_until

from kvtier_operator.api.schema.crd import crd

_TIERS: Final = collection("KVCacheTier")
_NODES: Final = 10
_POLL_S: Final = 0.2
_SETTLE_S: Final = 30
"""Longest time between the last resource's Ready and the operator's last write."""


@asynccontextmanager
async def fleet_cluster(provider: Provider, say: Say) -> AsyncIterator[tuple[Connection, Path]]:
    """A fresh cluster with nodes that are only said to be there, and the operator's kubeconfig."""
    with (
        provider.cluster(say) as cluster,
        running_kwok(cluster, say),
        shipped_account(cluster, say) as account,
    ):
        with cluster.client() as api:
            for definition in (crd(), *published_crds()):
                install(api, definition)
            add_nodes(api, _NODES, Shape())
            configuration = api.configuration
        async with connect(configuration) as connection, running_gateway_controller(connection):
            namespace = {"metadata": {"name": fleet.NAMESPACE, "labels": RESTRICTED}}
            await connection.request("POST", "/api/v1/namespaces", namespace)
            yield connection, account.kubeconfig()


async def until_ready(connection: Connection, count: int) -> float:
    """Creates resources; returns the seconds until all of them are Ready."""
    start = time.monotonic()
    async with asyncio.TaskGroup() as both:
        both.create_task(follow_until(connection, _TIERS, is_ready, count))
        both.create_task(connection.create_all(fleet.resource(number) for number in range(count)))
    return time.monotonic() - start


async def until_resynced(operator: Operator, count: int) -> None:
    """Until the operator says of every resource what it said before."""
    done = 0.0
    while done < count:
        await asyncio.sleep(_POLL_S)
        done = (await asyncio.to_thread(operator.metrics)).get("kvtier_reconciles_total", 0)


async def settled_writes(operator: Operator) -> int:
    """Writes once two looks, a second apart, agree and nothing waits."""
    last = -1
    for _ in range(_SETTLE_S):
        metrics = await asyncio.to_thread(operator.metrics)
        writes = int(metrics.get("kvtier_api_writes_total", 0))
        if writes == last and not metrics.get("kvtier_queue_depth"):
            return writes
        last = writes
        await asyncio.sleep(1)
    return last


def count_changes(before: dict[Any, str], after: dict[Any, str]) -> int:
    """How many objects have another resource version, came or went."""
    return sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())
