"""What the policy that attaches pods adds to their creation: `python -m tests.bench.attach`.

Dry runs in one cluster, in turns: in a namespace that did not opt in; in one that did, of a pod that no
KVCacheTier selects, and of one that is given a tier.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes.client import Configuration
from rich.console import Console
from tests.cluster.attach.place import Place, attached_to, installed_policy
from tests.cluster.attach.shapes import memory, pod
from tests.cluster.harness.api.connection import Connection, connect
from tests.cluster.harness.api.custom_resources import install_definitions
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.shared.waiting import eventually

from kvtier_operator.api.schema.crd import crd
from kvtier_operator.planning.base.names import ATTACH_OPT_IN
from kvtier_operator.reconcile.api_server import POD

_WITHOUT, _WITH = "without", "with"
_POD: Final = pod(resources=memory("64Gi", "64Gi"), env=[{"name": "PYTHONPATH", "value": "/theirs"}])
_ARMS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "without": (_WITHOUT, _POD),
    "passed by": (_WITH, {**_POD, "metadata": {"generateName": "other-", "labels": {"app": "other"}}}),
    "attached": (_WITH, _POD),
}
_MOST_MORE_MS: Final = 5.0
_WARM_PODS: Final = 50

console = Console(highlight=False, soft_wrap=True)


async def _create(connection: Connection, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
    return await connection.request("POST", f"{POD.path(namespace)}?dryRun=All", document)


async def _measure(configuration: Configuration, pods: int) -> dict[str, list[float]]:
    times_ms: dict[str, list[float]] = {name: [] for name in _ARMS}
    async with connect(configuration) as connection:
        for number in range(-_WARM_PODS, pods):
            for name, arm in _ARMS.items():
                start = time.perf_counter()
                created = await _create(connection, *arm)
                elapsed_ms = (time.perf_counter() - start) * 1e3
                if bool(attached_to(created)) != (name == "attached"):
                    raise RuntimeError(f"{name}: a pod was not as it should be: {created['metadata']}")
                if number >= 0:
                    times_ms[name].append(elapsed_ms)
    return times_ms


def _measure_on_cluster(pods: int) -> dict[str, list[float]]:
    """In a new cluster, from when the policy is in force."""
    with (
        chosen_provider().cluster(console.print) as cluster,
        cluster.client() as api,
        install_definitions(api, [crd()]),
        installed_policy(api),
    ):
        Place(api, _WITHOUT, dict.fromkeys(ATTACH_OPT_IN, ""))
        place = Place(api, _WITH)
        place.publish()
        eventually(lambda: attached_to(place.create(_POD, dry_run=True)), "effect of the policy")
        return asyncio.run(_measure(api.configuration, pods))


def _figures(times_ms: Mapping[str, list[float]]) -> dict[str, Any]:
    arms = {}
    for name, times in times_ms.items():
        quantiles = statistics.quantiles(times, n=100)
        arms[name] = {f"p{part}_ms": round(quantiles[part - 1], 2) for part in (10, 25, 50, 75, 90, 99)}
    more_ms = round(arms["attached"]["p50_ms"] - arms["without"]["p50_ms"], 2)
    load = round(os.getloadavg()[0], 1)
    return {"pods": len(times_ms["attached"]), "load": load, "arms": arms, "more_p50_ms": more_ms}


def main() -> int:
    """Measures, prints and writes JSON; exit 1 where it takes more than is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=1000, help="dry runs of each kind")
    parser.add_argument("--out", type=Path, default=Path("build/bench/attach.json"))
    options = parser.parse_args()
    figures = _figures(_measure_on_cluster(options.pods))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    for name, of_arm in figures["arms"].items():
        console.print(f"{name:10}", *(f"{part} {figure:.2f}" for part, figure in of_arm.items()))
    console.print(f"{figures['more_p50_ms']} ms more at p50, {_MOST_MORE_MS} allowed; load {figures['load']}")
    return int(figures["more_p50_ms"] > _MOST_MORE_MS)


if __name__ == "__main__":
    sys.exit(main())
